"""What Claude Code's newer files hold beside messages: words typed meanwhile, notes, names, what agents did."""

from __future__ import annotations

from typing import Any

from ctxengine.engine.importers.transcript import Transcript
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    only_session,
    read_records,
    text_of,
    types,
)


def record(kind: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": at,
        **more,
    }


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return record("user", uuid, parent, message={"role": "user", "content": content}, **more)


def answer(uuid: str, parent: str | None, *content: dict[str, Any]) -> dict[str, Any]:
    message = {"id": f"m-{uuid}", "role": "assistant", "model": "claude", "content": list(content)}
    return record("assistant", uuid, parent, message=message)


def attached(uuid: str, parent: str, **attachment: Any) -> dict[str, Any]:
    return record("attachment", uuid, parent, attachment=attachment)


def queue(operation: str, **more: Any) -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "sessionId": "s", **more}


CALL = {"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "seen"}
TEXT = {"type": "text", "text": "Done."}


def sound(records: list[dict[str, Any]]) -> Transcript:
    transcript = read_records(records)
    assert transcript.format == "claude_code"
    assert_sound(transcript)
    return transcript


def test_words_typed_into_a_running_turn_are_the_users_and_notes_there_are_not() -> None:
    session = only_session(
        sound(
            [
                user("u", None, "Go."),
                answer("a", "u", CALL),
                user("r", "a", [RESULT]),
                queue("enqueue", content="And the docs."),
                queue("remove", content="And the docs."),
                attached(
                    "q", "r", type="queued_command", prompt="And the docs.", commandMode="prompt"
                ),
                attached(
                    "n",
                    "q",
                    type="queued_command",
                    prompt="<task-notification>ok",
                    commandMode="task-notification",
                ),
                attached(
                    "p",
                    "n",
                    type="queued_command",
                    prompt=[{"type": "text", "text": "From a peer."}],
                    origin={"kind": "peer"},
                ),
                answer("b", "p", TEXT),
            ]
        )
    )
    assert types(session) == ["user", "assistant", "result", "input", "input", "input", "assistant"]
    told = [(text_of(entry), entry.trust.name) for entry in session.entries[3:6]]
    assert told == [
        ("And the docs.", "USER"),
        ("<task-notification>ok", "EXTERNAL_UNTRUSTED"),
        ("From a peer.", "EXTERNAL_UNTRUSTED"),
    ]


def test_queued_words_that_no_message_repeats_are_told_in_the_report() -> None:
    session = only_session(
        sound(
            [
                user("u", None, "Go."),
                queue("enqueue", content="Go."),
                queue("remove", content="Never mind."),
                answer("a", "u", TEXT),
            ]
        )
    )
    assert [(r.code, r.items) for r in session.repairs] == [
        ("queued_words", 1),
        ("queue_operation", 1),
    ]
    assert "Never mind." in session.repairs[0].raw


def test_a_note_before_the_users_words_does_not_make_them_a_note() -> None:
    note = {"type": "text", "text": "<system-reminder>Mind the date.</system-reminder>"}
    session = only_session(
        sound([user("u", None, [note, {"type": "text", "text": "Go."}]), answer("a", "u", TEXT)])
    )
    assert types(session) == ["input", "user", "assistant"]
    assert (text_of(session.entries[1]), session.title) == ("Go.", "Go.")


def test_a_record_that_names_its_author_is_believed() -> None:
    session = only_session(
        sound(
            [
                user("u", None, "Go.", origin={"kind": "human"}),
                answer("a", "u", TEXT),
                user("p", "a", "Do as I say.", origin={"kind": "peer"}),
                answer("b", "p", TEXT),
            ]
        )
    )
    assert types(session) == ["user", "assistant", "input", "assistant"]
    assert session.entries[2].trust.name == "EXTERNAL_UNTRUSTED"


def test_the_name_that_was_given_is_the_title_and_attachments_stand_in_the_report() -> None:
    session = only_session(
        sound(
            [
                user("u", None, "Go."),
                attached("s", "u", type="skill_listing", content="- a skill"),
                answer("a", "s", TEXT),
                {"type": "ai-title", "aiTitle": "Going", "sessionId": "s"},
                {"type": "custom-title", "customTitle": "My own name", "sessionId": "s"},
                {"type": "ai-title", "aiTitle": "Gone", "sessionId": "s"},
            ]
        )
    )
    assert session.title == "My own name"
    (repair,) = [r for r in session.repairs if r.code == "attachment"]
    assert "skill_listing" in repair.detail and "- a skill" in repair.raw


def test_what_agents_did_is_a_child_session_of_the_call_they_ran_for() -> None:
    def progress(uuid: str, parent: str, message: dict[str, Any]) -> dict[str, Any]:
        data = {"type": "agent_progress", "agentId": "scout", "message": message}
        return record("progress", uuid, parent, data=data, parentToolUseID="t")

    read = {"type": "tool_use", "id": "x", "name": "Read", "input": {}}
    transcript = sound(
        [
            user("u", None, "Go."),
            answer("a", "u", CALL),
            progress("p1", "a", user("i", None, "look")),
            progress("p2", "p1", answer("j", "i", read)),
            record("progress", "p3", "p2", data={"type": "bash_progress"}),
            user("r", "p3", [RESULT]),
            answer("b", "r", TEXT),
        ]
    )
    main, agent = transcript.sessions
    assert types(main) == ["user", "assistant", "result", "assistant"]
    assert types(agent) == ["user", "assistant", "result"]
    assert agent.parent == ("s", 1) and agent.key == "s/agent-scout"
    assert codes(main).count("progress") == 1


def test_a_printed_stream_is_a_session_and_what_was_said_for_a_call_its_child() -> None:
    def printed(kind: str, content: Any, caller: str | None = None, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, **more}
        return {"type": kind, "message": message, "session_id": "s", "parent_tool_use_id": caller}

    read = {"type": "tool_use", "id": "x", "name": "Read", "input": {}}
    transcript = sound(
        [
            {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Task"]},
            printed("assistant", [CALL], id="m1", model="claude"),
            printed("user", [{"type": "text", "text": "look"}], "t"),
            printed("assistant", [read], "t", id="m2", model="claude"),
            printed("user", [{**RESULT, "tool_use_id": "x"}], "t"),
            printed("user", [RESULT]),
            printed("assistant", [TEXT], id="m3", model="claude"),
            {"type": "result", "subtype": "success", "session_id": "s", "result": "Done."},
        ]
    )
    main, child = transcript.sessions
    assert types(main) == ["assistant", "result", "assistant"]
    assert types(child) == ["user", "assistant", "result"]
    assert (main.key, child.parent) == ("s", ("s", 0))
    assert not any(entry.synthetic for entry in [*main.entries, *child.entries])
