"""The behaviour cases: loaded, and their text macros written out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import violations
from tests.api.door import MODEL, Answer, Door

CHAT = {"provider": "openai", "name": "gpt-5.4"}
RESPONSES = {"provider": "openai-responses", "name": "gpt-5.4"}
MODELS = {
    WireApi.ANTHROPIC: MODEL,
    WireApi.OPENAI_CHAT: CHAT,
    WireApi.OPENAI_RESPONSES: RESPONSES,
}


def case(folder: Path, prefix: str) -> Any:
    """The input of the case whose id begins with `prefix`."""
    for line in (folder / "dev_cases.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if found["id"].startswith(prefix):
            return expanded(found["input"])
    raise LookupError(prefix)


def expanded(value: Any) -> Any:
    """The value with `$repeat`, `$concat` and `$codepoints` written out."""
    if isinstance(value, list):
        return [expanded(member) for member in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        text, times = value["$repeat"]
        return text * times
    if "$concat" in value:
        return "".join(expanded(part) for part in value["$concat"])
    if "$codepoints" in value:
        return "".join(map(chr, value["$codepoints"]))
    return {name: expanded(member) for name, member in value.items()}


def events_of(case_input: Any, kind: str) -> list[Any]:
    """The events of one type of a case."""
    return [event for event in case_input["events"] if event["type"] == kind]


def tool_calls(*calls: Any) -> list[Any]:
    """Calls of a case as content blocks."""
    return [
        {"type": "tool_use", "id": call["call_id"], "name": call["name"], "input": call["args"]}
        for call in calls
    ]


def checked(door: Door, api: WireApi, request_id: str) -> Any:
    """The body of a request, after it has passed its provider's rules and been proven."""
    answer: Answer = door.get(f"requests/{request_id}/body")
    assert answer.status == 200, answer.raw
    assert violations(api, answer.raw) == ()
    answer.raw.decode("utf-8", "strict")
    assert door.replays(request_id)
    return answer.json


def call_ids(api: WireApi, body: Any) -> list[str]:
    """Ids of the calls in a request, in order."""
    if api is WireApi.ANTHROPIC:
        blocks = [b for m in body["messages"] for b in m["content"]]
        return [b["id"] for b in blocks if b["type"] == "tool_use"]
    if api is WireApi.OPENAI_CHAT:
        return [c["id"] for m in body["messages"] for c in m.get("tool_calls", ())]
    return [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]


def result_texts(api: WireApi, body: Any) -> list[tuple[str, str]]:
    """(call id, text) of the results in a request, in order."""
    if api is WireApi.ANTHROPIC:
        blocks = [b for m in body["messages"] for b in m["content"]]
        return [
            (b["tool_use_id"], "".join(part["text"] for part in b["content"]))
            for b in blocks
            if b["type"] == "tool_result"
        ]
    if api is WireApi.OPENAI_CHAT:
        return [
            (m["tool_call_id"], _plain(m["content"]))
            for m in body["messages"]
            if m["role"] == "tool"
        ]
    return [
        (item["call_id"], _plain(item["output"]))
        for item in body["input"]
        if item.get("type") == "function_call_output"
    ]


def argument_texts(api: WireApi, body: Any) -> list[Any]:
    """Arguments of the calls in a request as parsed values, in order."""
    if api is WireApi.ANTHROPIC:
        blocks = [b for m in body["messages"] for b in m["content"]]
        return [b["input"] for b in blocks if b["type"] == "tool_use"]
    if api is WireApi.OPENAI_CHAT:
        calls = [c for m in body["messages"] for c in m.get("tool_calls", ())]
        return [json.loads(call["function"]["arguments"]) for call in calls]
    return [
        json.loads(item["arguments"])
        for item in body["input"]
        if item.get("type") == "function_call"
    ]


def every_text(value: Any) -> list[str]:
    """All texts inside a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for member in value for text in every_text(member)]
    if isinstance(value, dict):
        return [text for member in value.values() for text in every_text(member)]
    return []


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)
