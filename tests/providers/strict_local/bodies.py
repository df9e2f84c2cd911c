"""Pieces of request bodies."""

from __future__ import annotations

import base64
import struct
from typing import Any

Json = Any
"""Loose on purpose: half of these bodies are wrong, which the SDKs' parameter types would not allow."""

OPUS = "claude-opus-5-5"
SONNET = "claude-sonnet-4-6"
GPT = "gpt-5.6-sol"
OLD_GPT = "gpt-4.1"
LONG = "The quick brown fox jumps over the lazy dog. " * 200
"""About 2,000 tokens."""

SHORT_LIFE: Json = {"type": "ephemeral"}
LONG_LIFE: Json = {"type": "ephemeral", "ttl": "1h"}
MARK: Json = {"mode": "explicit"}


def says(text: str, **extra: Any) -> Json:
    return {"type": "text", "text": text} | extra


def user(*content: Any) -> Json:
    return {"role": "user", "content": list(content) if content else "Hello"}


def assistant(*content: Any) -> Json:
    return {"role": "assistant", "content": list(content)}


def use(call_id: str, name: str = "look", arguments: Any = None) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def result(call_id: str, content: Any = "fine", **extra: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | extra


def tool(name: str = "look", **extra: Any) -> Json:
    schema = {"type": "object", "properties": {}}
    return {"name": name, "description": "Looks.", "input_schema": schema} | extra


def picture(width: int, height: int) -> Json:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    data = base64.b64encode(head + bytes(8)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def message(**change: Any) -> Json:
    """Arguments of `messages.create`; None takes one away."""
    whole = {"model": SONNET, "max_tokens": 64, "messages": [user()]} | change
    return {key: value for key, value in whole.items() if value is not None}


def function(name: str = "look") -> Json:
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def chat_calls(*ids: str, **change: Any) -> Json:
    calls = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"} | change}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(call_id: str, content: Any = "fine") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(**change: Any) -> Json:
    """Arguments of `chat.completions.create`."""
    return {"model": GPT, "messages": [{"role": "user", "content": "Hello"}]} | change


def response_tool(name: str = "look", **extra: Any) -> Json:
    return {
        "type": "function",
        "name": name,
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    } | extra


def item(role: str, text: Any, **extra: Any) -> Json:
    return {"type": "message", "role": role, "content": text} | extra


def call_item(call_id: str, **extra: Any) -> Json:
    head = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}
    return head | extra


def output_item(call_id: str, output: Any = "fine") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def response(*items: Json, **change: Any) -> Json:
    """Arguments of `responses.create`."""
    return {"model": GPT, "input": list(items) or "Hello", "store": False} | change


def plain(value: Any) -> Json:
    """An SDK object as the JSON it came from."""
    return value.to_dict(warnings=False)
