"""What an imported session keeps beside its items: its parent, its provider, what was set aside, and no secrets in lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.engine.wire.rules import violations
from ctxengine.ledger.models import Body, Event, ImportRow, RequestRow, RunRow, SessionRow
from ctxengine.service import import_transcript
from ctxengine.service.import_transcript import import_file
from ctxengine.service.prove import replay_row
from ctxengine.service.rebuild import rebuild_request
from tests.cast import new_actor

pytestmark = pytest.mark.django_db


def line(uuid: str, parent: str | None, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    role = {"role": kind, "content": content}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "isSidechain": False,
        "timestamp": f"2026-01-02T03:04:{len(uuid):02d}Z",
        "message": role,
        **fields,
    }


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


SIDECHAIN = lines(
    line("a1", None, "user", "First question."),
    line("a2", "a1", "assistant", [{"type": "text", "text": "First answer."}]),
    line("a3", "a2", "user", "Look into it."),
    line(
        "a4",
        "a3",
        "assistant",
        [
            {
                "type": "tool_use",
                "id": "t1",
                "name": "Task",
                "input": {"prompt": "Dig.", "subagent_type": "scout"},
            }
        ],
    ),
    line("b1", None, "user", "Dig.", isSidechain=True),
    line("b2", "b1", "assistant", [{"type": "text", "text": "Dug."}], isSidechain=True),
    line("a5", "a4", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "Dug."}]),
    line("a6", "a5", "assistant", [{"type": "text", "text": "All done."}]),
    line("a7", "a6", "user", "Thanks."),
)
FORK = lines(
    line("a1", None, "user", "Question."),
    line("a2", "a1", "assistant", [{"type": "text", "text": "Old answer."}]),
    line("c1", "a1", "assistant", [{"type": "text", "text": "New answer."}]),
    line("c2", "c1", "user", "Go on."),
)


def imported(data: bytes, name: str = "session.jsonl") -> list[SessionRow]:
    outcome = import_file(actor=new_actor(), name=name, data=data)
    assert outcome.status == "imported", outcome.reason
    return [SessionRow.objects.get(id=session) for session in outcome.session_ids]


def parent_run(child: SessionRow) -> RunRow:
    assert child.parent_run_id is not None
    return RunRow.objects.get(id=child.parent_run_id)


def test_a_sidechain_is_a_child_of_the_run_that_started_it() -> None:
    main, child = imported(SIDECHAIN)
    assert (main.occasion, main.parent_run_id) == ("interactive", None)
    assert child.occasion == "child"
    parent = parent_run(child)
    assert (parent.session_id, parent.number) == (main.id, 2)
    opening = Event.objects.get(session_id=child.id, sequence=1)
    assert opening.payload["parent_session"] == str(main.id)


def test_the_newest_leaf_is_the_conversation_and_the_older_branch_its_child() -> None:
    main, fork = imported(FORK)
    assert fork.occasion == "child"
    assert parent_run(fork).session_id == main.id
    assert main.turns == 2


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        (
            "google",
            {
                "contents": [
                    {"role": "user", "parts": [{"text": "Hi"}]},
                    {"role": "model", "parts": [{"text": "Hello."}]},
                    {"role": "user", "parts": [{"text": "Bye"}]},
                    {"role": "model", "parts": [{"text": "See you."}]},
                ]
            },
        ),
        (
            "bedrock",
            {
                "messages": [
                    {"role": "user", "content": [{"text": "Hi"}]},
                    {"role": "assistant", "content": [{"text": "Hello."}]},
                    {"role": "user", "content": [{"text": "Bye"}]},
                    {"role": "assistant", "content": [{"text": "See you."}]},
                ]
            },
        ),
        (
            "openai",
            {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello."},
                ]
            },
        ),
    ],
)
def test_a_transcript_is_bound_to_the_provider_in_whose_words_it_is_written(
    provider: str, body: dict[str, Any]
) -> None:
    (session,) = imported(json.dumps(body).encode())
    assert session.provider == provider
    assert session.settings["provider"] == provider
    rows = RequestRow.objects.filter(session_id=session.id)
    assert rows
    for row in rows:
        bytes_sent = rebuild_request(session, row).body
        assert violations(PROVIDER_API[provider], bytes_sent) == ()
    assert {replay_row(session, row).verdict for row in rows} == {"identical"}


def report_of(data: bytes) -> list[dict[str, Any]]:
    outcome = import_file(actor=new_actor(), name="x", data=data)
    stored = ImportRow.objects.get(sha256=outcome.sha256)
    assert stored.report == outcome.report
    return list(stored.report)


def chat(*more: dict[str, Any]) -> bytes:
    messages = [{"role": "user", "content": "Hi"}, *more, {"role": "assistant", "content": "Yes."}]
    return json.dumps({"messages": messages}).encode()


def test_the_report_keeps_the_text_of_what_was_set_aside() -> None:
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "a stray\0result"}
    (kept,) = [row for row in report_of(chat(orphan)) if row["code"] == "orphan_result"]
    assert json.loads(kept["raw"]) == orphan
    assert (kept["action"], kept["items"]) == ("set_aside", 1)


def test_the_report_shows_no_secret_and_cuts_what_is_long() -> None:
    key = "sk-" + "a1b2c3d4" * 4
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": f"{key} " + "x" * 100_000}
    (kept,) = [row for row in report_of(chat(orphan)) if row["code"] == "orphan_result"]
    assert key not in json.dumps(kept)
    assert len(kept["raw"]) < kept["raw_chars"]
    assert kept["raw_chars"] > 100_000


def test_a_broken_line_stands_in_the_report() -> None:
    data = lines(
        line("a1", None, "user", "Hi"),
        line("a2", "a1", "assistant", [{"type": "text", "text": "Yes."}]),
    )
    report = report_of(data + b'{"type":"user","uuid":"a3","message":{"ro')
    (kept,) = [row for row in report if row["code"] == "broken_line"]
    assert kept["raw"] == '{"type":"user","uuid":"a3","message":{"ro'


def test_sessions_of_a_refused_file_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_transcript, "items_set_aside", lambda _: 7)
    before = SessionRow.objects.count(), Event.objects.count()
    outcome = import_file(actor=new_actor(), name="x", data=SIDECHAIN)
    assert outcome.status == "refused"
    assert "do not add up" in outcome.reason
    assert (SessionRow.objects.count(), Event.objects.count()) == before


def test_signed_thinking_that_a_router_kept_beside_a_message_is_in_no_event() -> None:
    blocks = [{"type": "thinking", "thinking": "private thought", "signature": "SIG=="}]
    messages = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "Hello.",
            "provider_specific_fields": {"thinking_blocks": blocks},
        },
        {"role": "user", "content": "Bye"},
    ]
    (session,) = imported(json.dumps({"messages": messages}).encode())
    kept = b"".join(
        bytes(data)
        for data in Body.objects.filter(session_id=session.id).values_list("data", flat=True)
    )
    assert b"Hello." in kept
    assert b"private thought" not in kept and b"SIG" not in kept
