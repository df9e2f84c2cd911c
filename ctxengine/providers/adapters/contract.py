"""What every adapter does, and the values that go in and come out.

An adapter renders a neutral prompt to its provider's wire form, sends it, and reads the answer back into neutral values.
It never decides what is in a prompt, never retries and never logs content; callers own time, retries and records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from ctxengine.engine.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class PromptTool:
    """A tool that a side call offers (a probe's acknowledgement, say)."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a side call."""

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Tool calls of an assistant message: (id, name, arguments as JSON text)."""
    results: tuple[tuple[str, str], ...] = ()
    """Tool results of a user message: (call id, text)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A side call before it is rendered: a purpose-built prompt, never a turn's own request."""

    model: str
    messages: tuple[PromptMessage, ...]
    system: str = ""
    tools: tuple[PromptTool, ...] = ()
    max_output_tokens: int = 1024
    session_key: str = ""
    """Routes consecutive calls to the same cache where the provider has such a key."""
    window: int = 0
    """Tokens of context that a server of one's own is told to use (Ollama); 0 asks for what the prompt needs."""


class Stop(StrEnum):
    """Why a completion ended."""

    END = "end"
    """A normal stop: the only one after which a summary may be installed (design 7.9)."""
    OUTPUT_LIMIT = "output_limit"
    WINDOW = "window"
    TOOL = "tool"
    REFUSAL = "refusal"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Completion:
    """What a provider answered."""

    text: str
    stop: Stop
    stop_raw: str
    calls: tuple[tuple[str, str, str], ...]
    """Tool calls: (id, name, arguments as received)."""
    usage: Usage | None
    """Disjoint buckets in tokens; None when nothing usable was reported."""
    model: str
    response_id: str
    latency_ms: int
    first_token_ms: int | None = None
    """Only where the call was streamed."""
    cache_miss_reason: str = ""
    """The provider's own word for a cache miss, where it gives one."""
    raw: str = field(default="", repr=False)
    """The response body as received; never logged."""


class ProviderError(Exception):
    """A side call failed. Holds no prompt text, no key and no raw SDK error.

    Codes: `over_length`, `rate_limited`, `transient`, `auth`, `invalid_request`, `too_large`, `no_key`, `not_allowed` (base URL
    outside the operator's list), `not_supported`, `bad_answer` (the reply could not be read), `count_unavailable`,
    `cancelled`.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        actual: int | None = None,
        maximum: int | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        """Our own words, safe to store and show."""
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.actual = actual
        """Tokens the provider counted, for `over_length`."""
        self.maximum = maximum
        """Tokens the provider allows, for `over_length`."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a provider says of one of its models; None where it does not say."""

    name: str
    window: int | None
    """Tokens."""
    max_output: int | None
    """Tokens."""
    digest: str = ""
    """Changes when the model behind the name does."""


Cancelled = Callable[[], bool]
"""Asked between chunks and before sending; True ends the call with `ProviderError("cancelled")`."""


def never_cancelled() -> bool:
    """For calls that nobody can cancel."""
    return False


class Adapter(Protocol):
    """One provider.

    `name` is its name in REST (`anthropic`, `openai`, `openai-responses`, `google`, `openrouter`,
    `openrouter-responses`, `ollama`, `bedrock`, `compatible`); `api` names its wire renderer.
    """

    name: str
    api: str

    def render(self, prompt: Prompt) -> dict[str, Any]:
        """The wire body of a prompt, JSON-ready."""
        ...

    def send(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> Completion:
        """Send a wire body and read the answer.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        ...

    def count(self, body: dict[str, Any], *, timeout_s: float) -> int | None:
        """Input tokens of a body by the provider's own counting endpoint; None where it has none.

        Raises:
            ProviderError: it has one and it failed.
        """
        ...

    def models(self, *, timeout_s: float) -> Sequence[ModelInfo]:
        """The models on offer, by the provider's own list; also the health check.

        Raises:
            ProviderError: unreachable, no key, refused.
        """
        ...


@dataclass(frozen=True, slots=True)
class NativeWindow:
    """A provider's own replacement for the messages it was shown: opaque, for that provider and model alone."""

    items: tuple[str, ...] = field(repr=False)
    """Raw JSON text of each block or item, in order, to be sent back byte for byte. Empty when the provider made no summary,
    which it bills all the same."""
    usage: Usage | None
    model: str
    response_id: str
    stop_raw: str
    """The provider's word for how it ended."""
    latency_ms: int


class NativeCompactor(Protocol):
    """An adapter whose provider compacts a conversation itself and counts one exactly (providers.md 4 and 5)."""

    name: str

    def compact(
        self, body: dict[str, Any], *, timeout_s: float, cancelled: Cancelled = never_cancelled
    ) -> NativeWindow:
        """Have the provider compact what a request body holds; the body is that of an ordinary request.

        Raises:
            ProviderError: anything else than a readable answer.
        """
        ...

    def count_exactly(self, body: dict[str, Any], *, timeout_s: float) -> int:
        """Input tokens of a body by the provider's own endpoint.

        Raises:
            ProviderError: `count_unavailable` where it has no such endpoint; otherwise why the count failed.
        """
        ...
