"""What a trace says is in a session or in the report, whatever form it has and whatever stands beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.content.decode import decode
from ctxengine.engine.importers import draft
from ctxengine.engine.importers.transcript import Transcript
from ctxengine.engine.items import ItemKind
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    items_of,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)
from tests.engine.importers.test_importers_traces import (
    ASKED,
    CALLS,
    OPENINFERENCE,
    SDK_CALL,
    SDK_RESULT,
    langfuse,
    observation,
    span,
)


def everything(transcript: Transcript) -> str:
    """All that was kept: entries, instructions, and what the report holds word for word."""
    kept = [raw.raw for raw in transcript.repairs]
    for session in transcript.sessions:
        kept += [session.instructions, *(entry.body for entry in session.entries)]
        kept += [repair.raw for repair in session.repairs]
    return " ".join(kept)


def decoded_in(monkeypatch: pytest.MonkeyPatch, calls: int) -> int:
    """How often an entry is decoded to match the spans of so many tools with their calls."""
    times = 0

    def counting(*args: Any, **named: Any) -> Any:
        nonlocal times
        times += 1
        return decode(*args, **named)

    monkeypatch.setattr(draft, "decode", counting)
    asked = [{"toolCallId": f"c{n}", "toolName": "walk", "input": {"to": n}} for n in range(calls)]
    spans = [
        observation(2, {"to": n}, f"of {n}", kind="TOOL", name="walk", parent="root")
        for n in reversed(range(calls))
    ]
    spans = [{**told, "id": f"t{n}"} for n, told in enumerate(spans)]
    session = only_session(langfuse(observation(1, ASKED, asked, parent="root"), *spans))
    results = session.entries[2:]
    assert [text_of(entry) for entry in results] == [f"of {n}" for n in range(calls)]
    return times


def test_matching_tool_spans_with_calls_decodes_each_entry_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert decoded_in(monkeypatch, 40) == decoded_in(monkeypatch, 4)


JUDGE = [{"role": "system", "content": "You judge."}, *ASKED]


@pytest.mark.parametrize(
    "judged", [JUDGE, "Is this safe? Which way?", "system: You judge.\nuser: Which way?"]
)
def test_a_judge_inside_a_generation_is_a_call_of_its_own(judged: Any) -> None:
    transcript = langfuse(
        observation(1, ASKED, "North."), observation(2, judged, "safe", parent="o1")
    )
    assert transcript.repairs == []
    assert [types(session) for session in transcript.sessions] == [["user", "assistant"]] * 2
    assert [text_of(session.entries[1]) for session in transcript.sessions] == ["North.", "safe"]


def test_a_wrapper_may_give_all_that_was_said_as_its_answer() -> None:
    said = {"role": "assistant", "content": "North."}
    transcript = langfuse(
        observation(1, {"messages": ASKED}, {"messages": [*ASKED, said]}),
        observation(2, {"messages": ASKED}, said, parent="o1"),
    )
    assert types(only_session(transcript)) == ["user", "assistant"]
    assert [repair.code for repair in transcript.repairs] == ["wrapper_generation"]


def test_what_a_wrapper_or_a_copy_held_stands_in_the_report() -> None:
    wrapped = langfuse(
        observation(1, {"prompt": "Which way?", "note": "MARK"}, "North."),
        observation(2, ASKED, "North.", parent="o1"),
    )
    copied = langfuse(
        observation(1, {"messages": ASKED}, {"role": "assistant", "content": "North."}),
        observation(2, "user: Which way?", "North.", parent="o1"),
    )
    assert [repair.code for repair in wrapped.repairs] == ["wrapper_generation"]
    assert [repair.code for repair in copied.repairs] == ["nested_generation"]
    for transcript in (wrapped, copied):
        (repair,) = transcript.repairs
        assert json.loads(repair.raw).keys() == {"request", "answer"}
    assert "MARK" in everything(wrapped)


def test_a_text_with_the_words_of_several_roles_is_a_copy_of_what_it_shows() -> None:
    called = {"role": "assistant", "tool_calls": CALLS}
    told = [*ASKED, called, {"role": "tool", "tool_call_id": "c1", "content": "3 miles"}]
    flat = "developer: x\nuser: Which way?\nassistant: None\ntool: 3 miles"
    transcript = langfuse(
        observation(1, {"messages": told}, "North."), observation(2, flat, "North.", parent="o1")
    )
    assert types(only_session(transcript)) == ["user", "assistant", "result", "assistant"]


@pytest.mark.parametrize(
    "given",
    [
        {"args": [], "kwargs": {"messages": ASKED}},
        {"args": ["MARK"], "kwargs": {"messages": ASKED}},
        {"prompt": "", "input": "Which way?"},
        {"input": "Which way?", "chat_history": [{"role": "user", "content": "MARK"}], "context": "MARK"},
        {"messages": ASKED, "chat_history": [{"role": "user", "content": "MARK"}], "model": "m"},
        {"args": [], "kwargs": {"input": "Which way?", "context": "MARK", "system": "Be brief."}},
        {"input": "Which way?", "system": {"odd": "MARK"}},
    ],
)  # fmt: skip
def test_a_prompt_is_found_behind_empty_ones_and_what_stands_beside_it_is_reported(
    given: dict[str, Any],
) -> None:
    transcript = langfuse(observation(1, given, "North."))
    session = only_session(transcript)
    assert [text_of(entry) for entry in session.entries] == ["Which way?", "North."]
    written = json.dumps(given)
    assert everything(transcript).count("MARK") == written.count("MARK")
    assert ("unreadable_part" in codes(session)) == ("MARK" in written)


def test_a_request_of_which_nothing_is_a_message_is_kept_in_the_report() -> None:
    known = observation(1, ASKED, "North.")
    transcript = langfuse(known, observation(2, [{"odd": "MARK"}], None))
    assert "MARK" in everything(transcript)


@pytest.mark.parametrize("words", [{"content": "I look."}, {"text": "I look."}])
def test_an_answer_with_calls_needs_no_role(words: dict[str, str]) -> None:
    session = only_session(langfuse(observation(1, ASKED, {**words, "tool_calls": CALLS})))
    assert types(session) == ["user", "assistant", "result"]
    said, call = items_of(session.entries[1])
    assert text_of(session.entries[1]) == "I look." and said.kind is not ItemKind.TOOL_CALL
    assert (call.kind, call.name) == (ItemKind.TOOL_CALL, "walk")


def test_what_an_answer_holds_beside_its_messages_is_kept() -> None:
    among = [{"role": "assistant", "content": "North."}, {"odd": "MARK"}]
    foreign = {"text": "North.", "toolCalls": [{"tool": "MARK"}]}
    for gave in (among, foreign):
        assert "MARK" in everything(langfuse(observation(1, ASKED, gave)))


def test_numbered_members_of_any_name_are_kept() -> None:
    asked = "llm.input_messages.1.message."
    gave = "llm.output_messages.0.message."
    told = {
        **OPENINFERENCE,
        f"{asked}contents.0.message_content.type": "image",
        f"{asked}contents.0.message_content.image.image.url": "https://x.example/i.png",
        f"{asked}contents.1.message_content.type": "audio",
        f"{asked}contents.1.message_content.audio.audio.url": "https://x.example/MARK",
        f"{gave}function_call_name": "run",
        f"{gave}function_call_arguments_json": '{"a": 1}',
        f"{gave}odd": "MARK",
        f"{gave}contents.1.message_content.type": "reasoning",
        f"{gave}contents.1.message_content.text": "SECRET",
    }
    transcript = read_records([span(told)])
    assert_sound(transcript)
    session = only_session(transcript)
    asks, step = session.entries[:2]
    assert text_of(asks) == "Which way?" and "i.png" in asks.body and "MARK" in asks.body
    assert "MARK" in step.body and "SECRET" not in everything(transcript)
    calls = [item for item in items_of(step) if item.kind is ItemKind.TOOL_CALL]
    assert [(c.name, c.arguments) for c in calls] == [("run", '{"a": 1}'), ("walk", "{}")]


def test_a_message_of_an_event_may_be_one_attribute_or_hold_parts() -> None:
    message = {"parts": [{"type": "text", "content": "North."}]}
    events = [
        {"name": "gen_ai.user.message", "content": {"role": "user", "content": "Which way?"}},
        {"name": "gen_ai.choice", "content": {"message": message, "finish_reason": "stop"}},
    ]
    told = [
        {"name": e["name"], "attributes": {"gen_ai.event.content": json.dumps(e["content"])}}
        for e in events
    ]
    session = only_session(read_records([span({"gen_ai.operation.name": "chat"}, told)]))
    assert [text_of(entry) for entry in session.entries] == ["Which way?", "North."]


@pytest.mark.parametrize("number", ["007", "²", "--5", "-", "", "+5", "1" * 5000])
def test_whole_numbers_of_otlp_that_are_none_refuse_no_trace(number: str) -> None:
    said = {"arrayValue": {"values": [{"stringValue": "Hi."}, {"intValue": number}]}}
    attributes = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "gen_ai.prompt": said,
        "gen_ai.usage.input_tokens": {"intValue": number},
    }
    told = {
        "spanId": "1", "name": "chat", "startTimeUnixNano": number,
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }  # fmt: skip
    transcript = read_value({"resourceSpans": [{"scopeSpans": [{"spans": [told]}]}]})
    assert_sound(transcript)
    assert text_of(only_session(transcript).entries[0]) == "Hi."
    assert json.dumps(number)[1:-1] in everything(transcript)


def test_system_text_beside_messages_of_the_ai_sdk_makes_no_anthropic_body() -> None:
    asks = {"role": "assistant", "content": [{"type": "tool-call", **SDK_CALL}]}
    body = {"system": "Be brief.", "messages": [*ASKED, asks, {"role": "tool", "content": [SDK_RESULT]}]}  # fmt: skip
    session = only_session(langfuse(observation(1, body, "Done.")))
    assert types(session) == ["user", "assistant", "result", "assistant"]
    assert (session.provider, session.instructions) == ("openai", "Be brief.")
    assert not session.entries[2].synthetic
    body["messages"] = ASKED
    assert only_session(langfuse(observation(1, body, "Done."))).provider == "anthropic"


def constructed(name: str, **members: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", name], "kwargs": members}


def test_serialised_objects_speak_in_their_own_role_or_not_at_all() -> None:
    given = [
        constructed("HumanMessage", content="Which way?"),
        constructed("ChatMessage", role="assistant", content="I look."),
        constructed("Document", page_content="MARK", content="MARK"),
    ]
    session = only_session(langfuse(observation(1, {"messages": given}, None)))
    assert types(session) == ["user", "assistant"]
    assert codes(session) == ["unreadable_part"] and "MARK" in session.repairs[0].raw


@pytest.mark.parametrize("role", ["human", "user", "Human", "assistant"])
def test_a_known_role_is_no_result_of_a_tool_of_that_name(role: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": role, "arguments": "{}"}}
    asks = {"role": "assistant", "content": "", "tool_calls": [call]}
    told = [
        *ASKED,
        asks,
        {"role": "tool", "tool_call_id": "c1", "content": "By foot."},
        {"role": role, "content": "Go on."},
    ]
    session = only_session(langfuse(observation(1, told, None)))
    speaker = "assistant" if role == "assistant" else "user"
    assert types(session) == ["user", "assistant", "result", speaker]
