"""Native compaction of the Messages API: on demand, and at a threshold (providers.md 4).

A block made on demand is signed; the signature also records what the tail's thinking is bound to, so that thinking
after the replaced range stays good. A block made at a threshold hides all messages before it.
"""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.providers.strict_local.anthropic_prompt import Adopted, Prompt, canonical
from ctxengine.providers.strict_local.anthropic_request import (
    COMPACT_AT_THRESHOLD,
    COMPACT_ON_DEMAND,
    Request,
    blocks_of,
)
from ctxengine.providers.strict_local.anthropic_thinking import Block
from ctxengine.providers.strict_local.exchange import Json, object_of, objects, text_of
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.signatures import Seal, digest

_KIND = "compaction"
_EDIT = "compact_20260112"
_DEFAULT_TRIGGER, _LEAST_TRIGGER = 150_000, 50_000
_MAX_INSTRUCTIONS = 16_384
_MAX_TOOL_REFERENCES = 100
"""Tools found by search that a block made on demand may stand for. The API names no figure; this one is the stand-in's own."""
_BLOCK_FIELDS = frozenset(
    {"type", "content", "signature", "encrypted_content", "tool_changes", "cache_control"}
)


class Window(NamedTuple):
    """The messages that count."""

    blocks: list[Block]
    adopted: Adopted | None


def refuse_early(request: Request) -> None:
    """Checks of an on-demand request that come before those of its messages.

    Raises:
        Refusal: a combination or a state that the API refuses.
    """
    if not request.compacts or COMPACT_ON_DEMAND not in request.betas:
        return
    if not request.facts.compacts:
        raise Refusal("compaction: not supported on this model")
    for name in ("context_management", "stop_sequences"):
        if request.body.get(name):
            raise Refusal(f"compaction: cannot be combined with `{name}`")
    if "format" in object_of(request.body.get("output_config")):
        raise Refusal("compaction: cannot be combined with `output_config.format`")
    if object_of(request.body.get("tool_choice")).get("type") in {"any", "tool"}:
        raise Refusal("compaction: cannot be combined with a forced `tool_choice`")
    instructions = text_of(object_of(request.body["compaction"]).get("instructions"))
    if len(instructions) > _MAX_INSTRUCTIONS:
        raise Refusal(
            f"compaction.instructions: String should have at most {_MAX_INSTRUCTIONS} characters"
        )
    _refuse_unfinished(request)


def _refuse_unfinished(request: Request) -> None:
    said = [m for m in request.messages if m.get("role") in {"user", "assistant"}]
    blocks = [block for message in said for block in blocks_of(message)]
    if not any(block.get("type") != "compaction" for block in blocks):
        raise Refusal(
            "compaction: `messages` holds no content to summarize",
            code="compaction_nothing_to_summarize",
        )
    found = {name for block in blocks for name in _found(block)}
    if len(found) > _MAX_TOOL_REFERENCES:
        raise Refusal(
            f"compaction: `messages` refers to {len(found)} tools; a block stands for at most "
            f"{_MAX_TOOL_REFERENCES}",
            code="compaction_too_many_tool_references",
        )
    last = said[-1]
    open_call = any(block.get("type") == "tool_use" for block in blocks_of(last))
    if last.get("role") == "assistant" and open_call:
        raise Refusal(
            "compaction: the last assistant turn is not finished; it has unanswered tool calls",
            code="compaction_incomplete_turn",
        )


def _found(block: Json) -> list[str]:
    """Names of the tools that a search's result refers to."""
    content = block.get("content")
    inner = content.get("tool_references") if isinstance(content, dict) else content
    references = [e for e in objects(inner) if e.get("type") == "tool_reference"]
    return [text_of(reference.get("tool_name")) for reference in references]


def open_window(request: Request, blocks: list[Block], seal: Seal) -> Window:
    """The blocks that count, given the compaction blocks among them.

    Raises:
        Refusal: a block without its beta header, misplaced, doubled, changed, or not signed here.
    """
    held = [
        (index, block)
        for index, block in enumerate(blocks)
        if block.data.get("type") == "compaction"
    ]
    for _, block in held:
        _refuse_malformed(request, block)
    filled = [(index, block) for index, block in held if block.data.get("content") is not None]
    if any(block.data.get("signature") for _, block in filled):
        return _adopt(request, blocks, filled, seal)
    start = filled[-1][0] if filled else 0
    kept = [block for block in blocks[start:] if block.data.get("content", "") is not None]
    return Window(kept, None)


def _refuse_malformed(request: Request, block: Block) -> None:
    if not request.betas & {COMPACT_ON_DEMAND, COMPACT_AT_THRESHOLD}:
        raise Refusal(
            f"{block.path}: Input tag 'compaction' found using 'type' does not match any of the "
            "expected tags"
        )
    for name in block.data:
        if name not in _BLOCK_FIELDS:
            raise Refusal(f"{block.path}.compaction.{name}: Extra inputs are not permitted")
    if block.data.get("content") == "":
        raise Refusal(f"{block.path}.compaction.content: String should have at least 1 character")


def _adopt(
    request: Request, blocks: list[Block], filled: list[tuple[int, Block]], seal: Seal
) -> Window:
    if len(filled) > 1:
        raise Refusal(
            "messages: more than one `compaction` block; send only the newest one",
            code="compaction_block_ambiguous",
        )
    index, block = filled[0]
    if index or block.role == "system":
        raise Refusal(
            f"{block.path}: the `compaction` block must be the first block of the conversation",
            code="compaction_block_misplaced",
        )
    payload = seal.open(_KIND, block.data.get("signature"))
    if payload is None:
        raise Refusal(
            f"{block.path}: Invalid `signature` in `compaction` block",
            code="compaction_signature_invalid",
        )
    if payload["c"] != digest(text_of(block.data.get("content"))):
        raise Refusal(
            f"{block.path}: `content` differs from the text that was signed",
            code="compaction_content_mismatch",
        )
    if block.data.get("tool_changes") != payload["t"]:
        raise Refusal(
            f"{block.path}: `tool_changes` differs from what was returned with the block",
            code="compaction_tool_changes_mismatch",
        )
    tail = blocks[1].role if len(blocks) > 1 else "user"
    bound = text_of(payload["p"])
    if tail in {payload["r"], "system"}:
        bound = digest("joined", bound)
    return Window(blocks, Adopted(text_of(payload["b"]), bound))


def signed_block(prompt: Prompt, blocks: list[Block], content: str, seal: Seal) -> Json:
    """The block of an on-demand compaction."""
    payload = {
        "c": digest(content),
        "t": [],
        "b": prompt.base,
        "p": prompt.bound_to,
        "r": blocks[-1].role if blocks else "user",
    }
    signature = seal.close(_KIND, payload)
    return {"type": "compaction", "content": content, "signature": signature, "tool_changes": []}


def threshold_block(content: str, blocks: list[Block], seal: Seal) -> Json:
    """The block of a compaction at a threshold."""
    covered = digest(*[canonical(block.data) for block in blocks])
    sealed = seal.close("compacted", {"covered": covered})
    return {"type": "compaction", "content": content, "encrypted_content": sealed}


class Threshold(NamedTuple):
    """When to compact, and whether to stop after it."""

    tokens: int
    pause: bool


def threshold_of(request: Request) -> Threshold | None:
    """What the request says about compaction at a threshold.

    Raises:
        Refusal: an unknown edit, one without its beta header, a trigger that is too small, a model without compaction.
    """
    found: Threshold | None = None
    management = object_of(request.body.get("context_management"))
    for number, edit in enumerate(objects(management.get("edits"))):
        where = f"context_management.edits.{number}"
        if edit.get("type") != _EDIT:
            raise Refusal(f"{where}.type: this stand-in performs '{_EDIT}' only")
        if COMPACT_AT_THRESHOLD not in request.betas:
            raise Refusal(f"{where}: requires the beta header {COMPACT_AT_THRESHOLD}")
        if not request.facts.compacts:
            raise Refusal(f"{where}: compaction is not supported on this model")
        trigger = object_of(edit.get("trigger")).get("value", _DEFAULT_TRIGGER)
        if not isinstance(trigger, int) or trigger < _LEAST_TRIGGER:
            raise Refusal(
                f"{where}.trigger.value: Input should be greater than or equal to {_LEAST_TRIGGER}"
            )
        found = Threshold(trigger, bool(edit.get("pause_after_compaction")))
    return found


def summary_of(blocks: list[Block]) -> str:
    """A summary by rule: how much was said, and the newest user text's beginning."""
    texts = [text_of(b.data.get("text")) for b in blocks if b.role == "user" and b.data.get("text")]
    last = texts[-1][:120] if texts else "nothing"
    return f"{len(blocks)} blocks were summarized; the user last said: {last}"
