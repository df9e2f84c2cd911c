"""Chat answers with calls in a list of Anthropic's: every member is read, counted or set aside as the file has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.transcript import ForeignSession
from ctxengine.engine.items import DecodedItem, ItemKind
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    items_of,
    only_session,
    read_value,
    text_of,
    types,
)

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
ANTHROPIC = [
    {"role": "user", "content": "Start."},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "g", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]},
]
"""What makes the list one of that API."""


def among(*, result: str | None = "c", **members: Any) -> ForeignSession:
    """The session of such a list with an answer of these members and what came of its call."""
    named = {"tool_call_id": result} if result is not None else {"name": "f"}
    transcript = read_value(
        [
            *ANTHROPIC,
            {"role": "assistant", **members},
            {"role": "tool" if result else "function", "content": "found", **named},
            {"role": "assistant", "content": "Done."},
        ]
    )
    assert transcript.format == "anthropic_messages"
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session)[-3:] == ["assistant", "result", "assistant"]
    assert text_of(session.entries[-2]) == "found" and not session.entries[-2].synthetic
    return session


def call_of(session: ForeignSession) -> DecodedItem:
    (call,) = [i for i in items_of(session.entries[-3]) if i.kind is ItemKind.TOOL_CALL]
    return call


def left(session: ForeignSession) -> list[Any]:
    return [json.loads(r.raw) for r in session.repairs if r.code == "unreadable_part"]


@pytest.mark.parametrize(
    "member",
    [
        {"reasoning_content": "SECRET"},
        {"reasoning": "SECRET"},
        {"reasoning_details": [{"text": "SECRET"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "SECRET", "signature": "s"}]},
        {"provider_specific_fields": {"reasoning_content": "SECRET"}},
    ],
)
def test_reasoning_beside_calls_is_counted_and_never_kept(member: dict[str, Any]) -> None:
    session = among(content="I look.", tool_calls=[CALL], **member)
    (reasoning,) = [r for r in session.repairs if r.code == "reasoning"]
    assert reasoning.items == 1 and left(session) == []
    assert "SECRET" not in repr(session.entries)
    assert text_of(session.entries[-3]) == "I look." and call_of(session).call_id == "c"


def test_what_a_model_refuses_is_what_it_says() -> None:
    session = among(content=None, tool_calls=[CALL], refusal="I will not.")
    assert text_of(session.entries[-3]) == "I will not." and call_of(session).name == "f"


@pytest.mark.parametrize(
    "member",
    [
        {"audio": {"id": "a", "data": "aGk="}},
        {"audio": {"type": "text", "text": "no block"}},
        {"images": ["aGk=", {"url": "x"}]},
        {"refusal": {"why": 1}},
        {"function_call": {"arguments": "{}"}},
    ],
)
def test_members_that_have_no_place_are_set_aside_as_the_file_has_them(
    member: dict[str, Any],
) -> None:
    session = among(content="I look.", tool_calls=[CALL], **member)
    assert left(session) == list(member.values())
    assert text_of(session.entries[-3]) == "I look." and call_of(session).call_id == "c"


def test_words_about_a_message_are_nothing_it_says() -> None:
    about = {
        "id": "m",
        "name": "x",
        "usage": {"prompt_tokens": 1},
        "annotations": [],
        "audio": None,
    }
    session = among(content="", tool_calls=[CALL], function_call=None, **about)
    assert left(session) == [] and "mended_message" not in codes(session)


@pytest.mark.parametrize("given", ["*** Begin Patch", '{"x":1}'])
def test_a_call_of_a_tool_that_takes_free_text_is_a_call(given: str) -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": given}}
    call = call_of(among(content=None, tool_calls=[custom]))
    assert (call.name, call.call_id, call.arguments) == ("patch", "c", given)


def test_the_call_of_the_first_versions_is_a_call_and_finds_its_result() -> None:
    legacy = {"name": "f", "arguments": '{"x":1}'}
    session = among(result=None, content=None, function_call=legacy)
    assert (call_of(session).name, call_of(session).arguments) == ("f", '{"x":1}')
    assert "orphan_result" not in codes(session)


@pytest.mark.parametrize("odd", [{"id": "d", "type": "function"}, 5, {"id": "d", "custom": {}}])
def test_calls_that_cannot_be_read_leave_as_the_file_has_them(odd: Any) -> None:
    assert left(among(content="I look.", tool_calls=[CALL, odd])) == [odd]


def test_an_answer_of_which_nothing_can_be_read_is_set_aside_whole() -> None:
    odd = {"role": "assistant", "content": "", "tool_calls": [{"id": "d"}]}
    transcript = read_value([*ANTHROPIC, odd, {"role": "assistant", "content": "Done."}])
    assert_sound(transcript)
    session = only_session(transcript)
    (repair,) = [r for r in session.repairs if r.code == "unreadable_message"]
    assert json.loads(repair.raw) == odd
