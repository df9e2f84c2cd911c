"""Codex' rollouts of all ages: bare items, forks, turns that were rolled back, other agents, tools of free text."""

from __future__ import annotations

import json
from typing import Any

from ctxengine.engine.importers.transcript import Transcript
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


CALL = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a.py"}
META = {"id": "own", "base_instructions": {"text": "Be Codex."}}


def line(payload: dict[str, Any], kind: str = "response_item") -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return line({"type": kind, **more}, "event_msg")


def sound(transcript: Transcript) -> Transcript:
    assert transcript.format == "codex_rollout"
    assert_sound(transcript)
    return transcript


def test_the_first_rollouts_are_items_without_records_around_them() -> None:
    items = [message("user", "Look."), CALL, OUTPUT, message("assistant", "Done.")]
    head = {"id": "old", "timestamp": "2025-08-01T00:00:00Z", "instructions": "Be Codex."}
    lines = sound(read_records([head, {"record_type": "state"}, *items, {"record_type": "state"}]))
    document = sound(read_value({"session": head, "items": items}))
    for transcript in (lines, document):
        session = only_session(transcript)
        assert types(session) == ["user", "assistant", "result", "assistant"]
        assert (session.key, session.instructions) == ("old", "Be Codex.")
        assert session.started_at == "2025-08-01T00:00:00Z"


def test_records_in_a_list_are_read_as_on_lines() -> None:
    records = [line(META, "session_meta"), line(message("user", "Look.")), line(CALL), line(OUTPUT)]
    assert sound(read_value(records)).sessions == sound(read_records(records)).sessions


def test_a_fork_goes_by_its_own_name() -> None:
    parent = {"id": "parent", "base_instructions": {"text": "Be another."}}
    session = only_session(
        sound(
            read_records(
                [
                    line(META, "session_meta"),
                    line(parent, "session_meta"),
                    line({"a": 1}, "world_state"),
                    line(message("user", "Look.")),
                ]
            )
        )
    )
    assert (session.key, session.instructions) == ("own", "Be Codex.")
    assert {"session_meta", "world_state"} == set(codes(session))


def test_turns_that_were_rolled_back_are_a_child_session() -> None:
    usage = {"last_token_usage": {"input_tokens": 9, "output_tokens": 2}}
    transcript = sound(
        read_records(
            [
                line(META, "session_meta"),
                line(message("user", "One.")),
                line(message("assistant", "First.")),
                line(message("user", "Two.")),
                line(CALL),
                event("token_count", info=usage),
                line(OUTPUT),
                line(message("user", "Three.")),
                line(message("assistant", "Lost.")),
                event("thread_rolled_back", num_turns=2),
                line(message("user", "Again.")),
                line(message("assistant", "Kept.")),
                event("thread_rolled_back", num_turns=0),
            ]
        )
    )
    main, undone = transcript.sessions
    assert [text_of(entry) for entry in main.entries] == ["One.", "First.", "Again.", "Kept."]
    assert types(undone) == ["user", "assistant", "result", "user", "assistant"]
    assert (undone.key, undone.parent) == ("own/rollback-1", ("own", 1))
    assert undone.entries[1].usage is not None


def test_another_agents_message_is_no_word_of_the_model() -> None:
    told = {"type": "agent_message", "author": "/root/a", "recipient": "/root",
            "content": [{"type": "input_text", "text": "found it"}]}  # fmt: skip
    tools = {"type": "additional_tools", "tools": [{"type": "function", "name": "late"}]}
    session = only_session(
        sound(
            read_records(
                [line(message("user", "Look.")), line(told), line(tools), line(message("assistant", "Good."))]
            )
        )
    )  # fmt: skip
    assert types(session) == ["user", "input", "assistant"]
    assert session.entries[1].trust.name == "EXTERNAL_UNTRUSTED"
    assert text_of(session.entries[1]) == "found it"
    assert json.loads(session.entries[1].extra) == {"author": "/root/a", "recipient": "/root"}
    assert [tool.name for tool in session.tools] == ["late"]


def test_free_text_for_a_custom_tool_is_not_broken_and_served_tools_stay_in_their_answer() -> None:
    patch = {
        "type": "custom_tool_call",
        "call_id": "p",
        "name": "apply_patch",
        "input": "*** Begin",
    }
    image = [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]
    session = only_session(
        sound(
            read_records(
                [
                    line(message("user", "Patch.")),
                    line({"type": "tool_search_call", "call_id": "t", "execution": "server", "arguments": {}}),
                    line({"type": "tool_search_output", "call_id": "t", "execution": "server", "tools": []}),
                    line(patch),
                    line({"type": "local_shell_call", "call_id": "l", "action": {"type": "exec", "command": []}}),
                    line({"type": "custom_tool_call_output", "call_id": "p", "output": "ok"}),
                    line({"type": "function_call_output", "call_id": "l", "output": image}),
                ]
            )
        )
    )  # fmt: skip
    assert types(session) == ["user", "assistant", "result", "result"]
    assert set(codes(session)) == {"synthesised_tool"}


def test_a_summary_that_only_the_provider_can_read_is_a_summary() -> None:
    sealed = {"type": "compaction", "encrypted_content": "SEALED"}
    compacted = {"message": "", "replacement_history": [message("user", "One."), sealed]}
    session = only_session(
        sound(
            read_records(
                [line(message("user", "One.")), line(compacted, "compacted"), line(message("user", "Two."))]
            )
        )
    )  # fmt: skip
    assert types(session) == ["user", "summary", "user"]
    assert "empty_text" not in codes(session)
    assert '"compaction"' in session.entries[1].body
