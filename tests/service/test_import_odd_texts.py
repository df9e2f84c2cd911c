"""What a file says of itself may hold characters that no database keeps: it is imported or refused, and a folder goes on."""

from __future__ import annotations

import json
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ctxengine.engine.importers.texts import time_of
from ctxengine.ledger.models import Event, RequestRow, SessionRow, Tenant
from ctxengine.service import reconstruct
from ctxengine.service.imports.complete import complete_requests
from ctxengine.service.prove import prove_all
from ctxengine.service.verify import verify_chains
from tests.cast import new_actor

pytestmark = pytest.mark.django_db

AT_ONCE, OUTLINED = 1_000_000_000, 0
"""Answers from which requests are outlined: never, always."""
TURNS = 3
ODD = {"half": "\ud800", "nul": "\x00", "separator": "\u2028", "control": "\x85"}
GOOD = json.dumps(
    {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
)


def chat(model: str, *, turns: int = TURNS, **answer: Any) -> str:
    turn = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    if answer:
        body = {"model": model, "messages": turn[:1] * turns}
        choice = {"index": 0, "message": turn[1], **answer}
        return json.dumps({"request": body, "response": {"model": model, "choices": [choice]}})
    return json.dumps({"model": model, "messages": turn * turns})


def rollout(between: str, *, turns: int = TURNS) -> str:
    """A Codex rollout, date and clock of whose lines are parted by this character."""
    at = f"2025-09-24{between}12:00:00.000Z"
    about = {"id": "a", "timestamp": at, "cwd": "/", "originator": "x", "cli_version": "1"}
    lines: list[Any] = [
        {"timestamp": at, "type": "session_meta", "payload": about | {"instructions": None}}
    ]
    for _ in range(turns):
        for role, kind in (("user", "input_text"), ("assistant", "output_text")):
            said = {"type": "message", "role": role, "content": [{"type": kind, "text": "q"}]}
            lines.append({"timestamp": at, "type": "response_item", "payload": said})
    return "\n".join(map(json.dumps, lines))


def folder_imported(folder: Path, bad: str) -> list[dict[str, Any]]:
    """A line for each of two files, the first of which is this one."""
    actor = new_actor()
    slug = Tenant.objects.get(id=actor.tenant_id).slug
    (folder / "a.json").write_text(bad)
    (folder / "b.json").write_text(GOOD)
    out = StringIO()
    with suppress(SystemExit):
        call_command("import_transcripts", str(folder), "--tenant", slug, "--json", stdout=out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [Path(line["path"]).name for line in lines] == ["a.json", "b.json"]
    assert lines[1]["status"] == "imported"
    return lines


@pytest.mark.parametrize("outlined_from", [AT_ONCE, OUTLINED], ids=["at once", "outlined"])
@pytest.mark.parametrize("where", ["model", "time"])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_file_with_an_odd_model_or_time_is_imported_whole_and_the_next_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str, where: str, outlined_from: int
) -> None:
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", outlined_from)
    bad = chat(f"m{odd}x") if where == "model" else rollout(odd)
    first, _ = folder_imported(tmp_path, bad)
    assert (first["status"], first["reason"]) == ("imported", "")
    (session_id,) = first["sessions"]
    session = SessionRow.objects.get(id=session_id)
    complete_requests(tenant_id=session.tenant_id, session_id=session.id)
    assert RequestRow.objects.filter(session_id=session_id).count() == TURNS
    assert [report.problem for report in verify_chains(session_id=session.id)] == [None]
    assert [replay.verdict for replay in prove_all(session_id=session.id)] == ["identical"] * TURNS
    if where == "time":
        times = Event.objects.filter(session_id=session_id, payload__has_key="at")
        assert {event.payload["at"] for event in times} == {"2025-09-24T12:00:00+00:00"}


def test_a_session_of_many_answers_with_an_odd_model_is_imported_as_well(tmp_path: Path) -> None:
    turns = reconstruct.OUTLINED_FROM
    first, _ = folder_imported(tmp_path, chat("m\ud800", turns=turns))
    assert first["status"] == "imported"
    assert RequestRow.objects.filter(session_id=first["sessions"][0]).count() == turns


@pytest.mark.parametrize("outlined_from", [AT_ONCE, OUTLINED], ids=["at once", "outlined"])
@pytest.mark.parametrize("odd", ["\ud800", "\x00"], ids=["half", "nul"])
def test_what_no_reader_cleans_is_refused_by_name_and_the_next_file_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str, outlined_from: int
) -> None:
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", outlined_from)
    monkeypatch.setattr(reconstruct, "_PART_ENTRIES", 2)
    # Some field that nobody thought of: the view lets it through.
    monkeypatch.setattr(reconstruct, "model_view", lambda text: text + odd * (text == "length"))
    first, _ = folder_imported(tmp_path, chat("m", finish_reason="length"))
    assert first["status"] == "refused"
    assert "surrogate" in first["reason"] or "cannot keep" in first["reason"]
    assert SessionRow.objects.count() == 1


@pytest.mark.parametrize("outlined_from", [AT_ONCE, OUTLINED], ids=["at once", "outlined"])
def test_a_count_of_tokens_that_no_number_can_be_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outlined_from: int
) -> None:
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", outlined_from)
    long = "9" * 5_000
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    answer = {"model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "a"}}
    ], "usage": {"prompt_tokens": "LONG", "completion_tokens": 3}}  # fmt: skip
    text = json.dumps({"request": body, "response": answer}).replace('"LONG"', long)
    first, _ = folder_imported(tmp_path, text)
    assert first["status"] == "imported", first["reason"]
    (row,) = RequestRow.objects.filter(session_id=first["sessions"][0])
    assert row.usage.get("fresh") is None


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2025-09-24T12:00:00.5Z", "2025-09-24T12:00:00.5Z"),
        ("2025-09-24 12:00:00+02:00", "2025-09-24 12:00:00+02:00"),
        ("2025-09-24\x0012:00:00Z", "2025-09-24T12:00:00+00:00"),
        ("2025-09-24\ud80012:00:00Z", "2025-09-24T12:00:00+00:00"),
        ("20250924\u2028120000Z", "2025-09-24T12:00:00+00:00"),
        ("2025-09-24", None),
        ("2025-09-24T12:00:00", None),
    ],
)
def test_a_time_is_kept_as_written_unless_it_is_oddly_parted(
    written: str, kept: str | None
) -> None:
    assert time_of(written) == kept
