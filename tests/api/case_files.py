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
    WireApi.GOOGLE: {"provider": "google", "name": "gemini-3.1-pro"},
    WireApi.OLLAMA: {
        "provider": "ollama",
        "name": "gemma-4-31b",
        "window": 48_000,
        "max_output": 2_000,
    },
    WireApi.BEDROCK: {"provider": "bedrock", "name": "anthropic.claude-sonnet-4-6-v1:0"},
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
    return [call_id for call_id, _ in _calls(api, body)]


def argument_texts(api: WireApi, body: Any) -> list[Any]:
    """Arguments of the calls in a request as parsed values, in order."""
    return [arguments for _, arguments in _calls(api, body)]


def result_texts(api: WireApi, body: Any) -> list[tuple[str, str]]:
    """(call id, text) of the results in a request, in order."""
    match api:
        case WireApi.ANTHROPIC:
            found = [b for b in _blocks(body) if b["type"] == "tool_result"]
            return [(b["tool_use_id"], _plain(b["content"])) for b in found]
        case WireApi.OPENAI_CHAT | WireApi.OLLAMA:
            told = [m for m in body["messages"] if m["role"] == "tool"]
            return [(m["tool_call_id"], _plain(m["content"])) for m in told]
        case WireApi.OPENAI_RESPONSES:
            outputs = [i for i in body["input"] if i.get("type") == "function_call_output"]
            return [(item["call_id"], _plain(item["output"])) for item in outputs]
        case WireApi.GOOGLE:
            answers = [p["functionResponse"] for p in _google(body) if "functionResponse" in p]
            return [(a["id"], "".join(every_text(a["response"]))) for a in answers]
        case WireApi.BEDROCK:
            given = [b["toolResult"] for b in _blocks(body) if "toolResult" in b]
            return [(r["toolUseId"], _plain(r["content"])) for r in given]


def _calls(api: WireApi, body: Any) -> list[tuple[str, Any]]:
    """(id, parsed arguments) of the calls in a request, in order."""
    match api:
        case WireApi.ANTHROPIC:
            used = [b for b in _blocks(body) if b["type"] == "tool_use"]
            return [(b["id"], b["input"]) for b in used]
        case WireApi.OPENAI_CHAT:
            asked = [c for m in body["messages"] for c in m.get("tool_calls", ())]
            return [(c["id"], json.loads(c["function"]["arguments"])) for c in asked]
        case WireApi.OPENAI_RESPONSES:
            items = [i for i in body["input"] if i.get("type") == "function_call"]
            return [(item["call_id"], json.loads(item["arguments"])) for item in items]
        case WireApi.OLLAMA:
            asked = [c for m in body["messages"] for c in m.get("tool_calls", ())]
            return [(c["id"], c["function"]["arguments"]) for c in asked]
        case WireApi.GOOGLE:
            named = [p["functionCall"] for p in _google(body) if "functionCall" in p]
            return [(c["id"], c["args"]) for c in named]
        case WireApi.BEDROCK:
            used = [b["toolUse"] for b in _blocks(body) if "toolUse" in b]
            return [(u["toolUseId"], u["input"]) for u in used]


def _blocks(body: Any) -> list[Any]:
    return [block for message in body["messages"] for block in message["content"]]


def _google(body: Any) -> list[Any]:
    return [part for content in body["contents"] for part in content["parts"]]


def said_texts(body: Any) -> list[str]:
    """Texts that stand by themselves in a conversation: text blocks, and messages that are one text."""
    turns = next(body[part] for part in ("messages", "contents", "input") if part in body)
    # An assistant that only calls may say nothing.
    saying = [turn for turn in turns if not turn.get("tool_calls")]
    whole = [turn["content"] for turn in saying if isinstance(turn.get("content"), str)]
    inside = [block for turn in turns for block in turn.get("content") or turn.get("parts") or ()]
    return whole + [b["text"] for b in inside if isinstance(b, dict) and "text" in b]


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
