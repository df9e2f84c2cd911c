"""The answer of the Messages API: content blocks, usage, and the events of a stream."""

from __future__ import annotations

import json

from ctxengine.providers.strict_local.cache_anthropic import CacheUsage
from ctxengine.providers.strict_local.exchange import Json, named_event, pieces, text_of
from ctxengine.providers.strict_local.speaking import Spoken

STOPS = {
    "stop": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "window": "model_context_window_exceeded",
    "refusal": "refusal",
}


def usage_of(cache: CacheUsage, output: int, thinking: int) -> Json:
    """Disjoint buckets: after the last breakpoint, read, written."""
    return {
        "input_tokens": cache.fresh,
        "cache_creation_input_tokens": cache.written,
        "cache_read_input_tokens": cache.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": cache.written_5m,
            "ephemeral_1h_input_tokens": cache.written_1h,
        },
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": thinking},
        "service_tier": "standard",
    }


def iteration(kind: str, usage: Json) -> Json:
    """One entry of `usage.iterations`."""
    names = (
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        "cache_creation",
    )  # fmt: skip
    return {"type": kind, **{name: usage[name] for name in names}}


def content_of(spoken: Spoken, signature: str, search: list[Json]) -> list[Json]:
    """Thinking, then text, then the provider's own search, then calls."""
    content: list[Json] = []
    if spoken.thinking is not None:
        content.append({"type": "thinking", "thinking": spoken.thinking, "signature": signature})
    if spoken.text:
        content.append({"type": "text", "text": spoken.text})
    content += search
    content += [
        {
            "type": "tool_use",
            "id": call.call_id,
            "name": call.name,
            "input": _arguments(call.arguments),
        }
        for call in spoken.calls
    ]
    return content


def _arguments(text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def stream_of(message: Json) -> tuple[bytes, ...]:
    """A whole message as the events that build it."""
    usage = message["usage"]
    start = message | {
        "content": [],
        "stop_reason": None,
        "usage": usage | {"output_tokens": 1, "output_tokens_details": None},
    }
    start.pop("context_management", None)
    events: list[Json] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        opening, deltas = _parts(block)
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    closing: Json = {"type": "message_delta", "delta": delta, "usage": usage}
    if message.get("context_management") is not None:
        closing["context_management"] = message["context_management"]
    events += [closing, {"type": "message_stop"}]
    return tuple(named_event(event) for event in events)


def _parts(block: Json) -> tuple[Json, list[Json]]:
    kind = text_of(block.get("type"))
    if kind == "text":
        parts = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        return block | {"text": ""}, parts
    if kind == "thinking":
        parts = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])
        ]
        parts.append({"type": "signature_delta", "signature": block["signature"]})
        return block | {"thinking": "", "signature": ""}, parts
    if kind in {"tool_use", "server_tool_use"}:
        text = json.dumps(block["input"])
        parts = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
        return block | {"input": {}}, parts
    if kind == "compaction":
        delta = {
            "type": "compaction_delta",
            "content": block["content"],
            "encrypted_content": block.get("encrypted_content"),
        }
        return block | {"content": None}, [delta]
    return block, []
