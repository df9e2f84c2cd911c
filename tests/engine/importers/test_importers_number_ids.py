"""Ids that are numbers, in records of agents: each result answers the call that it names, whatever their order."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.importers.transcript import ForeignSession, Transcript
from tests.engine.importers.accounts import (
    assert_sound,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)

AT = "2026-01-01T00:00:00Z"
IDS = [(1, 2), (0, 10**20), ("1", 2), ("a", "b")]


def assert_paired(transcript: Transcript, format: str, first: Any, second: Any) -> ForeignSession:
    """Two calls of one tool were answered in the other order."""
    assert transcript.format == format
    assert_sound(transcript)
    session = only_session(transcript)
    answered = {e.call_id: text_of(e) for e in session.entries if e.type == "result"}
    assert answered == {str(first): "first", str(second): "second"}
    assert not any(entry.synthetic for entry in session.entries)
    return session


@pytest.mark.parametrize(("first", "second"), IDS)
@pytest.mark.parametrize("by", ["call", "action", "nested"])
def test_openhands_events(first: Any, second: Any, by: str) -> None:
    def event(kind: str, source: str, **more: Any) -> dict[str, Any]:
        return {"timestamp": AT, "source": source, "kind": kind, **more}

    def acts(key: Any) -> dict[str, Any]:
        call = {"name": "bash", "arguments": "{}", **({"id": key} if by == "nested" else {})}
        told = {"id": key, "thought": [], "llm_response_id": 7, "tool_name": "bash"}
        named = {} if by == "nested" else {"tool_call_id": key}
        return event("ActionEvent", "agent", **told, **named, tool_call=call)

    def observes(key: Any, text: str) -> dict[str, Any]:
        named = {"action_id": key} if by == "action" else {"tool_call_id": key}
        told = {"id": "o", "tool_name": "bash", "observation": {"content": text}}
        return event("ObservationEvent", "environment", **told, **named)

    said = {"role": "user", "content": [{"type": "text", "text": "Go."}]}
    transcript = read_records(
        [
            event("MessageEvent", "user", id="m", llm_message=said),
            acts(first),
            acts(second),
            observes(second, "second"),
            observes(first, "first"),
        ]
    )
    session = assert_paired(transcript, "openhands_events", first, second)
    assert types(session) == ["user", "assistant", "result", "result"]


@pytest.mark.parametrize(("first", "second"), IDS)
def test_gemini_cli(first: Any, second: Any) -> None:
    def response(key: Any, text: str) -> dict[str, Any]:
        return {"functionResponse": {"id": key, "name": "read", "response": {"output": text}}}

    both = [response(second, "second"), response(first, "first")]
    calls = [
        {"id": key, "name": "read", "args": {"n": n}, "status": "success", "result": both}
        for n, key in enumerate((first, second))
    ]
    again = [{"functionCall": {"id": first, "name": "read", "args": {"n": 5}}}]
    messages = [
        {"id": "u", "timestamp": AT, "type": "user", "content": "Go."},
        {"id": "g", "timestamp": AT, "type": "gemini", "content": again, "toolCalls": calls},
        {"id": "v", "timestamp": AT, "type": "user", "content": both},
    ]
    transcript = read_value({"sessionId": "s", "projectHash": "h", "messages": messages})
    session = assert_paired(transcript, "gemini_cli", first, second)
    assert types(session) == ["user", "assistant", "result", "result"]


@pytest.mark.parametrize(("first", "second"), IDS)
@pytest.mark.parametrize("cut", [True, False])
def test_pi(first: Any, second: Any, cut: bool) -> None:
    def message(key: int, **told: Any) -> dict[str, Any]:
        parent = key - 1 if key else None
        return {"type": "message", "id": key, "parentId": parent, "timestamp": AT, "message": told}

    def call(key: Any) -> dict[str, Any]:
        partial = {"partialJson": "{}"} if cut else {"arguments": {}}
        return {"type": "toolCall", "id": key, "name": "read", **partial}

    def result(number: int, key: Any, text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return message(number, role="toolResult", toolCallId=key, toolName="read", content=content)

    records = [
        message(0, role="user", content="Go."),
        message(1, role="assistant", content=[call(first), call(second)]),
        result(2, second, "second"),
        result(3, first, "first"),
    ]
    head = {"type": "session", "version": 3, "id": 5, "timestamp": AT, "cwd": "/x"}
    transcript = read_records([head, *records])
    session = assert_paired(transcript, "pi_session", first, second)
    assert types(session) == ["user", "assistant", "result", "result"]
    assert session.key == "5"
    done, other = message(4, role="assistant", content=[]), message(5, role="user", content="Else.")
    done["message"]["content"] = [{"type": "text", "text": "Done."}]
    forked = read_records([head, *records, done, other, {**other, "id": 6, "parentId": 4}])
    assert [len(s.entries) for s in forked.sessions] == [6, 1]
