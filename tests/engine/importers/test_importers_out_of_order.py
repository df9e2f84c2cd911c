"""What stands in another place than it belongs to: results without names, records before those they hang on, repeats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import ForeignSession
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)
from tests.engine.importers.work import lines_run

Call = tuple[str | None, str]
Told = tuple[str | None, str | None, str]
"""Id, tool and text of a result."""


def chat(*turns: list[Any] | Told | str) -> ForeignSession:
    """A conversation of calls or words of the model (a list), results and the user's words."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for turn in turns:
        if turn and isinstance(turn, list) and isinstance(turn[0], str):
            messages.append({"role": "assistant", "content": turn[0]})
        elif isinstance(turn, list):
            calls = [
                {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}}
                for key, name in turn
            ]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        elif isinstance(turn, tuple):
            named = {"tool_call_id": turn[0], "name": turn[1]}
            given = {name: value for name, value in named.items() if value is not None}
            messages.append({"role": "tool", "content": turn[2], **given})
        else:
            messages.append({"role": "user", "content": turn})
    messages.append({"role": "assistant", "content": "Done."})
    transcript = read_value({"messages": messages})
    assert_sound(transcript)
    return only_session(transcript)


def results(session: ForeignSession) -> list[tuple[str | None, str]]:
    """What each call was answered, in call order; None where nothing did."""
    return [
        (entry.name, "-" if entry.synthetic else text_of(entry))
        for entry in session.entries
        if entry.type == "result"
    ]


def test_results_without_id_and_name_answer_the_nearest_open_calls_in_order() -> None:
    none: Told = (None, None, "1")
    assert results(chat([("a", "f")], none)) == [("f", "1")]
    assert results(chat([(None, "f")], none)) == [("f", "1")]
    pair: list[Call] = [("a", "f"), ("b", "g")]
    assert results(chat(pair, none, (None, None, "2"))) == [("f", "1"), ("g", "2")]
    assert results(chat(pair, none)) == [("f", "1"), ("g", "-")]
    both = chat([("a", "f")], none, [("b", "g")], (None, None, "2"))
    assert results(both) == [("f", "1"), ("g", "2")]
    assert not {"orphan_result", "interrupted_call"} & set(codes(both))


def test_results_that_are_named_go_first() -> None:
    pair: list[Call] = [("a", "f"), ("b", "f")]
    session = chat(pair, (None, None, "1"), ("a", None, "2"))
    assert results(session) == [("f", "2"), ("f", "1")]


def test_a_result_nobody_asked_for_stays_an_orphan() -> None:
    more = chat([("a", "f")], (None, None, "1"), (None, None, "2"))
    assert results(more) == [("f", "1")] and "orphan_result" in codes(more)
    other = chat([("a", "f")], (None, "g", "1"))
    assert results(other) == [("f", "-")] and "orphan_result" in codes(other)
    early = chat((None, None, "1"), [("a", "f")])
    assert results(early) == [("f", "-")] and "orphan_result" in codes(early)


def test_an_invented_id_answers_a_call_that_has_none() -> None:
    assert results(chat([(None, "f")], ("x", None, "1"))) == [("f", "1")]
    assert results(chat([("a", "f")], ("x", None, "1"))) == [("f", "-")]


def test_a_result_that_is_named_keeps_its_call_however_late_it_comes() -> None:
    pair: list[Call] = [("a", "f"), ("b", "g")]
    late = chat(pair, (None, None, "?"), ["mid"], ("a", None, "1"), ("b", None, "2"))
    assert results(late) == [("f", "1"), ("g", "2")]
    (left,) = [repair.raw for repair in late.repairs if repair.code == "orphan_result"]
    assert "?" in left
    beyond = chat([("a", "f")], (None, None, "?"), [("b", "g")], ("a", None, "1"))
    assert results(beyond) == [("f", "1"), ("g", "-")]
    free = chat(pair, (None, None, "2"), ["mid"], ("a", None, "1"))
    assert results(free) == [("f", "1"), ("g", "2")]


STRANGERS = [(None, None, "?"), ("x", None, "?")]


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("call", [("a", "delete_db"), (None, "delete_db")])
@pytest.mark.parametrize(
    "between", [["Stop that."], ["Stop that.", ["Stopped."], "And now?"], [[("b", "look")], ("b", None, "1")]]
)  # fmt: skip
def test_a_result_without_a_name_answers_no_call_beyond_the_users_words_or_a_newer_step(
    stranger: Told, call: Call, between: list[Any]
) -> None:
    session = chat([call], *between, stranger)
    assert results(session)[0] == ("delete_db", "-")
    assert "orphan_result" in codes(session) and "paired_by_order" not in codes(session)


def test_every_pairing_by_order_is_told() -> None:
    by_order = chat([("a", "f"), ("b", "g")], (None, None, "1"), (None, None, "2"))
    (repair,) = [repair for repair in by_order.repairs if repair.code == "paired_by_order"]
    assert repair.where == "message 2" and repair.detail.startswith("2 results")
    named = chat([("a", "f")], ("a", None, "1"), [(None, "g")], (None, "g", "2"))
    assert "paired_by_order" not in codes(named)


def test_twice_as_many_results_without_a_name_are_twice_the_work() -> None:
    def reading(size: int) -> Any:
        calls = [{"id": f"{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(size)]
        results = [{"role": "tool", "content": f"{n}"} for n in range(size)]
        asks = {"role": "assistant", "content": None, "tool_calls": calls}
        text = json.dumps({"messages": [{"role": "user", "content": "Go."}, asks, *results]})
        return lambda: read(text, name="given.json")

    assert lines_run(reading(400)) < 2.5 * lines_run(reading(200))


KEYS = st.sampled_from([None, "a", "b"])
NAMES = st.sampled_from(["f", "g"])
TURNS = st.one_of(
    st.lists(st.tuples(KEYS, NAMES), min_size=1, max_size=3),
    st.tuples(KEYS, st.one_of(st.none(), NAMES), st.sampled_from(["1", "2"])),
    st.just("Go on."),
    st.just(["I see."]),
)


@given(st.lists(TURNS, max_size=8))
def test_every_mixture_of_named_and_nameless_is_whole_and_settled(turns: list[Any]) -> None:
    chat(*turns)


def record(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("message_id", f"m{number}"), "model": "claude"}
    parent = f"u{number - 1}" if number else None
    about = {"uuid": f"u{number}", "parentUuid": parent, "sessionId": "s"}
    return {"type": kind, "message": message, **about, **more}


def use(key: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "Bash", "input": {}}


def result(key: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": f"out {key}"}


CHAIN = [
    record(0, "user", "Go."),
    record(1, "assistant", [{"type": "text", "text": "I look."}], message_id="m"),
    record(2, "assistant", [use("a")], message_id="m"),
    record(3, "user", [result("a")]),
    record(4, "assistant", [use("b"), use("c")]),
    record(5, "user", [result("b")]),
    record(6, "user", [result("c")]),
    record(7, "assistant", [{"type": "text", "text": "Done."}]),
]


@given(st.permutations(CHAIN))
def test_a_chain_of_records_is_one_conversation_in_any_order(lines: list[dict[str, Any]]) -> None:
    transcript = read_records(lines)
    assert transcript.format == "claude_code"
    assert_sound(transcript)
    session, straight = only_session(transcript), only_session(read_records(CHAIN))
    assert session.entries == straight.entries
    assert not {"orphan_result", "interrupted_call"} & set(codes(session))


def test_a_side_chain_is_put_in_order_too() -> None:
    sides = [{**line, "isSidechain": True} for line in CHAIN]
    alone = only_session(read_records(sides[::-1]))
    assert types(alone) == types(only_session(read_records(CHAIN)))
    main = [record(100, "user", "Go.", parentUuid=None), record(101, "assistant", [use("t")])]
    beside = read_records([*main, *sides[::-1]])
    assert_sound(beside)
    assert types(beside.sessions[1]) == types(alone)


def test_what_agents_did_is_put_in_order_too() -> None:
    def progress(line: dict[str, Any]) -> dict[str, Any]:
        data = {"type": "agent_progress", "agentId": "scout", "message": line}
        return {"type": "progress", "data": data, "sessionId": "s", "parentToolUseID": "t"}

    main = [record(100, "user", "Go.", parentUuid=None), record(101, "assistant", [use("t")])]
    transcript = read_records([*main, *map(progress, CHAIN[::-1])])
    assert_sound(transcript)
    assert types(transcript.sessions[1]) == types(only_session(read_records(CHAIN)))


def test_records_without_parents_stay_where_they_are() -> None:
    bare = [{k: v for k, v in line.items() if k not in ("uuid", "parentUuid")} for line in CHAIN]
    assert types(only_session(read_records(bare))) == types(only_session(read_records(CHAIN)))
    turned = only_session(read_records(bare[::-1]))
    assert "orphan_result" in codes(turned)


def test_records_that_hang_on_each_other_in_a_circle_are_read_once() -> None:
    circle = [
        record(0, "user", "Go.", parentUuid="u1"),
        record(1, "assistant", [{"type": "text", "text": "Done."}]),
    ]
    for lines in (circle, circle[::-1]):
        transcript = read_records(lines)
        assert_sound(transcript)
        assert sorted(types(only_session(transcript))) == ["assistant", "user"]


@pytest.mark.parametrize("up", range(len(CHAIN)))
def test_a_circle_is_cut_where_the_file_begins_to_tell_it(up: int) -> None:
    """Whatever of its own followers the first record hangs on, the file's own order is the conversation."""
    straight = only_session(read_records(CHAIN))
    transcript = read_records([{**CHAIN[0], "parentUuid": f"u{up}"}, *CHAIN[1:]])
    assert_sound(transcript)
    assert [text_of(entry) for entry in only_session(transcript).entries] == [
        text_of(entry) for entry in straight.entries
    ]


@given(st.permutations(CHAIN), st.integers(0, len(CHAIN) - 1))
def test_a_circle_in_any_order_loses_no_record(lines: list[dict[str, Any]], up: int) -> None:
    circle = [{**line, "parentUuid": f"u{up}"} if line["uuid"] == "u0" else line for line in lines]
    transcript = read_records(circle)
    assert_sound(transcript)
    read_once = sum(session.items_in for session in transcript.sessions)
    assert read_once == only_session(read_records(CHAIN)).items_in


def test_a_chain_twice_as_long_in_reverse_is_twice_the_work() -> None:
    def reading(size: int) -> Any:
        lines = [json.dumps(record(number, "user", f"{number}")) for number in range(size)]
        text = "\n".join(reversed(lines))
        return lambda: read(text, name="given.jsonl")

    assert lines_run(reading(400)) < 2.2 * lines_run(reading(200))


def line(payload: dict[str, Any], kind: str = "response_item") -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def count(output: int, total: int | None) -> dict[str, Any]:
    info: dict[str, Any] = {"last_token_usage": {"input_tokens": 100, "output_tokens": output}}
    if total is not None:
        info["total_token_usage"] = {"input_tokens": 100 * total, "output_tokens": total}
    return line({"type": "token_count", "info": info}, "event_msg")


def asks(key: str) -> dict[str, Any]:
    return line({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": key})


def gives(key: str) -> dict[str, Any]:
    return line({"type": "function_call_output", "call_id": key, "output": "ok"})


def says(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return line({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})


ABORTED = line({"type": "turn_aborted", "reason": "interrupted"}, "event_msg")
NO_INFO = line({"type": "token_count", "info": None, "rate_limits": {}}, "event_msg")


def outputs(*records: dict[str, Any]) -> list[int | None]:
    """Output tokens of each answer of a rollout."""
    transcript = read_records([line({"id": "s"}, "session_meta"), says("user", "Go."), *records])
    assert transcript.format == "codex_rollout"
    assert_sound(transcript)
    answers = [e for e in only_session(transcript).entries if e.type == "assistant"]
    return [answer.usage.output if answer.usage else None for answer in answers]


def test_figures_that_are_told_again_belong_to_no_other_answer() -> None:
    first = [asks("a"), count(11, 11), gives("a")]
    assert outputs(*first, count(11, 11), asks("b"), gives("b"), ABORTED) == [11, None]
    assert outputs(*first, count(11, 11), NO_INFO, asks("b"), count(22, 33)) == [11, 22]


def test_figures_that_are_told_again_split_no_answer() -> None:
    first = [asks("a"), count(11, 11), gives("a")]
    parts = [says("assistant", "I look."), count(11, 11), asks("b"), count(22, 33), gives("b")]
    assert outputs(*first, *parts) == [11, 22]


def test_equal_figures_of_two_answers_are_two_where_the_total_grows_or_is_not_told() -> None:
    for totals in ((11, 22), (None, None)):
        told = [asks("a"), count(11, totals[0]), gives("a"), asks("b"), count(11, totals[1])]
        assert outputs(*told) == [11, 11]


@pytest.mark.parametrize("message", [None, ""])
def test_a_sealed_compaction_without_a_text_of_its_own_is_kept(message: str | None) -> None:
    sealed = {"type": "compaction", "encrypted_content": "SEALED"}
    payload = {"message": message, "replacement_history": [sealed]}
    records = [says("user", "Go."), says("assistant", "Done."), line(payload, "compacted")]
    transcript = read_records(records)
    assert_sound(transcript)
    assert "summary" in types(only_session(transcript))
