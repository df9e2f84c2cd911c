"""Reading provider bodies: who said what, in which order, whatever the API."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """One thing in a body."""

    what: str
    """`user`, `assistant`, `call`, `result` or `reasoning`."""
    text: str
    id: str = ""
    is_error: bool = False


def seen(body: bytes) -> list[Seen]:
    """Everything behind the prefix, in wire order."""
    request = json.loads(body)
    if "input" in request:
        found = [entry for item in request["input"] for entry in _item(item)]
    else:
        found = [entry for message in request["messages"] for entry in _message(message)]
    return [entry for entry in found if entry.what not in {"system", "developer"}]


def said(body: bytes) -> str:
    """All text of a body behind the prefix."""
    return "\n".join(entry.text for entry in seen(body))


def prefix_text(body: bytes) -> str:
    """Everything in front of the conversation, as JSON text."""
    request = json.loads(body)
    kept = [value for key, value in request.items() if key in {"system", "tools"}]
    turns = request.get("messages", request.get("input", []))
    kept += [turn for turn in turns if turn.get("role") in {"system", "developer"}]
    return json.dumps(kept, ensure_ascii=False)


def _message(message: dict[str, Any]) -> list[Seen]:
    role = message["role"]
    if role == "tool":
        return [Seen("result", _text(message["content"]), message["tool_call_id"])]
    blocks = message.get("content") or []
    if isinstance(blocks, str):
        blocks = [{"type": "text", "text": blocks}]
    found = [_block(role, block) for block in blocks]
    calls = message.get("tool_calls", [])
    return found + [Seen("call", call["function"]["arguments"], call["id"]) for call in calls]


def _block(role: str, block: dict[str, Any]) -> Seen:
    kind = block["type"]
    if kind == "tool_use":
        return Seen("call", json.dumps(block["input"]), block["id"])
    if kind == "tool_result":
        text = _text(block["content"])
        return Seen("result", text, block["tool_use_id"], block.get("is_error", False))
    if kind in {"thinking", "redacted_thinking"}:
        return Seen("reasoning", json.dumps(block))
    return Seen(role, block.get("text", ""))


def _item(item: dict[str, Any]) -> list[Seen]:
    kind = item.get("type", "message")
    if kind == "reasoning":
        return [Seen("reasoning", json.dumps(item), item.get("id", ""))]
    if kind == "function_call":
        return [Seen("call", item["arguments"], item["call_id"])]
    if kind == "function_call_output":
        return [Seen("result", _text(item["output"]), item["call_id"])]
    blocks = item["content"]
    if isinstance(blocks, str):
        blocks = [{"text": blocks}]
    return [Seen(item["role"], block.get("text", "")) for block in blocks]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)
