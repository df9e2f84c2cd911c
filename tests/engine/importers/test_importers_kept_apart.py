"""What stands beside the conversation or only once: texts apart, queries of steps, single blocks, broken ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.detect import detect
from ctxengine.engine.importers.registry import NotATranscript, read
from ctxengine.engine.importers.transcript import ForeignSession, Transcript
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)

DIGEST = "a" * 32
REFERENCE = f"attachment://{DIGEST}"


def log(*texts: str, attachments: dict[str, str], samples: int = 1) -> Transcript:
    messages = [{"role": "user", "content": text} for text in texts]
    messages.append({"role": "assistant", "content": "Done."})
    sample = {
        "id": 1,
        "epoch": None,
        "messages": messages,
        "attachments": attachments,
        "events": [],
    }
    value = {
        "version": 2,
        "status": "success",
        "eval": {"model": "m"},
        "samples": [sample] * samples,
    }
    transcript = read_value(value)
    assert transcript.format == "inspect_ai_log"
    assert_sound(transcript)
    return transcript


def test_texts_apart_are_put_in_where_they_are_referred_to() -> None:
    session = only_session(log(f"See {REFERENCE}.", REFERENCE, attachments={DIGEST: 'a "text"'}))
    assert [text_of(e) for e in session.entries[:2]] == ['See a "text".', 'a "text"']
    assert not {"attachment_budget", "missing_attachment"} & set(codes(session))
    assert session.title == "sample 1, epoch 1"


@pytest.mark.parametrize(("each", "messages", "samples"), [(400, 1, 1), (20, 20, 1), (20, 5, 4)])
def test_a_text_that_is_referred_to_without_end_is_put_in_within_bounds(
    each: int, messages: int, samples: int
) -> None:
    text = "A" * 200_000
    transcript = log(*[REFERENCE * each] * messages, attachments={DIGEST: text}, samples=samples)
    bodies = [entry.body for session in transcript.sessions for entry in session.entries]
    size = sum(map(len, bodies))
    assert len(text) <= size <= 9 * 1024 * 1024
    kept = sum(body.count(REFERENCE) for body in bodies)
    put_in = sum(body.count("A") for body in bodies) // len(text)
    assert kept and kept + put_in == each * messages * samples
    assert "attachment_budget" in codes(transcript.sessions[-1])


def test_a_reference_to_nothing_is_reported() -> None:
    session = only_session(log(REFERENCE, attachments={}))
    assert text_of(session.entries[0]) == REFERENCE
    assert "missing_attachment" in codes(session)


def says(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


SYSTEM, TASK = says("system", "Be good."), says("user", "Fix it.")


def steps(*told: dict[str, Any]) -> ForeignSession:
    transcript = read_value({"trajectory": list(told), "info": {}})
    assert transcript.format == "swe_agent_traj"
    assert_sound(transcript)
    return only_session(transcript)


def test_the_first_query_of_a_trajectory_without_history_opens_it() -> None:
    first = {"query": [SYSTEM, TASK], "response": "I look.", "observation": "a.py"}
    session = steps(first, {"response": "Done.", "observation": None, "query": None})
    assert (session.instructions, session.title) == ("Be good.", "Fix it.")
    assert [text_of(e) for e in session.entries] == ["Fix it.", "I look.", "a.py", "Done."]
    assert types(session) == ["user", "assistant", "input", "assistant"]


def test_later_queries_add_what_is_new_and_tell_steps_in_the_models_own_form() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    asked = says("assistant", "I look.", tool_calls=[call])
    seen = says("tool", "OBSERVATION: a.py", tool_call_ids=["c"])
    session = steps(
        {"query": [SYSTEM, TASK], "response": "I look.", "observation": "a.py"},
        {"query": [SYSTEM, TASK, asked, seen], "response": "Done.", "observation": ""},
    )
    assert types(session) == ["user", "assistant", "result", "assistant", "input"]
    assert text_of(session.entries[2]) == "OBSERVATION: a.py"
    assert {"repeated_history", "trajectory_step"} <= set(codes(session))


def test_a_query_that_was_written_anew_loses_nothing() -> None:
    elided = says("user", "Old output: MARK left out")
    session = steps(
        {"query": [SYSTEM, TASK], "response": "I look.", "observation": "a.py"},
        {"query": [SYSTEM, elided], "response": None, "thought": "Hm.", "action": "ls"},
        {"query": "again", "response": {"text": "ODD"}, "observation": "b.py"},
    )
    assert [text_of(e) for e in session.entries] == [
        "Fix it.",
        "I look.",
        "a.py",
        "Hm.\n\nls",
        "b.py",
    ]
    told = "".join(repair.raw for repair in session.repairs)
    assert "MARK" in told and "ODD" in told and "again" in told


def test_a_query_that_is_one_message_or_none_is_accounted_for() -> None:
    session = steps({"query": TASK, "response": "I look.", "observation": "a.py"})
    assert [text_of(e) for e in session.entries] == ["Fix it.", "I look.", "a.py"]
    for odd in (5, True):
        session = steps(
            {"query": [SYSTEM, TASK], "response": "I look.", "observation": "a.py"},
            {"query": odd, "response": "Done.", "observation": ""},
        )
        assert [text_of(e) for e in session.entries][:4] == ["Fix it.", "I look.", "a.py", "Done."]
        (repair,) = [r for r in session.repairs if r.code == "unreadable_part"]
        assert json.loads(repair.raw) == odd


def record(number: int, kind: str, content: Any, **message: Any) -> dict[str, Any]:
    told = {"role": kind, "content": content, **message}
    about = {"uuid": f"u{number}", "parentUuid": None, "sessionId": "s"}
    return {"type": kind, "message": told, **about}


@pytest.mark.parametrize("odd", [{"stdout": "MARK"}, None, 5, True])
def test_content_of_a_split_answer_that_cannot_be_read_is_reported_alone(odd: Any) -> None:
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    lines = [
        record(1, "user", "Go."),
        record(
            2, "assistant", [use], id="m", model="c", usage={"input_tokens": 1, "output_tokens": 2}
        ),
        record(
            3, "assistant", odd, id="m", model="c", usage={"input_tokens": 1, "output_tokens": 9}
        ),
        record(4, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "out"}]),
    ]
    for given in (lines, [lines[0], lines[2], lines[1], lines[3]]):
        transcript = read_records(given)
        assert_sound(transcript)
        session = only_session(transcript)
        assert types(session) == ["user", "assistant", "result"]
        reported = [repair for repair in session.repairs if repair.code == "unreadable_record"]
        assert [json.dumps(odd) in repair.raw for repair in reported] == [True]


def test_a_block_that_is_the_whole_content_of_a_line_is_said() -> None:
    lines = [
        record(1, "user", "Go."),
        record(2, "assistant", [{"type": "text", "text": "One."}], id="m"),
        record(3, "assistant", {"type": "text", "text": "Two."}, id="m"),
    ]
    session = only_session(read_records(lines))
    assert text_of(session.entries[1]) == "One.Two."


@pytest.mark.parametrize("kind", ["queue-operation", "permission-mode", "ai-title", "system"])
@pytest.mark.parametrize("session", ["sessionId", "session_id"])
def test_a_session_that_opens_with_long_records_about_it_is_known(kind: str, session: str) -> None:
    opening = [{"type": kind, session: "s", "operation": "x", "content": "word " * 30_000}] * 2
    talk = [record(1, "user", "Go."), record(2, "assistant", [{"type": "text", "text": "Done."}])]
    text = "\n".join(map(json.dumps, [*opening, *talk]))
    assert detect(text[:70_000]) in ("claude_code", None) and detect(text) == "claude_code"
    assert types(only_session(read(text, name="given"))) == ["user", "assistant"]


WHOLE: list[tuple[str, dict[str, Any]]] = [
    ("claude_code", record(1, "user", "Go.")),
    ("openai_chat", says("user", "Go.")),
    ("codex_rollout", {"type": "response_item", "payload": {"type": "message", "role": "user",
                       "content": [{"type": "input_text", "text": "Go."}]}}),
    ("openhands_events", {"kind": "MessageEvent", "source": "user", "timestamp": "2025-10-01T10:00:00",
                          "llm_message": {"role": "user", "content": [{"type": "text", "text": "Go."}]}}),
    ("gemini_cli", {"projectHash": "p", "sessionId": "s", "type": "user", "content": "Go."}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "first"), WHOLE)
def test_one_whole_line_before_a_broken_one_is_read(name: str, first: dict[str, Any]) -> None:
    text = f"{json.dumps(first)}\n\n{json.dumps(first)[:-9]}"
    assert detect(text) == name
    transcript = read(text, name="given")
    assert transcript.format == name
    assert_sound(transcript)
    assert types(only_session(transcript)) == ["user"]
    assert [repair.code for repair in transcript.repairs] == ["broken_line"]


def test_a_document_with_something_behind_it_is_still_told_what_is_wrong() -> None:
    with pytest.raises(NotATranscript) as refusal:
        read('{\n "a": 1}\n{"b', name="given")
    assert "given" in refusal.value.reason


def test_a_null_hides_nothing_that_stands_beside_it() -> None:
    summary = {
        "type": "summary",
        "message": {"content": None},
        "summary": "All so far.",
        "sessionId": "s",
    }
    odd = record(2, "user", None) | {"toolUseResult": None, "mark": "MARK"}
    session = only_session(read_records([record(1, "user", "Go."), summary, odd]))
    assert [text_of(entry) for entry in session.entries] == ["Go.", "All so far."]
    assert ["MARK" in repair.raw for repair in session.repairs] == [True]
    assert "result_copy" not in codes(session)


@pytest.mark.parametrize("error", [None, "bad"])
def test_an_error_that_is_null_is_none(error: str | None) -> None:
    response = {"output": "out", "error": error}
    result = [{"functionResponse": {"id": "c", "name": "read", "response": response}}]
    call = {"id": "c", "name": "read", "args": None, "result": result, "status": "success"}
    messages = [
        {"id": "u", "type": "user", "content": "Go."},
        {"id": "g", "type": "gemini", "content": None, "toolCalls": [call], "thoughts": None},
    ]
    head = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"}
    session = only_session(read_value({**head, "messages": messages}))
    assert types(session) == ["user", "assistant", "result"]
    assert session.entries[2].is_error is (error is not None)
    assert "broken_arguments" not in codes(session)
