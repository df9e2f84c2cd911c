"""Items and units: what a session's history is made of (design 2).

An event is one message as it arrived; the items in it are addressed by (sequence, ordinal). Units are the
smallest things that cuts, yields and folds take out: a message, or an assistant's answer and whatever its calls brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ctxengine.engine.ids import EventSeq, ItemId, RunId
from ctxengine.engine.trust.levels import Trust


class ItemKind(StrEnum):
    """Kinds of ledger item that a request's conversation row can carry."""

    USER_MESSAGE = "user_message"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    SUMMARY = "summary"


class ContentFormat(StrEnum):
    """How the raw text of an event's body is written; the decoder of that name reads it back."""

    TEXT = "text"
    """The body is the message itself."""
    BLOCKS = "blocks"
    """A JSON array of content blocks in our own neutral form."""
    ANTHROPIC = "anthropic"
    """A JSON string or array: the `content` of an Anthropic message."""
    OPENAI_CHAT = "openai_chat"
    """A JSON object: one OpenAI Chat Completions message."""
    OPENAI_RESPONSES = "openai_responses"
    """A JSON array of OpenAI Responses items."""
    GOOGLE = "google"
    """A JSON object: one `content` of Gemini's generateContent."""
    OLLAMA = "ollama"
    """A JSON object: one message of Ollama's chat."""
    BEDROCK = "bedrock"
    """A JSON array of Bedrock Converse content blocks."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text as received: it may hold NUL, control characters and lone surrogates."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image, inline (base64 as received) or by address."""

    media_type: str | None = None
    base64: str | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class FilePart:
    """A document such as a PDF, inline (base64 as received) or by address."""

    media_type: str | None = None
    base64: str | None = None
    url: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """A block only one provider understands (a server tool, a compaction block), kept as its raw JSON text."""

    kind: str
    raw: str
    api: str
    """Wire API that understands it, such as `anthropic` (`WireApi`)."""


Part = TextPart | ImagePart | FilePart | ForeignPart


@dataclass(frozen=True, slots=True)
class Opaque:
    """One encrypted or signed reasoning block. It lives in the checkpoint alone (design 4)."""

    before: int
    """The block stands before the decoded item with this ordinal (or at the end, when equal to the item count)."""
    kind: str
    raw: str = field(repr=False)
    """Raw JSON text, replayed byte for byte inside its run."""
    api: str = ""
    before_part: int = 0
    """Inside that item, the block stands before the part with this index; 0 is in front of the whole item."""
    follower_id: str | None = None
    """Provider's id of the item it produced (Responses): the API wants both back together, or neither."""
    provider: str = ""
    """Whose reasoning it is, where a fallback leg has answered; empty: the session's own model's."""
    model: str = ""


@dataclass(frozen=True, slots=True)
class DecodedItem:
    """What a decoder finds in a body, before it has a place in a ledger."""

    ordinal: int
    kind: ItemKind
    parts: tuple[Part, ...] = ()
    call_id: str | None = None
    """The provider's own call id, as received."""
    name: str | None = None
    """Tool name, as received."""
    arguments: str | None = None
    """Call arguments as received: a text that may not be JSON at all."""
    is_error: bool = False
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One ledger item with its content and the facts derived at append."""

    id: ItemId
    kind: ItemKind
    trust: Trust
    run: RunId | None
    parts: tuple[Part, ...]
    tokens: int
    """Counted once at append: nearest tokenizer times class prior, framing included, factor not applied."""
    digest: str
    """sha256 (hex) of the item's canonical text."""
    bytes_len: int = 0
    """UTF-8 length of the content as received."""
    wire_call_id: str | None = None
    """Session-unique id that fits every API; equal to the received id where that was possible."""
    call_id: str | None = None
    name: str | None = None
    """Tool name in the ledger's own spelling (not a wire name)."""
    arguments: str | None = None
    is_error: bool = False
    source: str = ""
    """What an envelope names as the origin, for example `tool:web.fetch`."""
    pointer_tokens: int = 0
    """What the pointer form of this item costs; equal to `tokens` where there is no shorter form."""
    phase: str | None = None
    excerpt_limit: int = 0
    """Limit (bytes) under which a large result is shown as an excerpt, as counted at append; 0: counted whole."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The atom of every cut: a message, or an assistant step with all its results in call order."""

    items: tuple[Item, ...]
    sequence: EventSeq
    """Sequence of the event that opens the unit: the only place where a cut may fall."""
    last_sequence: EventSeq
    """Highest sequence among its items; below a run's seed the whole unit must lie."""
    tokens: int
    """Tokens of all items in normal form."""
    pointer_tokens: int
    """Tokens when every result stands as its pointer."""
    result_tokens: int
    """The share of `tokens` that tool results take."""
    user_tokens: int
    """The share of `tokens` that messages of user trust take."""

    @property
    def open_calls(self) -> tuple[Item, ...]:
        """Calls of this step that no result has answered yet."""
        answered = {i.wire_call_id for i in self.items if i.kind is ItemKind.TOOL_RESULT}
        return tuple(
            i for i in self.items if i.kind is ItemKind.TOOL_CALL and i.wire_call_id not in answered
        )


def unit_of(items: Sequence[Item]) -> Unit:
    """Make a unit from its items, the opening event's first. Results are put in the order of their calls."""
    calls = {
        item.wire_call_id: place
        for place, item in enumerate(items)
        if item.kind is ItemKind.TOOL_CALL
    }
    said = [item for item in items if item.kind is not ItemKind.TOOL_RESULT]
    results = [item for item in items if item.kind is ItemKind.TOOL_RESULT]
    results.sort(key=lambda item: calls.get(item.wire_call_id, len(calls)))
    ordered = (*said, *results)
    return Unit(
        items=ordered,
        sequence=min(item.id.sequence for item in items),
        last_sequence=max(item.id.sequence for item in items),
        tokens=sum(item.tokens for item in items),
        pointer_tokens=sum(item.pointer_tokens for item in items),
        result_tokens=sum(item.tokens for item in results),
        user_tokens=sum(
            item.tokens
            for item in said
            if item.kind is ItemKind.USER_MESSAGE and item.trust is Trust.USER
        ),
    )


PARENT_SOURCE = "parent"
"""Source of what a parent run tells its child: written by a model, and the child's instruction all the same."""


PLATFORM_SOURCE = "platform"
"""Source of what the platform itself says: refusals, acknowledgements, a guard's words."""


def speaks_in_user_role(kind: ItemKind, trust: Trust, source: str) -> bool:
    """Whether a message stands bare, attributed by the user's role alone (design 7.6).

    That is the user's own words, an instruction from a parent run, which must be obeyed though it stays MODEL, and what the
    platform itself says to the model inside a turn.
    """
    if kind is not ItemKind.USER_MESSAGE:
        return False
    if trust is Trust.PLATFORM:
        return source == PLATFORM_SOURCE
    return trust is Trust.USER or (trust is Trust.MODEL and source == PARENT_SOURCE)


QUOTE_SOURCE = "quote:"
"""How the source of evidence begins that a guard quotes beside its words."""


def said_by_a_guard(item: Item) -> bool:
    """Whether a message of the user's role is the platform's: a guard's words, or what it quotes."""
    return item.source == PLATFORM_SOURCE or item.source.startswith(QUOTE_SOURCE)
