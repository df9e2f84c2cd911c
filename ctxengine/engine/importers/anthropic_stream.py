"""Streamed events of the Messages API, joined to the message they make."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ctxengine.engine.importers.dialect import dict_of, list_of
from ctxengine.engine.importers.texts import json_text
from ctxengine.engine.lexeme import LexemeError, NodeKind, parse


def joined_stream(events: Iterable[str]) -> str | None:
    """JSON text of the message, pieces of tool input joined as text; None when the events make none."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        data = _event(event)
        kind = data.get("type")
        if kind == "message_start":
            message = dict(dict_of(data.get("message")))
        elif kind == "content_block_start":
            blocks[_index(data)] = dict(dict_of(data.get("content_block")))
        elif kind == "content_block_delta":
            _add_delta(blocks.setdefault(_index(data), {}), dict_of(data.get("delta")))
        elif kind == "message_delta":
            message.update(dict_of(data.get("delta")))
            message["usage"] = {**dict_of(message.get("usage")), **dict_of(data.get("usage"))}
    if not message:
        return None
    message.pop("content", None)
    content = ",".join(_block_text(blocks[index]) for index in sorted(blocks))
    return json_text(message)[:-1] + f',"content":[{content}]}}'


def _index(data: dict[str, Any]) -> int:
    index = data.get("index")
    return index if isinstance(index, int) else 0


def _event(text: str) -> dict[str, Any]:
    try:
        node = parse(text)
    except LexemeError:
        return {}
    return node.value() if node.kind is NodeKind.OBJECT else {}


_APPENDED = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "compaction_delta": "content",
}


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        block["\0input"] = block.get("\0input", "") + str(delta.get("partial_json") or "")
    elif kind == "citations_delta":
        block["citations"] = [*list_of(block.get("citations")), delta.get("citation")]
    elif kind in _APPENDED:
        key = _APPENDED[kind]
        block[key] = str(block.get(key) or "") + str(delta.get(key) or "")


def _block_text(block: dict[str, Any]) -> str:
    """JSON text of a block; input that was streamed stands in it as it came, as a string if it is not JSON."""
    pieces = block.pop("\0input", "")
    if not pieces:
        return json_text(block)
    block.pop("input", None)
    try:
        written = parse(pieces).raw
    except LexemeError:
        written = json.dumps(pieces)
    return json_text(block)[:-1] + f',"input":{written}}}'
