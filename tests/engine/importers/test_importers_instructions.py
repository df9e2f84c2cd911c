"""System text in every form in which bodies and spans hold it; what is no text stands in the report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.registry import read
from ctxengine.engine.lexeme import parse
from tests.engine.importers.accounts import assert_sound, codes, only_session

FORMS: list[Any] = [
    "Rules.",
    ["Rules."],
    {"text": "Rules."},
    [{"text": "Rules."}],
    {"type": "text", "text": "Rules."},
    [{"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}],
    {"parts": {"text": "Rules."}},
    {"parts": [{"text": "Rules."}]},
    {"role": "user", "parts": ["Rules."]},
    {"parts": "Rules."},
    [{"parts": [{"text": "Rules."}]}],
    [{"type": "message", "role": "developer", "content": "Rules."}],
    [{"role": "system", "content": [{"type": "input_text", "text": "Rules."}]}],
    [{"type": "text", "content": "Rules."}],
    {"text": None, "content": "Rules."},
    [None, "Rules.", "", {"cachePoint": {"type": "default"}}],
]
ODD: list[Any] = [
    {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
    7,
    {"text": None},
    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    {"type": "message", "role": "user", "content": "Not the system."},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def google(**told: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "Go."}]}], **told}


def bodies(system: Any) -> list[dict[str, Any]]:
    """Requests of every API with this as their system text."""
    call = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    asked = [user("Go."), {"role": "assistant", "content": [call]}]
    chat = [
        user("Go."),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        },
    ]
    return [
        google(systemInstruction=system),
        google(system_instruction=system),
        google(config={"systemInstruction": system}),
        google(config={"system_instruction": system, "tools": []}),
        google(systemInstruction=None, system_instruction=system),
        google(system_instruction=None, config={"systemInstruction": None, "system_instruction": system}),
        {"system": system, "messages": [user([{"text": "Go."}])]},
        {"system": system, "messages": asked},
        {"system": system, "messages": chat},
        {"model": "m", "instructions": system, "input": "Go."},
        {"model": "m", "instructions": system, "input": {"role": "user", "content": "Go."}},
    ]  # fmt: skip


def spans(system: Any) -> list[dict[str, Any]]:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": json.dumps(system),
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Go."}]}]),
    }  # fmt: skip
    observed = {
        "id": "o", "type": "GENERATION", "startTime": "2026-01-01T10:00:00Z", "model": "m",
        "input": {"system": system, "messages": [{"role": "human", "content": "Go."}]},
    }  # fmt: skip
    return [
        {"name": "chat", "span_id": "s", "attributes": told},
        {"trace": {"id": "t"}, "observations": [observed]},
    ]


@pytest.mark.parametrize("form", FORMS)
def test_system_text_is_read_in_every_form(form: Any) -> None:
    assert system_text(parse(json.dumps(form))) == ("Rules.", ())
    for number, body in enumerate([*bodies(form), *spans(form)]):
        transcript = read(json.dumps(body), name="x")
        assert_sound(transcript)
        assert only_session(transcript).instructions == "Rules.", (number, transcript.format)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_system_text_stands_in_the_report(odd: Any) -> None:
    for number, body in enumerate([*bodies([odd, "Rules."]), *spans([odd, "Rules."])]):
        transcript = read(json.dumps(body), name="x")
        assert_sound(transcript)
        session = only_session(transcript)
        assert session.instructions == "Rules.", number
        (repair,) = [r for r in session.repairs if r.code == "unreadable_instructions"]
        assert json.loads(repair.raw) == odd


def test_pieces_stand_on_lines_of_their_own_and_nothing_is_no_text() -> None:
    assert system_text(parse('["a",{"parts":[{"text":"b"},"c"]},""]')).text == "a\nb\nc"
    assert system_text(None) == system_text(parse("null")) == ("", ())


def test_instructions_that_a_leading_message_repeats_are_kept_once() -> None:
    messages = [{"role": "system", "content": "Rules."}, user("Go."),
                {"role": "tool", "tool_call_id": "c", "content": "x"}]  # fmt: skip
    session = only_session(read(json.dumps({"system": "Rules.", "messages": messages}), name="x"))
    assert session.instructions == "Rules."
    assert "instructions_changed" not in codes(session)


@pytest.mark.parametrize("content", ["found", {"text": "found"}, [{"text": "found"}], ["found"]])
def test_a_result_of_any_form_keeps_its_text(content: Any) -> None:
    messages = [
        user([{"text": "Go."}]),
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]},
        user([{"toolResult": {"toolUseId": "t", "content": content, "status": "success"}}]),
    ]  # fmt: skip
    session = only_session(read(json.dumps({"messages": messages}), name="x"))
    assert "found" in session.entries[-1].body and session.entries[-1].type == "result"
