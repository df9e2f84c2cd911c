"""An Anthropic request body read once for all rules: turns as the API joins them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctxengine.engine.wire.rule import objects


class Block(NamedTuple):
    """One content block and where it stands."""

    message: int
    position: int
    type: str
    data: dict[str, Any]

    @property
    def path(self) -> str:
        """JSON path of the block."""
        return f"$.messages[{self.message}].content[{self.position}]"

    def text(self, key: str) -> str:
        """A string member; empty when it is anything else."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""


@dataclass(slots=True)
class Turn:
    """Neighbouring messages of one role, which the API joins."""

    role: str
    message: int
    blocks: list[Block] = field(default_factory=list)

    def of(self, kind: str) -> list[Block]:
        """Its blocks of one type."""
        return [block for block in self.blocks if block.type == kind]


@dataclass(slots=True)
class Request:
    """A body read once for all rules."""

    body: dict[str, Any]
    turns: list[Turn]
    empty: list[int]
    """Messages without content, but for a final assistant one."""
    marked: list[tuple[dict[str, Any], str]]
    """Everything with a cache marker and its path, in the order in which the API reads it."""

    def blocks(self, *kinds: str) -> Iterator[Block]:
        """All blocks of these types."""
        return (b for turn in self.turns for b in turn.blocks if b.type in kinds)

    def steps(self) -> Iterator[tuple[Turn, Turn | None]]:
        """Each assistant turn with the turn after it."""
        for index, turn in enumerate(self.turns):
            if turn.role == "assistant":
                yield turn, self.turns[index + 1] if index + 1 < len(self.turns) else None


def read(body: dict[str, Any]) -> Request:
    """Join neighbours of one role and index the blocks."""
    turns: list[Turn] = []
    empty: list[int] = []
    messages = objects(body.get("messages"))
    for number, message in enumerate(messages):
        role, content = str(message.get("role")), message.get("content")
        if not content and not (role == "assistant" and number == len(messages) - 1):
            empty.append(number)
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, number))
        if isinstance(content, str) and content:
            content = [{"type": "text", "text": content}]
        turns[-1].blocks += [
            Block(number, index, str(data.get("type")), data)
            for index, data in enumerate(objects(content))
        ]
    return Request(body, turns, empty, [*_marked(body, turns)])


def _marked(body: dict[str, Any], turns: list[Turn]) -> Iterator[tuple[dict[str, Any], str]]:
    for key in ("tools", "system"):
        for index, data in enumerate(objects(body.get(key))):
            if data.get("cache_control"):
                yield data, f"$.{key}[{index}]"
    for turn in turns:
        for block in turn.blocks:
            for index, data in enumerate(objects(block.data.get("content"))):
                if data.get("cache_control"):
                    yield data, f"{block.path}.content[{index}]"
            if block.data.get("cache_control"):
                yield block.data, block.path
    if body.get("cache_control"):
        yield body, "$"
