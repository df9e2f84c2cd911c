"""Signed thinking: what a signature holds, and when a block that comes back is refused or dropped (providers.md 2.2).

A signature holds the model, the digest of all that stood before the block (thinking left out), and the thinking block
before it. So blocks may be taken away from the start, from the end, or all together, and nothing else may change.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ctxengine.providers.strict_local.anthropic_request import THINKING, Request
from ctxengine.providers.strict_local.exchange import Json, object_of, text_of
from ctxengine.providers.strict_local.models import claude_facts
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.signatures import Seal, digest

_KIND = "thinking"


class Block(NamedTuple):
    """A content block, the role of its message, and where it stands."""

    role: str
    path: str
    data: Json


def sign(seal: Seal, *, model: str, bound_to: str, previous: str, thinking: str) -> str:
    """The signature of a new block.

    Args:
        seal: the provider's seal.
        model: the model's name.
        bound_to: digest of all that stands before the block.
        previous: signature of the thinking block before it, empty when there is none.
        thinking: its text.
    """
    payload = {
        "m": model,
        "p": bound_to,
        "v": digest(previous) if previous else "",
        "t": digest(thinking),
    }
    return seal.close(_KIND, payload)


Verdict = Literal["kept", "model_binding_mismatch", "prefix_binding_mismatch"]


class Verifier:
    """Checks the thinking blocks of one request in their order."""

    def __init__(self, request: Request, seal: Seal, latest_message: str) -> None:
        """`latest_message` is the path of the newest assistant message."""
        self._request = request
        self._seal = seal
        self._latest = latest_message
        self.previous = ""
        """Signature of the newest block that was kept."""

    def verdict(self, block: Block, bound_to: str) -> Verdict:
        """Whether a block stays, or why it is dropped.

        Raises:
            Refusal: a signature not made here, changed text, or another conversation.
        """
        kind = text_of(block.data.get("type"))
        signature = text_of(block.data.get("signature" if kind == "thinking" else "data"))
        payload = self._seal.open(_KIND, signature)
        if payload is None:
            field = "signature" if kind == "thinking" else "data"
            raise Refusal(f"{block.path}: Invalid `{field}` in `{kind}` block")
        if kind == "thinking" and payload["t"] != digest(text_of(block.data.get("thinking"))):
            raise Refusal(self._changed(block))
        if not _readable(text_of(payload["m"]), self._request):
            return "model_binding_mismatch"
        if self._request.facts.binds_thinking and not self._in_place(payload, bound_to):
            return self._misplaced(block)
        self.previous = signature
        return "kept"

    def _in_place(self, payload: Json, bound_to: str) -> bool:
        in_order = not self.previous or payload["v"] == digest(self.previous)
        return bool(payload["p"] == bound_to) and in_order

    def _misplaced(self, block: Block) -> Verdict:
        binding = object_of(object_of(self._request.body.get("thinking")).get("block_binding"))
        if binding.get("prefix_mismatch_behavior") == "drop_block":
            return "prefix_binding_mismatch"
        raise Refusal(
            f"{block.path}: Invalid `signature` in `thinking` block. The block is bound to a "
            "different conversation: what comes before it has changed since it was created."
        )

    def _changed(self, block: Block) -> str:
        if block.path.startswith(f"{self._latest}."):
            return (
                f"{block.path}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the original "
                "response."
            )
        return f"{block.path}: Invalid `signature` in `thinking` block"


def _readable(maker: str, request: Request) -> bool:
    facts = claude_facts(maker)
    if facts is None:
        return True
    return facts.reads_only_own_thinking == request.facts.reads_only_own_thinking


def without_old_thinking(request: Request, blocks: list[Block]) -> list[Block]:
    """Blocks without the thinking of earlier turns, on models that strip it."""
    if request.facts.keeps_earlier_thinking:
        return blocks
    starts = [
        index
        for index, block in enumerate(blocks)
        if block.role == "user" and block.data.get("type") != "tool_result"
    ]
    turn = starts[-1] if starts else 0
    return [
        block
        for index, block in enumerate(blocks)
        if index >= turn or block.data.get("type") not in THINKING
    ]


def refuse_missing(request: Request, blocks: list[Block]) -> None:
    """Under manual thinking, refuse a tool loop whose last assistant message has lost its thinking.

    Raises:
        Refusal: the message begins with something else.
    """
    if request.thinking_type != "enabled" or not blocks:
        return
    if blocks[-1].role != "user" or not any(
        block.data.get("type") == "tool_result" for block in _last_turn(blocks, "user")
    ):
        return
    own = _last_turn(blocks, "assistant")
    if own and own[0].data.get("type") not in THINKING:
        raise Refusal(
            f"{own[0].path}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{own[0].data.get('type')}`. When `thinking` is enabled, a final `assistant` message "
            "must start with a thinking block (preceeding the lastmost set of `tool_use` and "  # codespell:ignore
            "`tool_result` blocks)."
        )


def _last_turn(blocks: list[Block], role: str) -> list[Block]:
    end = len(blocks)
    while end and blocks[end - 1].role != role:
        end -= 1
    start = end
    while start and blocks[start - 1].role == role:
        start -= 1
    return blocks[start:end]
