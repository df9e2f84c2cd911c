"""What the engine renders is accepted, whatever the conversation, and its markers are read as they were meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given

from ctxengine.engine.wire.base import (
    Marker,
    WireApi,
    WireMessage,
    WirePrefix,
    WireResult,
    WireTool,
)
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider
from tests.engine.wire.conversations import PARAMS, PIXEL, PREFIX, conversations

PATHS = {
    WireApi.ANTHROPIC: "/v1/messages",
    WireApi.OPENAI_CHAT: "/v1/chat/completions",
    WireApi.OPENAI_RESPONSES: "/v1/responses",
}
MODELS = {
    "anthropic": ("claude-sonnet-4-6", "claude-opus-5-5"),
    "openai": ("gpt-5.6-sol", "gpt-4.1"),
    "openai-responses": ("gpt-5.6-sol", "gpt-6.1-terra"),
}
every_model = pytest.mark.parametrize(
    ("api", "model"), [(api, model) for api, models in MODELS.items() for model in models]
)
LARGE = WirePrefix(
    system=("You look after the house. " * 400,),
    tools=(*PREFIX.tools, WireTool("listen", "Listens. " * 50, '{"type":"object"}')),
)


def send(
    provider: StrictProvider,
    api: str,
    model: str,
    messages: Sequence[WireMessage],
    prefix: WirePrefix = PREFIX,
    *,
    marked: bool = False,
) -> Any:
    renderer = renderer_for(api)
    parts = tuple(f for message in messages for f in renderer.fragments(message))
    markers = (Marker("after_system"), Marker("run", len(parts) - 1)) if marked else ()
    body = renderer.body(prefix, parts, replace(PARAMS, model=model), markers)
    headers = {"authorization": "Bearer k", "anthropic-version": "2026-10-21"}
    answer = provider.handle(Call("POST", PATHS[renderer.api], headers, body))
    provider.begin(answer)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["usage"]


def read_and_written(usage: Any) -> tuple[int, int]:
    if "cache_read_input_tokens" in usage:
        return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
    return details["cached_tokens"], details["cache_write_tokens"]


@every_model
@given(conversations())
def test_every_rendered_conversation_is_accepted(
    api: str, model: str, messages: tuple[WireMessage, ...]
) -> None:
    send(StrictProvider(), api, model, messages)


@pytest.mark.parametrize(("api", "model"), [(api, models[0]) for api, models in MODELS.items()])
@given(conversations())
def test_a_longer_conversation_reads_what_a_shorter_one_wrote(
    api: str, model: str, messages: tuple[WireMessage, ...]
) -> None:
    # The first picture of a conversation moves Anthropic's messages out of the cache (providers 1.2).
    assume(api != "anthropic" or PIXEL not in _shown(messages))
    provider = StrictProvider()
    users = [n for n, message in enumerate(messages) if message.role == "user"]
    held = 0
    for end in users:
        usage = send(provider, api, model, messages[: end + 1], LARGE, marked=True)
        read, written = read_and_written(usage)
        assert read == held
        held = read + written


def _shown(messages: Sequence[WireMessage]) -> list[object]:
    parts = [part for message in messages for part in message.parts]
    return [
        inner
        for part in parts
        for inner in (part.content if isinstance(part, WireResult) else (part,))
    ]
