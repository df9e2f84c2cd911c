"""One value that its API would refuse: it is put right or leaves its message, and calls keep their results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import ForeignSession
from ctxengine.engine.items import ItemKind
from tests.engine.importers.accounts import assert_sound, codes, items_of, text_of, types

Messages = list[dict[str, Any]]


def chat(call_id: Any = "c", *, said: Any = None, gave: Any = "found", **more: Any) -> Messages:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": said, "tool_calls": [call], **more},
        {"role": "tool", "tool_call_id": call_id, "content": gave},
        {"role": "assistant", "content": "Done."},
    ]


def anthropic(said: Any = (), gave: Any = "found", call_id: Any = "t", **flag: Any) -> Messages:
    use = {"type": "tool_use", "id": call_id, "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": gave, **flag}
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [*said, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Done."},
    ]


def responses(call_id: Any = "c", gave: Any = "found", said: Any = "Go.") -> Messages:
    return [
        {"type": "message", "role": "user", "content": said},
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": gave},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]  # fmt: skip


def session_of(messages: Messages) -> ForeignSession:
    """The conversation, read from a list, a body and lines alike."""
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    found = []
    for text in (json.dumps(messages), lines, json.dumps({"messages": messages})):
        transcript = read(text, name="x")
        assert_sound(transcript)
        found.append(transcript.sessions[0])
    assert found[0].entries == found[1].entries == found[2].entries
    return found[0]


def assert_paired(messages: Messages) -> ForeignSession:
    session = session_of(messages)
    assert types(session) == ["user", "assistant", "result", "assistant"]
    assert not any(entry.synthetic for entry in session.entries)
    assert text_of(session.entries[0]) == "Go." and text_of(session.entries[3]) == "Done."
    return session


@pytest.mark.parametrize("number", [0, 1, 17, 10**20])
def test_ids_that_are_numbers_are_taken_as_text(number: int) -> None:
    for messages in (chat(number), anthropic(call_id=number), responses(number)):
        session = assert_paired(messages)
        assert session.entries[2].call_id == str(number)
        assert text_of(session.entries[2]) == "found"
        assert codes(session).count("mended_message") == 1


def test_results_that_name_their_tool_alone_answer_its_call() -> None:
    calls = [{"function": {"name": name, "arguments": {"x": 1}}} for name in ("look", "wait")]
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_name": "wait", "content": "noon"},
        {"role": "tool", "tool_name": "look", "content": "found"},
        {"role": "assistant", "content": "Done."},
    ]
    session = session_of(messages)
    assert types(session) == ["user", "assistant", "result", "result", "assistant"]
    assert [text_of(entry) for entry in session.entries[2:4]] == ["found", "noon"]
    assert "orphan_result" not in codes(session)


GAVE: list[tuple[Any, str]] = [
    ({"rows": 5}, '{"rows": 5}'),
    (["found", "more"], "foundmore"),
    ([{"type": "text", "text": "found"}, {"rows": 5}], 'found{"rows": 5}'),
    ([{"type": "text", "text": None}], '{"type": "text", "text": null}'),
    ({"type": "text", "text": "found"}, "found"),
    (5, "5"),
    (True, "true"),
]


@pytest.mark.parametrize(("gave", "text"), GAVE)
def test_a_result_of_any_value_answers_its_call(gave: Any, text: str) -> None:
    for messages in (chat(gave=gave), anthropic(gave=gave)):
        assert text_of(assert_paired(messages).entries[2]) == text


def test_an_item_of_any_value_answers_its_call() -> None:
    for gave, text in GAVE:
        if not isinstance(gave, dict):
            assert text_of(assert_paired(responses(gave=gave)).entries[2]) == text


@pytest.mark.parametrize(
    ("flag", "is_error"), [(0, False), (1, True), ("true", True), ("false", False), ("x", False)]
)
def test_flags_that_are_none_are_read_as_what_they_mean(flag: Any, is_error: bool) -> None:
    session = assert_paired(anthropic(is_error=flag))
    assert session.entries[2].is_error is is_error
    assert text_of(session.entries[2]) == "found"
    assert left_of(session) == ([flag] if flag == "x" else [])
    assert codes(session).count("mended_message") == 1


@pytest.mark.parametrize("flag", ["yes", "x", 2, [], {"a": 1}])
def test_a_flag_that_says_neither_yes_nor_no_is_set_aside(flag: Any) -> None:
    odd = {"type": "text"}
    for said, left in (((), [flag]), ([odd], [odd, flag])):
        session = assert_paired(anthropic(said, is_error=flag))
        assert session.entries[2].is_error is False
        assert left_of(session) == left
        assert codes(session).count("mended_message") == 1


def left_of(session: ForeignSession) -> list[Any]:
    return [json.loads(r.raw) for r in session.repairs if r.code == "unreadable_part"]


UNREADABLE: list[Any] = [
    {"type": "text", "text": None},
    {"type": "refusal"},
    {"type": 5, "text": "x"},
    {"rows": 5},
    7,
    None,
]


@pytest.mark.parametrize("odd", UNREADABLE)
def test_a_part_that_nobody_can_read_leaves_its_message_alone(odd: Any) -> None:
    words = {"type": "text", "text": "I look."}
    for messages in (anthropic([words, odd]), chat(said=[words, odd])):
        session = assert_paired(messages)
        said = items_of(session.entries[1])
        assert [item.kind for item in said][-1] is ItemKind.TOOL_CALL
        assert text_of(session.entries[1]) == "I look."
        (repair,) = [r for r in session.repairs if r.code == "unreadable_part"]
        assert json.loads(repair.raw) == odd and repair.items == 1


def test_texts_and_lone_parts_in_the_place_of_parts_are_read() -> None:
    assert text_of(assert_paired(chat(said=["I ", "look."])).entries[1]) == "I look."
    assert (
        text_of(assert_paired(chat(said={"type": "text", "text": "I look."})).entries[1])
        == "I look."
    )
    assert text_of(assert_paired(anthropic(["I look."])).entries[1]) == "I look."
    for content in ({"type": "input_text", "text": "Go."}, ["Go."]):
        assert_paired(responses(said=content))
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "found"}
    lone = anthropic()
    lone[1]["content"], lone[2]["content"] = use, result
    assert_paired(lone)


def test_calls_and_members_that_nobody_can_read_leave_the_others() -> None:
    messages = chat(refusal={"why": 1})
    messages[1]["tool_calls"] += [{"id": "d"}, 5]
    session = assert_paired(messages)
    left = [json.loads(r.raw) for r in session.repairs if r.code == "unreadable_part"]
    assert left == [{"id": "d"}, 5, {"why": 1}]
    broken = anthropic([{"type": "tool_use", "id": "u", "name": None, "input": {}}])
    assert codes(assert_paired(broken)).count("unreadable_part") == 1


def test_a_message_of_which_nothing_can_be_read_is_set_aside_whole() -> None:
    messages = [*chat()[:1], {"role": "assistant", "content": [{"type": "text"}]}, *chat()[1:]]
    session = session_of(messages)
    (repair,) = [r for r in session.repairs if r.code == "unreadable_message"]
    assert json.loads(repair.raw) == messages[1]
    assert types(session) == ["user", "assistant", "result", "assistant"]
