"""A Messages request read once: body, headers, model, and what its beta headers unlock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxengine.engine.wire.rule import loads
from ctxengine.providers.strict_local.exchange import Call, Json, objects, text_of
from ctxengine.providers.strict_local.models import ClaudeFacts, Window, claude_facts, window_of
from ctxengine.providers.strict_local.refusal import Refusal

CURRENT_VERSION = "2026-10-21"
OLD_VERSION = "2023-06-01"
COMPACT_ON_DEMAND = "compact-2026-09-04"
COMPACT_AT_THRESHOLD = "compact-2026-01-12"
CONTEXT_MANAGEMENT = "context-management-2025-06-27"
BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
MAX_BODY_BYTES = 32 * 1024 * 1024
THINKING = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request, not yet checked."""

    body: Json
    model: str
    facts: ClaudeFacts
    window: Window
    version: str
    betas: frozenset[str]

    @property
    def messages(self) -> list[Json]:
        """The messages."""
        return objects(self.body.get("messages"))

    @property
    def tools(self) -> list[Json]:
        """The tool definitions, deferred ones included."""
        return objects(self.body.get("tools"))

    @property
    def compacts(self) -> bool:
        """Whether this asks for a compaction and for nothing else."""
        return isinstance(self.body.get("compaction"), dict)

    @property
    def thinking_type(self) -> str | None:
        """What the request says about thinking; None when it says nothing."""
        thinking = self.body.get("thinking")
        return text_of(thinking.get("type")) if isinstance(thinking, dict) else None

    @property
    def thinks(self) -> bool:
        """Whether the answer has thinking."""
        if self.thinking_type is None:
            return self.facts.always_thinks
        return self.thinking_type in {"enabled", "adaptive"}


def read(call: Call, windows: Mapping[str, int]) -> Request:
    """Read headers and body.

    Raises:
        Refusal: no version, an unknown one, too many bytes, no JSON object, no model, or an unknown one.
    """
    version = call.headers.get("anthropic-version")
    if version is None:
        raise Refusal("anthropic-version: header is required")
    if version not in {CURRENT_VERSION, OLD_VERSION}:
        raise Refusal(f'anthropic-version: "{version}" is not a valid version')
    if len(call.body) > MAX_BODY_BYTES:
        raise Refusal("Request exceeds the maximum allowed number of bytes.", status=413)
    body = _parsed(call.body)
    model = body.get("model")
    if not isinstance(model, str):
        raise Refusal("model: Field required")
    facts = claude_facts(model)
    if facts is None:
        raise Refusal(f"model: {model}", status=404)
    betas = frozenset(
        name.strip() for name in call.headers.get("anthropic-beta", "").split(",") if name.strip()
    )
    return Request(body, model, facts, window_of("anthropic", model, windows), version, betas)


def blocks_of(message: Json) -> list[Json]:
    """Content of a message as blocks; a text is one text block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def _parsed(data: bytes) -> Json:
    try:
        body = loads(data)
    except (ValueError, RecursionError) as error:
        raise Refusal("The request body is not valid JSON") from error
    if not isinstance(body, dict):
        raise Refusal("The request body is not a JSON object")
    return body
