"""Dumps of classes carry every field they could have: a member that is null hides no other, and says nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.members import first_given, id_at, is_true
from ctxengine.engine.importers.registry import read
from ctxengine.engine.lexeme import parse
from tests.engine.importers.accounts import assert_sound, items_of

NAMES = [
    "text", "content", "parts", "refusal", "type", "role", "name", "id", "input", "args", "arguments",
    "function", "output", "result", "response", "error", "is_error", "isError", "thought", "thinking",
    "signature", "thoughtSignature", "thought_signature", "thinkingSignature", "reasoning", "reasoning_content",
    "cachePoint", "cache_control", "functionCall", "function_call", "functionResponse", "function_response",
    "inlineData", "inline_data", "fileData", "file_data", "toolUse", "toolResult", "reasoningContent",
    "image", "document", "video", "citationsContent", "videoMetadata", "tool_calls", "tool_call_id",
    "toolCallId", "toolName", "tool_name", "additional_kwargs", "json", "status", "tool_use_id", "call_id",
    "tool_type", "data", "mimeType", "media_type", "image_url", "source", "usage", "model", "system",
    "instructions", "systemInstruction", "system_instruction", "config", "messages", "contents", "history",
    "choices", "candidates", "output_text", "request", "exchanges", "traj", "anthropic_version", "tools",
    "annotations", "audio", "part", "kwargs", "prompt", "attributes", "gen_ai.prompt", "gen_ai.completion",
    "events", "stringValue", "arrayValue", "kvlistValue", "intValue",
]  # fmt: skip
"""Names of members that some reader asks for."""
OF_THE_TOOL = ("arguments", "args", "input", "response", "json", "value")
"""Members whose objects are a tool's own: what is null in them is null."""


def otel(request: Any, answer: Any) -> dict[str, Any]:
    told = {"gen_ai.input.messages": request, "gen_ai.output.messages": answer}
    attributes = [{"key": k, "value": {"stringValue": json.dumps(v)}} for k, v in told.items()]
    attributes.append({"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}})
    span = {"traceId": "t", "spanId": "s", "name": "chat", "attributes": attributes}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def langfuse(request: Any, answer: Any) -> dict[str, Any]:
    seen = {"id": "o", "type": "GENERATION", "startTime": "2026-01-01T10:00:00Z", "input": request,
            "output": answer, "model": "m"}  # fmt: skip
    return {"trace": {"id": "t"}, "observations": [seen]}


FILES: dict[str, Any] = {
    "google": {"systemInstruction": {"parts": [{"text": "Rules."}]}, "contents": [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "f", "args": {"x": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "found"}}}]},
    ]},
    "bedrock": {"system": [{"text": "Rules."}], "messages": [
        {"role": "user", "content": [{"text": "Go."}]},
        {"role": "assistant", "content": [
            {"text": "I look."}, {"toolUse": {"toolUseId": "t", "name": "f", "input": {"x": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "found"}]}}]},
    ]},
    "otel": otel(
        [{"role": "user", "parts": [{"type": "text", "content": "Go."}]},
         {"role": "assistant", "parts": [{"type": "tool_call", "id": "t", "name": "f", "arguments": {"x": 1}}]},
         {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t", "result": "found"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]),
    "ai_sdk": langfuse(
        [{"role": "user", "content": [{"type": "text", "text": "Go."}]},
         {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "t", "toolName": "f", "args": {"x": 1}}]},
         {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "t", "toolName": "f", "result": "found"}]}],
        {"role": "assistant", "content": "Done."}),
    "langchain": langfuse(
        [{"type": "human", "content": "Go."},
         {"type": "ai", "content": "", "tool_calls": [{"id": "t", "name": "f", "args": {"x": 1}}]},
         {"type": "tool", "content": "found", "tool_call_id": "t", "name": "f"}],
        {"type": "ai", "content": "Done."}),
    "anthropic": {"system": "Rules.", "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "found"}]},
    ]},
    "chat": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "t", "content": "found"},
    ],
    "responses": {"model": "m", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t", "output": "found"},
    ]},
    "exchanges": {"exchanges": [{"uri": "https://x.example/v1/chat/completions",
        "request": {"model": "m", "messages": [{"role": "user", "content": "Go."}]},
        "response": {"choices": [{"message": {"role": "assistant", "content": "Done."}}]}}]},
    "pairs": [{"model": "m", "messages": [{"role": "user", "content": "Go."}],
               "response": {"choices": [{"message": {"role": "assistant", "content": "Done."}}]}}],
}  # fmt: skip


def with_nulls(value: Any, names: list[str], *, first: bool) -> Any:
    """The value with these members added to every object that has them not, in front of its own or behind them."""
    if isinstance(value, list):
        return [with_nulls(element, names, first=first) for element in value]
    if isinstance(value, str) and value[:1] in ("[", "{") and value not in ("{}", "[]"):
        return json.dumps(with_nulls(json.loads(value), names, first=first))
    if not isinstance(value, dict):
        return value
    own = {
        k: v if _is_the_tools(k, v) else with_nulls(v, names, first=first) for k, v in value.items()
    }
    nulls = {name: None for name in names if name not in own}
    return {**nulls, **own} if first else {**own, **nulls}


def _is_the_tools(name: str, value: Any) -> bool:
    held = isinstance(value, dict) and {"choices", "output"}.isdisjoint(value)
    return name in OF_THE_TOOL and (held or value == "{}")


def said(value: Any) -> list[Any]:
    transcript = read(json.dumps(value), name="x")
    assert_sound(transcript)
    rows: list[Any] = [transcript.format]
    for session in transcript.sessions:
        rows.append((session.instructions, session.model))
        for entry in session.entries:
            items = [(i.kind, i.name, i.call_id, i.arguments, i.parts) for i in items_of(entry)]
            rows.append((entry.type, entry.trust, entry.is_error, entry.synthetic, items))
        rows += [(r.code, r.items) for r in session.repairs]
    return rows


@pytest.mark.parametrize("kind", sorted(FILES))
@pytest.mark.parametrize("first", [True, False])
def test_members_that_are_null_change_nothing(kind: str, first: bool) -> None:
    whole = FILES[kind]
    expected = said(whole)
    for name in NAMES:
        assert said(with_nulls(whole, [name], first=first)) == expected, name
    assert said(with_nulls(whole, NAMES, first=first)) == expected


def test_a_tool_that_says_there_was_no_error_failed_not() -> None:
    answered = {"response": {"output": "found", "error": None}, "name": "f"}
    file = json.loads(json.dumps(FILES["google"]))
    file["contents"][2]["parts"] = [{"functionResponse": answered}]
    assert said(file) == said(FILES["google"])


def test_the_first_member_that_is_given_is_found() -> None:
    record = parse('{"a":null,"b":0,"c":"x","n":12,"t":true}')
    found = first_given(record, "a", "z", "b", "c")
    assert found is not None and found.raw == "0"
    assert first_given(record, "a", "z") is None is first_given(None, "a")
    assert first_given(parse("[1]"), "a") is None
    assert id_at(record, "a", "n") == "12" and id_at(record, "c") == "x"
    assert id_at(record, "t") is None and id_at(record, "z") is None
    assert is_true(record, "a", "t") and not is_true(record, "b", "t")
