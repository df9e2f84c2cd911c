"""The prompt of a Messages request as segments: tools, then system, then messages (providers.md 1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ctxengine.providers.strict_local.anthropic_request import THINKING, Request, blocks_of
from ctxengine.providers.strict_local.anthropic_thinking import (
    Block,
    Verdict,
    Verifier,
    refuse_missing,
    without_old_thinking,
)
from ctxengine.providers.strict_local.counting import Counter, source_data
from ctxengine.providers.strict_local.exchange import Json, dump, object_of, objects, text_of
from ctxengine.providers.strict_local.segments import Chain, Segment, chain_of
from ctxengine.providers.strict_local.signatures import Seal, digest

_MOVED: Verdict = "prefix_binding_mismatch"
_JOINED = frozenset({"tool_use", "tool_result"})
"""Runs of these count as one cache position."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A signed compaction block at the front: what its range was bound to."""

    base: str
    bound_to: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model would read."""

    chain: Chain
    base: str
    """Digest of tools and system."""
    bound_to: str
    """Digest of everything but thinking, to the end."""
    previous_thinking: str
    """Signature of the newest thinking block."""
    transformations: tuple[Json, ...] = ()
    """Thinking blocks that were dropped, and why."""
    facets: tuple[tuple[str, str], ...] = field(default=())
    """What cache diagnostics compare."""

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return self.chain.tokens


def flatten(request: Request) -> list[Block]:
    """Every block of the messages with its role and place."""
    return [
        Block(text_of(message.get("role")), f"messages.{number}.content.{index}", block)
        for number, message in enumerate(request.messages)
        for index, block in enumerate(blocks_of(message))
        if message.get("role") != "system" or request.facts.heeds_system_messages
    ]


def build(
    request: Request,
    blocks: list[Block],
    counter: Counter,
    seal: Seal,
    adopted: Adopted | None = None,
) -> Prompt:
    """Read tools, system and the given blocks into a prompt.

    Raises:
        Refusal: a thinking block that may not stand where it stands.
    """
    builder = _Builder(request, counter, seal, blocks)
    head = builder.tools() + builder.system()
    base = _bound(head, "")
    start = base
    if adopted is not None:
        start = adopted.bound_to if adopted.base == base else digest("rebased", base)
    refuse_missing(request, blocks)
    body, bound_to = builder.messages(without_old_thinking(request, blocks), start, adopted)
    segments = _with_automatic_marker(head + body, request)
    return Prompt(
        chain_of(segments, _seeds(request)),
        base,
        bound_to,
        builder.verifier.previous,
        tuple(builder.transformations),
        (
            ("model", request.model),
            ("tools", digest(*[s.data for s in head if s.section == "tools"])),
            ("system", digest(*[s.data for s in head if s.section == "system"])),
        ),
    )


class _Builder:
    """Makes segments and keeps count of cache positions."""

    def __init__(self, request: Request, counter: Counter, seal: Seal, blocks: list[Block]) -> None:
        latest = next((b.path for b in reversed(blocks) if b.role == "assistant"), "")
        self.verifier = Verifier(request, seal, latest.rpartition(".content.")[0])
        self.transformations: list[Json] = []
        self._request = request
        self._counter = counter
        self._deferred = {
            text_of(tool.get("name")): tool for tool in request.tools if tool.get("defer_loading")
        }
        self._position = 0
        self._before: tuple[str, str] = ("", "")

    def tools(self) -> list[Segment]:
        made: list[Segment] = []
        once = self._counter.tools_once(self._request.model)
        for number, tool in enumerate(self._request.tools):
            if tool.get("defer_loading"):
                continue
            text = canonical(tool)
            tokens = self._counter.tool(text, self._request.model) + (0 if made else once)
            made.append(self._segment("tools", text, tokens, f"tools.{number}", tool))
        return made

    def system(self) -> list[Segment]:
        system = self._request.body.get("system")
        blocks = [{"type": "text", "text": system}] if isinstance(system, str) else objects(system)
        return [
            self._segment("system", canonical(block), self._tokens(block), f"system.{i}", block)
            for i, block in enumerate(blocks)
        ]

    def messages(
        self, blocks: list[Block], start: str, adopted: Adopted | None
    ) -> tuple[list[Segment], str]:
        made: list[Segment] = []
        bound, role, dropping = start, "", False
        for index, block in enumerate(blocks):
            thinking = block.data.get("type") in THINKING
            if thinking:
                verdict = _MOVED if dropping else self.verifier.verdict(block, bound)
                dropping = verdict == _MOVED
                if verdict != "kept":
                    self._report(block, verdict)
                    continue
            dropping = False
            frame = 0 if block.role == role else self._counter.message(self._request.model)
            role = block.role
            segment = self._message_segment(block, frame, reasoning=thinking)
            made.append(segment)
            covered = adopted is not None and index == 0
            if not thinking and not covered:
                bound = digest(bound, segment.data)
        return made, bound

    def _report(self, block: Block, verdict: Verdict) -> None:
        self.transformations.append(
            {"type": "thinking_dropped", "path": block.path, "reason": verdict}
        )

    def _message_segment(self, block: Block, frame: int, *, reasoning: bool) -> Segment:
        loaded = "".join(canonical(self._deferred[name]) for name in self._referenced(block.data))
        tokens = frame + self._tokens(block.data)
        if loaded:
            tokens += self._counter.tool(loaded, self._request.model)
        kind = text_of(block.data.get("type"))
        key = (block.role, kind) if kind in _JOINED else ("", "")
        joined = bool(key[0]) and key == self._before
        self._before = key
        data = f"{block.role}:{canonical(block.data)}{loaded}"
        made = self._segment("messages", data, tokens, block.path, block.data, joined=joined)
        return replace(made, reasoning=reasoning)

    def _referenced(self, block: Json) -> list[str]:
        content = block.get("content")
        inner = object_of(content).get("tool_references") if isinstance(content, dict) else content
        names = [text_of(entry.get("tool_name")) for entry in objects(inner)]
        return [name for name in names if name in self._deferred]

    def _segment(
        self, section: str, data: str, tokens: int, path: str, source: Json, *, joined: bool = False
    ) -> Segment:
        self._position += 0 if joined else 1
        return Segment(section, data, tokens, path, self._position, _marker(source))

    def _tokens(self, block: Json) -> int:
        model, counter = self._request.model, self._counter
        kind = block.get("type")
        if kind in {"tool_use", "server_tool_use"}:
            arguments = dump(block.get("input")).decode()
            return counter.call(text_of(block.get("name")), arguments, model)
        if kind in {"tool_result", "compaction"}:
            content = block.get("content")
            if isinstance(content, str):
                return counter.call("", content, model)
            return counter.call("", "", model) + sum(self._tokens(b) for b in objects(content))
        if kind == "image":
            _, data = source_data(object_of(block.get("source")))
            return counter.image(data, "anthropic", model)
        if kind == "document":
            media_type, data = source_data(object_of(block.get("source")))
            return counter.file(data, media_type, "anthropic", model)
        if kind == "thinking":
            return counter.text(text_of(block.get("thinking")), model)
        if kind == "text":
            return counter.text(text_of(block.get("text")), model)
        return counter.text(canonical(block), model)


def canonical(value: Json) -> str:
    """A block's JSON without cache markers and empty members.

    The order of a block's own members says nothing; the order inside arguments and schemas is part of the prompt.
    """
    return dump(_block(value)).decode()


def _block(value: Json) -> Json:
    kept = sorted(key for key in value if key != "cache_control" and value[key] is not None)
    return {key: _content(value[key]) if key == "content" else value[key] for key in kept}


def _content(value: object) -> object:
    if isinstance(value, dict):
        return _block(value)
    if isinstance(value, list):
        return [_block(entry) if isinstance(entry, dict) else entry for entry in value]
    return value


def _marker(block: Json) -> str | None:
    for holder in (*objects(block.get("content")), block):
        control = holder.get("cache_control")
        if isinstance(control, dict):
            return text_of(control.get("ttl")) or "5m"
    return None


def _with_automatic_marker(segments: list[Segment], request: Request) -> list[Segment]:
    control = request.body.get("cache_control")
    if not isinstance(control, dict):
        return segments
    for index in range(len(segments) - 1, -1, -1):
        if not segments[index].reasoning:
            life = segments[index].marker or text_of(control.get("ttl")) or "5m"
            segments[index] = replace(segments[index], marker=life)
            break
    return segments


def _bound(segments: list[Segment], start: str) -> str:
    running = start
    for segment in segments:
        running = digest(running, segment.data)
    return running


def _seeds(request: Request) -> tuple[tuple[str, str], ...]:
    """What else decides whether a cached prefix matches, by the section from which it counts."""
    body = request.body
    web = sorted(
        text_of(tool.get("type"))
        for tool in request.tools
        if text_of(tool.get("type")).startswith("web_")
    )
    thinking = object_of(body.get("thinking"))
    images = any(
        entry.get("type") == "image"
        for message in request.messages
        for block in blocks_of(message)
        for entry in (block, *objects(block.get("content")))
    )
    inside = [
        body.get("tool_choice"),
        thinking.get("type"),
        thinking.get("budget_tokens"),
        object_of(body.get("output_config")).get("effort"),
        images,
    ]
    return (
        ("tools", request.model),
        ("system", dump([web, body.get("speed")]).decode()),
        ("messages", dump(inside).decode()),
    )
