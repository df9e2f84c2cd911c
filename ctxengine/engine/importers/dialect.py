"""What a reader of one provider API offers, so that bodies, logs and recorded exchanges share it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ctxengine.engine.content.decode import ContentError, Role
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.shapes import Shape, decoded_shape
from ctxengine.engine.importers.transcript import EntryType, ForeignTool, ForeignUsage
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, NodeKind
from ctxengine.engine.trust.levels import Trust

Token = tuple[str, ...]
"""One thing said, as far as it can be recognised again: side, kind and content."""

Place = Callable[[int], str]
"""Words for the n-th turn's place in the file, counted from 0."""


Voice = tuple[EntryType, Trust]
"""What a user-role message is, and how far it is believed."""

USER_VOICE: Voice = (EntryType.USER, Trust.USER)


class Turn(NamedTuple):
    """One message (or Responses item) of a request or an answer, as it stands in the source."""

    role: str
    node: Node
    """The message for Chat, the `content` for Anthropic, the item for Responses."""

    @property
    def value(self) -> Any:
        """The same, decoded; it is the node's own and must not be changed."""
        return self.node.peek()


class Facts(NamedTuple):
    """What is known about one model call beside what it said."""

    model: str | None = None
    usage: ForeignUsage | None = None
    stop_reason: str | None = None
    at: str | None = None
    extra: str = ""


NO_FACTS = Facts()


class Request(NamedTuple):
    """A request body, read."""

    turns: list[Turn]
    model: str | None = None
    instructions: str = ""
    tools: Sequence[ForeignTool] = ()
    follows: str | None = None
    """Id of the answer it continues, where the API chains by id."""
    unread: Sequence[Node] = ()
    """Values in the place of its instructions that are none."""


class Answer(NamedTuple):
    """A response body, read."""

    turns: list[Turn]
    facts: Facts = NO_FACTS
    response_id: str | None = None
    dropped: int = 0
    """Further alternatives the response offered; only the first is part of the conversation."""


class Dialect(Protocol):
    """One provider API."""

    format: str
    provider: str

    def request(self, body: Node) -> Request:
        """Read a request body; what it does not hold is simply empty."""
        ...

    def answer(self, body: Node) -> Answer | None:
        """Read a response body; None when it holds no answer (an error, another object)."""
        ...

    def stream(self, events: Iterable[str]) -> str | None:
        """JSON text of the response that these streamed events make; None when they make none."""
        ...

    def tokens(self, turn: Turn) -> list[Token]:
        """What one turn says, for recognising repeated history."""
        ...

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Count turns and account for them in the draft."""
        ...


def text_at(node: Node | None, key: str) -> str | None:
    """A string member of an object, or None."""
    found = None if node is None else node.get(key)
    return None if found is None else found.text()


def array_at(node: Node, key: str) -> list[Node]:
    """Elements of an array member; empty when it is absent or something else."""
    found = node.get(key)
    return list(found) if found is not None and found.kind is NodeKind.ARRAY else []


def object_at(node: Node | None, key: str) -> Node | None:
    """An object member, or None."""
    found = None if node is None else node.get(key)
    return found if found is not None and found.kind is NodeKind.OBJECT else None


def joined(nodes: Iterable[Node]) -> str:
    """A JSON array of these values, each as it was written."""
    return "[" + ",".join(node.raw for node in nodes) + "]"


def shape_or_none(
    format: ContentFormat, body: str, quick: Shape | None, *, role: Role
) -> Shape | None:
    """The quick count, else the decoder's; None when the body cannot be decoded at all."""
    if quick is not None:
        return quick
    try:
        return decoded_shape(format, body, role=role)
    except ContentError:
        return None


def plain_text(content: Any) -> str:
    """All text of a content value: a string, or the text members of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def extra_of(record: Node, modelled: frozenset[str]) -> str:
    """Members of a record that nothing models, as one JSON object in their own words; empty when there are none."""
    rest = [f"{json.dumps(key)}:{node.raw}" for key, node in record.items() if key not in modelled]
    return "{" + ",".join(rest) + "}" if rest else ""


def take_instructions(draft: SessionDraft, text: str, shape: Shape, where: str) -> None:
    """A leading system message becomes (more of) the session's instructions."""
    draft.instructions = f"{draft.instructions}\n\n{text}" if draft.instructions else text
    draft.set_aside("instructions", where, "Became the session's instructions.", items=shape.total)


def dict_of(value: Any) -> dict[str, Any]:
    """The value, if it is an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The value, if it is an array; an empty one for anything else."""
    return value if isinstance(value, list) else []


def gist(text: str) -> str:
    """A text without its blanks: replays of an answer cut and trim it differently."""
    return "".join(text.split())
