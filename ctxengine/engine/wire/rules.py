"""The one table of validity rules, and the check of a whole body against it.

Pages and documents render `RULES`; nothing repeats it. A check reads the body once and each rule
walks it once, so its cost follows the length of the body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxengine.engine.wire import (
    anthropic_turns,
    rules_anthropic,
    rules_bedrock,
    rules_chat,
    rules_google,
    rules_ollama,
    rules_responses,
)
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rule import Rule, Violation, loads

__all__ = ["RULES", "Rule", "Violation", "violations"]

RULES: tuple[Rule, ...] = (
    *rules_anthropic.RULES,
    *rules_chat.RULES,
    *rules_responses.RULES,
    *rules_google.RULES,
    *rules_ollama.RULES,
    *rules_bedrock.RULES,
)
"""Every rule of every API, in the order in which breaches are reported."""

_RULES_OF = {
    (api, stage): tuple(rule for rule in RULES if rule.api is api and rule.stage == stage)
    for api in WireApi
    for stage in ("bytes", "request")
}
_READERS: dict[WireApi, Callable[[dict[str, Any]], object]] = {
    WireApi.ANTHROPIC: anthropic_turns.read,
    WireApi.OPENAI_CHAT: rules_chat.read,
    WireApi.OPENAI_RESPONSES: rules_responses.read,
    WireApi.GOOGLE: rules_google.read,
    WireApi.OLLAMA: rules_ollama.read,
    WireApi.BEDROCK: rules_bedrock.read,
}


def violations(api: WireApi, body: bytes) -> tuple[Violation, ...]:
    """Every breach of the API's rules in a request body; empty when it may be sent.

    A body that is no JSON object in whole characters is reported for that alone.
    """
    value = _read_whole(body)
    if value is None:
        broken = _breaches(_RULES_OF[api, "bytes"], body)
        if broken:
            return broken
        value = loads(body)
    return _breaches(_RULES_OF[api, "request"], _READERS[api](value))


def _read_whole(body: bytes) -> dict[str, Any] | None:
    """The body's object where nothing about its bytes can be wrong; None where the rules have to look."""
    if b"\\ud" in body or b"\\uD" in body:
        return None
    try:
        value = loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _breaches(rules: tuple[Rule, ...], subject: object) -> tuple[Violation, ...]:
    return tuple(
        Violation(rule.id, found.path, found.message)
        for rule in rules
        for found in rule.check(subject)
    )
