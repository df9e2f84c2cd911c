"""What every wire renderer takes and gives (design 5 and 6).

A renderer turns neutral messages, whose content is already enveloped and free of anything a wire
cannot carry, into ready bytes. Fragments are independent of their neighbours, so that each can be
rendered once and joined for ever after.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol


class WireApi(StrEnum):
    """Wire APIs with a renderer."""

    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai"
    OPENAI_RESPONSES = "openai-responses"
    GOOGLE = "google"
    OLLAMA = "ollama"
    BEDROCK = "bedrock"


@dataclass(frozen=True, slots=True)
class WireText:
    """Non-empty text that encodes to UTF-8 strictly."""

    text: str


@dataclass(frozen=True, slots=True)
class WireImage:
    """An image inline (base64) or by address."""

    media_type: str | None
    base64: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class WireFile:
    """A document inline (base64) or by address."""

    media_type: str | None
    base64: str | None = None
    url: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class WireCall:
    """A tool call.

    `arguments` is the text of a JSON object, kept as it was written wherever it parsed to one.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class WireResult:
    """The answer to one call, content enveloped and never empty."""

    call_id: str
    name: str
    content: tuple[WireText | WireImage | WireFile, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class WireOpaque:
    """Raw JSON text that goes back byte for byte: reasoning, or a provider's own block."""

    raw: str = field(repr=False)
    kind: str = "reasoning"
    follower_id: str | None = None
    """Provider's id under which the part right behind goes out (`Opaque.follower_id`)."""


WirePart = WireText | WireImage | WireFile | WireCall | WireResult | WireOpaque


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One role's turn.

    A step is an assistant message and, when it called tools, a user message of results.
    """

    role: Literal["user", "assistant"]
    parts: tuple[WirePart, ...]
    phase: str | None = None
    """Responses API `phase` of an assistant message, where the provider gave one."""


@dataclass(frozen=True, slots=True)
class WireTool:
    """A tool definition as the model sees it: name in wire form, schema as canonical JSON text."""

    name: str
    description: str
    input_schema: str


@dataclass(frozen=True, slots=True)
class WirePrefix:
    """Region A in logical order: system texts (rows 1-4 and 6-8) and tool definitions (row 5)."""

    system: tuple[str, ...]
    tools: tuple[WireTool, ...]
    deferred: tuple[WireTool, ...] = ()
    """Definitions that the provider keeps aside for its own search; only where `tool_search` says that it can."""


@dataclass(frozen=True, slots=True)
class WireParams:
    """Request parameters outside the prompt."""

    model: str
    max_output_tokens: int
    session_key: str
    """Provider cache routing key (`session-` and 32 hex characters)."""
    window: int = 0
    """The model's context window in tokens, for an API that must be told; 0 leaves it unsaid."""
    betas: tuple[str, ...] = ()
    """Beta names that the request must carry; the body names them as the SDK's beta methods take them."""
    compact_threshold: int = 0
    """Tokens from which on the provider is to compact by itself; 0 leaves that out."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Ready bytes of a message or of a part of one."""

    role: str
    """Role for APIs that join neighbours of one role into one message; empty where `data` is whole
    messages.
    """
    data: bytes
    """Comma-separated JSON values: blocks when `role` is set, messages or items otherwise."""
    positions: int = 1
    """Cache positions (blocks) in `data`; what a provider's look-back counts."""
    markable: bool = True
    """Whether a cache marker may stand on the last block."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A cache breakpoint asked for: on the prefix or after the n-th fragment."""

    name: str
    """`after_tools`, `after_system`, `after_cards`, `carried_history`, `run` or `intermediate`."""
    after_fragment: int | None = None
    """Index of the last fragment the cached prefix includes; None for the two prefix markers."""
    ttl: Literal["5m", "1h"] = "5m"


class WireRenderer(Protocol):
    """One provider API: how neutral messages become its request body."""

    api: WireApi
    version: str
    states_window: bool
    """Whether the body says how large the model's window is."""

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Render one message. Pure; equal messages give equal bytes."""
        ...

    def prefix_bytes(self, prefix: WirePrefix) -> bytes:
        """Region A as it stands on the wire, markers excluded: what `wire_prefix_sha256` hashes."""
        ...

    def body(
        self,
        prefix: WirePrefix,
        fragments: tuple[Fragment, ...],
        params: WireParams,
        markers: tuple[Marker, ...] = (),
    ) -> bytes:
        """The whole request body as UTF-8 JSON.

        Without markers the bytes never depend on cache settings.
        """
        ...
