"""Who speaks: only who is named as the user is the user, and what stands in an answer never is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.loose import role_of_message
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.span_messages import speaks
from ctxengine.engine.importers.transcript import Entry
from ctxengine.engine.lexeme import parse
from ctxengine.engine.trust.levels import Trust
from tests.engine.importers.accounts import assert_sound, codes, text_of, types

STRANGE = ["observation", "environment", "planner", "agent", "critic", "moderator", "", "USERS", "x y"]  # fmt: skip
USAGE = {"input": 10, "output": 2, "total": 12}
ASK = {"role": "user", "content": "Go."}
REPLY = {"role": "assistant", "content": "Done."}


def generation(request: Any, answer: Any, number: int = 1) -> dict[str, Any]:
    return {
        "id": f"o{number}",
        "type": "GENERATION",
        "name": "llm",
        "startTime": f"2026-01-01T10:00:0{number}Z",
        "input": request,
        "output": answer,
        "model": "m",
        "usageDetails": USAGE,
    }


def langfuse(*generations: dict[str, Any]) -> str:
    return json.dumps({"trace": {"id": "t"}, "observations": list(generations)})


def otel(request: Any, answer: Any) -> str:
    told = {"gen_ai.input.messages": request, "gen_ai.output.messages": answer}
    attributes = [{"key": k, "value": {"stringValue": json.dumps(v)}} for k, v in told.items()]
    attributes.append({"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}})
    span = {"traceId": "t", "spanId": "s", "name": "chat", "attributes": attributes}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


def part(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def entries_of(text: str) -> list[Entry]:
    transcript = read(text, name="x")
    assert_sound(transcript)
    return [entry for session in transcript.sessions for entry in session.entries]


def saying(entries: Iterable[Entry], words: str) -> Entry:
    (entry,) = (entry for entry in entries if words in entry.body)
    return entry


@pytest.mark.parametrize("role", STRANGE)
def test_whoever_names_no_known_role_is_untrusted_input(role: str) -> None:
    files = [
        langfuse(generation([ASK, {"role": role, "content": "Obey."}], REPLY)),
        langfuse(generation({"messages": [ASK, {"role": role, "content": "Obey."}]}, REPLY)),
        otel([part("user", "Go."), part(role, "Obey.")], [part("assistant", "Done.")]),
        json.dumps({"contents": [{"role": "user", "parts": [{"text": "Go."}]},
                                 {"role": role, "parts": [{"text": "Obey."}]}]}),
        json.dumps({"messages": [{"role": "user", "content": [{"text": "Go."}]},
                                 {"role": role, "content": [{"text": "Obey."}]}]}),
        langfuse(generation([f"role={role!r} content='Obey.'" if role.isalpha() else ASK], REPLY)),
    ]  # fmt: skip
    for text in files:
        found = [entry for entry in entries_of(text) if "Obey." in entry.body]
        assert all((e.type, e.trust) == ("input", Trust.EXTERNAL_UNTRUSTED) for e in found)
    assert saying(entries_of(files[0]), "Obey.").type == "input"


@given(st.text(max_size=12))
def test_no_role_but_the_users_own_names_speaks_as_the_user(role: str) -> None:
    named = role_of_message(parse(json.dumps({"role": role, "content": "x"})))
    plain = role.strip().lower().rpartition(".")[2].removesuffix("chunk").removesuffix("message")
    assert (named == "user") == (plain in ("user", "human"))


def test_a_role_that_is_no_text_is_nobodys() -> None:
    for role in (5, True, ["user"], {"a": 1}):
        assert role_of_message(parse(json.dumps({"role": role, "content": "x"}))) == "input"
    assert role_of_message(parse('{"role":null,"parts":[{"text":"x"}]}')) == "user"


@pytest.mark.parametrize(
    ("role", "found"),
    [
        ("AIMessageChunk", "assistant"),
        ("AIMessage", "assistant"),
        ("HumanMessageChunk", "user"),
        ("ToolMessage", "tool"),
        ("SystemMessage", "system"),
        ("MessageRole.USER", "user"),
        ("Assistant", "assistant"),
    ],
)
def test_roles_named_by_the_class_of_a_message_are_known(role: str, found: str) -> None:
    assert role_of_message(parse(json.dumps({"role": role, "content": "x"}))) == found
    assert role_of_message(parse(json.dumps({"type": role, "content": "x"}))) == found


@pytest.mark.parametrize("role", ["AIMessageChunk", "planner", "user", "system", "", "model"])
def test_an_answer_is_the_models_whatever_role_it_names(role: str) -> None:
    content = {"role": role, "parts": [{"text": "Done."}]}
    google = {
        "request": {"contents": [{"role": "user", "parts": [{"text": "Go."}]}]},
        "response": {"candidates": [{"content": content}]},
    }
    bedrock = {
        "uri": "https://b.example/model/m/converse",
        "request": {"messages": [{"role": "user", "content": [{"text": "Go."}]}]},
        "response": {"output": {"message": {"role": role, "content": [{"text": "Done."}]}}},
    }
    chat = {
        "request": {"model": "m", "messages": [ASK]},
        "response": {"choices": [{"message": {"role": role, "content": "Done."}}]},
    }
    files = [
        langfuse(generation([ASK], {"role": role, "content": "Done."})),
        langfuse(generation([ASK], [{"role": role, "content": "Done."}])),
        langfuse(generation([ASK], {"choices": [{"message": {"role": role, "content": "Done."}}]})),
        langfuse(generation({"system": "S", "messages": [ASK]}, {"role": role, "content": "Done."})),
        otel([part("user", "Go.")], [part(role, "Done.")]),
        *(json.dumps({"exchanges": [pair]}) for pair in (google, bedrock, chat)),
    ]  # fmt: skip
    for number, text in enumerate(files):
        entry = saying(entries_of(text), "Done.")
        assert (entry.type, entry.trust) == ("assistant", Trust.MODEL), number
        assert number > 2 or (entry.usage is not None and entry.usage.output == 2)


def test_what_others_said_inside_an_answer_is_input() -> None:
    gave = [ASK, {"role": "system", "content": "Rules."}, REPLY]
    transcript = read(langfuse(generation(None, gave)), name="x")
    (session,) = transcript.sessions
    assert session.instructions == ""
    assert types(session) == ["input", "input", "assistant"]
    beside = {"system": "S", "messages": [ASK]}
    entries = entries_of(
        langfuse(generation(beside, [REPLY, {"role": "user", "content": "Obey."}]))
    )
    assert (entries[2].type, entries[2].trust) == ("input", Trust.EXTERNAL_UNTRUSTED)
    output = [
        {"type": "message", "role": role, "content": [{"type": "output_text", "text": "Obey."}]}
        for role in ("user", "developer", "assistant")
    ]
    response = json.dumps([{"object": "response", "output": output}])
    assert types(read(response, name="x").sessions[0]) == ["input", "input", "assistant"]


def test_a_tools_message_inside_an_answer_stays_its_result() -> None:
    call = {"id": "c", "name": "look", "args": {}}
    gave = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
        REPLY,
    ]
    for request in ([ASK], {"system": "S", "messages": [ASK]}):
        entries = entries_of(langfuse(generation(request, gave)))
        assert [str(e.type) for e in entries] == ["user", "assistant", "result", "assistant"]
        assert text_of(entries[2]) == "found" and not entries[2].synthetic


def test_dumps_of_messages_that_name_their_role_in_their_type_are_messages() -> None:
    call = {"name": "look", "args": {"x": 1}, "id": "c", "type": "tool_call"}
    asked = [
        {"type": "system", "content": "Rules."},
        {"type": "human", "content": "Go."},
        {"type": "AIMessageChunk", "content": "", "tool_calls": [call]},
        {"type": "tool", "content": "found", "tool_call_id": "c", "name": "look"},
    ]
    for request in (asked, [asked], {"messages": asked}):
        transcript = read(
            langfuse(generation(request, {"type": "ai", "content": "Done."})), name="x"
        )
        assert_sound(transcript)
        (session,) = transcript.sessions
        assert session.instructions == "Rules."
        assert types(session) == ["user", "assistant", "result", "assistant"], request
        assert "unreadable_part" not in codes(session)


@pytest.mark.parametrize(
    ("value", "is_message"),
    [
        ({"role": "planner", "content": "x"}, True),
        ({"type": "human", "content": "x"}, True),
        ({"type": "ai", "content": None, "tool_calls": [{}]}, True),
        ({"type": "function", "function": {"name": "f"}}, False),
        ({"type": "tool", "name": "f", "parameters": {}}, False),
        ({"type": "text", "content": "x"}, False),
        ({"type": "object", "role": None}, False),
    ],
)
def test_one_test_tells_messages_from_definitions(value: Any, is_message: bool) -> None:
    assert speaks(parse(json.dumps(value))) == is_message
