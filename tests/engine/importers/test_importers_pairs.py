"""Calls and results of broken histories: matched by place, put in order, closed, set aside."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.transcript import EntryType, RepairAction
from ctxengine.engine.items import ItemKind
from tests.engine.importers.accounts import (
    assert_pairs_hold,
    assert_sound,
    codes,
    items_of,
    only_session,
    read_value,
    text_of,
    types,
)


def call(call_id: str, name: str = "look", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tells(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER = {"role": "user", "content": "Go on."}
DONE = {"role": "assistant", "content": "Done."}


def test_an_id_used_twice_gives_two_pairs_matched_by_place() -> None:
    first, second = (
        call("look:0", arguments='{"dir":"/srv"}'),
        call("look:0", arguments='{"dir":"/var"}'),
    )
    messages = [
        USER,
        asks(first),
        tells("look:0", "shop"),
        asks(second),
        tells("look:0", "log"),
        DONE,
    ]
    session = only_session(read_value({"messages": messages}))
    results = [entry for entry in session.entries if entry.type is EntryType.RESULT]
    asked = [items_of(session.entries[r.call_ref[0]])[r.call_ref[1]] for r in results if r.call_ref]
    assert [(a.arguments, text_of(r)) for a, r in zip(asked, results, strict=True)] == [
        ('{"dir":"/srv"}', "shop"),
        ('{"dir":"/var"}', "log"),
    ]
    assert codes(session, RepairAction.REMAPPED) == ["duplicate_call_id"]


def test_one_id_twice_in_one_batch_is_answered_in_call_order() -> None:
    messages = [
        USER,
        asks(call("a", arguments='{"n":1}'), call("a", arguments='{"n":2}')),
        tells("a", "one"),
        tells("a", "two"),
    ]
    session = only_session(read_value(messages))
    assert [text_of(e) for e in session.entries if e.type is EntryType.RESULT] == ["one", "two"]
    assert_pairs_hold(session)


def test_results_out_of_order_follow_their_calls() -> None:
    messages = [USER, asks(call("a"), call("b")), tells("b", "second"), tells("a", "first"), DONE]
    session = only_session(read_value(messages))
    assert [text_of(entry) for entry in session.entries[2:4]] == ["first", "second"]
    assert codes(session, RepairAction.MOVED) == ["result_order"]


def test_a_batch_split_by_a_user_message_is_joined_again() -> None:
    messages = [USER, asks(call("a"), call("b")), tells("a", "1"), USER, tells("b", "2"), DONE]
    session = only_session(read_value(messages))
    assert types(session) == ["user", "assistant", "result", "result", "user", "assistant"]
    assert codes(session, RepairAction.MOVED) == ["split_batch"]


def test_an_orphan_result_is_set_aside_with_its_text() -> None:
    session = only_session(read_value([USER, tells("gone", "left over"), DONE]))
    assert types(session) == ["user", "assistant"]
    (orphan,) = session.repairs
    assert (orphan.code, orphan.items, orphan.where) == ("orphan_result", 1, "message 2")
    assert json.loads(orphan.raw)["content"] == "left over"


def test_a_second_result_of_one_call_is_set_aside_and_none_is_invented() -> None:
    session = only_session(
        read_value([USER, asks(call("a")), tells("a", "1"), tells("a", "2"), DONE])
    )
    assert codes(session, RepairAction.SET_ASIDE) == ["second_result"]
    assert not any(entry.synthetic for entry in session.entries)


def test_a_call_without_result_is_closed_once_and_the_same_way_every_time() -> None:
    messages = [USER, asks(call("a"), call("b")), tells("b", "here"), USER, DONE]
    session = only_session(read_value(messages))
    assert types(session) == ["user", "assistant", "result", "result", "user", "assistant"]
    closing = session.entries[2]
    assert closing.synthetic and closing.is_error and closing.call_id == "a"
    (item,) = items_of(closing)
    assert item.kind is ItemKind.TOOL_RESULT and "interrupted" in text_of(closing)
    assert session.items_in == 6
    assert only_session(read_value(messages)) == session


def test_arguments_that_are_no_object_stay_as_written_and_their_calls_say_why_they_did_not_run() -> (
    None
):
    broken = '{"path":"notes.md","text":"first li'
    calls = [call("b1", "write", broken), call("b2", "now", ""), call("b3", "sum", "[1,2]")]
    session = only_session(
        read_value({"messages": [USER, asks(*calls)], "finish_reason": "length"})
    )
    results = session.entries[2:]
    assert [result.call_id for result in results] == ["b1", "b2", "b3"]
    assert [("not executed" in text_of(result)) for result in results] == [True, False, True]
    assert items_of(session.entries[1])[0].arguments == broken
    assert codes(session, RepairAction.WARNED) == ["broken_arguments", "broken_arguments"]


def test_an_empty_result_is_a_result_and_an_empty_text_beside_calls_is_reported() -> None:
    messages = [
        USER,
        asks(call("m1"), content=""),
        tells("m1", ""),
        {"role": "user", "content": "Good?"},
    ]
    session = only_session(read_value(messages))
    assert types(session) == ["user", "assistant", "result", "user"]
    result = session.entries[2]
    assert text_of(result) == "" and not result.is_error and not result.synthetic
    assert sorted(codes(session, RepairAction.WARNED)) == ["empty_result", "empty_text"]


def test_empty_messages_are_set_aside() -> None:
    empty = [{"role": "assistant", "content": None}, {"role": "user", "content": []}]
    session = only_session(read_value([USER, *empty, DONE]))
    assert types(session) == ["user", "assistant"]
    assert codes(session) == ["empty_message", "empty_message"]


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chat messages in any order: ids are few, so that they clash, and pairs are as often broken as whole."""
    ids = st.sampled_from(["a", "b", "c", "look:0"])
    words = st.sampled_from(["", " ", "yes", "一二", "\ud83d", "x" * 40])
    arguments = st.sampled_from(["", "{}", '{"a":1.0}', "[1]", "{broken", "null"])
    messages = st.one_of(
        words.map(lambda text: {"role": "user", "content": text}),
        words.map(lambda text: {"role": "system", "content": text}),
        st.lists(words, max_size=3).map(
            lambda texts: {"role": "user", "content": [{"type": "text", "text": t} for t in texts]}
        ),
        st.tuples(ids, words).map(lambda pair: tells(*pair)),
        st.tuples(st.one_of(st.none(), words), st.lists(st.tuples(ids, arguments), max_size=3)).map(
            lambda pair: asks(*(call(i, "t", a) for i, a in pair[1]), content=pair[0])
        ),
        words.map(lambda t: {"role": "assistant", "content": t, "reasoning_content": "secret"}),
        st.just(
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "old", "arguments": "{}"},
            }
        ),
        st.just({"role": "function", "name": "old", "content": "legacy"}),
        st.just({"role": "oracle", "content": "unknown role"}),
    )
    first = draw(words.filter(bool))
    return [{"role": "user", "content": first}, *draw(st.lists(messages, max_size=12))]


@given(histories())
def test_any_history_comes_out_whole_and_accounted_for(messages: list[dict[str, Any]]) -> None:
    transcript = read_value({"messages": messages})
    assert_sound(transcript)
    assert read_value({"messages": messages}) == transcript
    assert not any("secret" in entry.body for entry in only_session(transcript).entries)
