"""A side call's prompt in wire form, by the renderer that turns' requests go through."""

from __future__ import annotations

import json
from typing import Any

from ctxengine.engine.canonical import canonical_text
from ctxengine.engine.wire.base import (
    WireCall,
    WireMessage,
    WireParams,
    WirePart,
    WirePrefix,
    WireResult,
    WireText,
    WireTool,
)
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.adapters.contract import Prompt, PromptMessage


def prompt_body(provider: str, prompt: Prompt) -> dict[str, Any]:
    """The body that a provider's API takes for this prompt, without cache markers."""
    renderer = renderer_for(provider)
    prefix = WirePrefix(
        system=(prompt.system,) if prompt.system else (),
        tools=tuple(
            WireTool(tool.name, tool.description, canonical_text(tool.input_schema))
            for tool in prompt.tools
        ),
    )
    names = {call_id: name for m in prompt.messages for call_id, name, _ in m.calls}
    fragments = tuple(
        fragment
        for message in prompt.messages
        for fragment in renderer.fragments(_message(message, names))
    )
    params = WireParams(prompt.model, prompt.max_output_tokens, prompt.session_key)
    body: dict[str, Any] = json.loads(renderer.body(prefix, fragments, params))
    if not prompt.session_key:
        body.pop("prompt_cache_key", None)
    return body


def _message(message: PromptMessage, names: dict[str, str]) -> WireMessage:
    parts: list[WirePart] = [
        WireResult(call_id, names.get(call_id, "tool"), (WireText(text),))
        for call_id, text in message.results
    ]
    if message.text:
        parts.append(WireText(message.text))
    parts += [WireCall(call_id, name, arguments) for call_id, name, arguments in message.calls]
    return WireMessage(message.role, tuple(parts))
