"""Requests that a long import only outlines: equal to those made at once, listed before, made when looked at, proven."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, repeat
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Model

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.importers.registry import FORMATS
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.bulk import write_lines
from ctxengine.ledger.models import (
    Body,
    Event,
    ItemRow,
    Job,
    Rendering,
    RequestRow,
    RunRow,
    SessionRow,
    UnitRow,
)
from ctxengine.ledger.queries.requests import RequestQuery, list_requests
from ctxengine.service import import_transcript, reconstruct
from ctxengine.service.access import plan_row_of
from ctxengine.service.diff import diff_requests
from ctxengine.service.import_transcript import ImportOutcome, import_file
from ctxengine.service.imports.complete import complete_requests
from ctxengine.service.prove import prove_all, replay_request
from ctxengine.service.recount import counts_for
from ctxengine.service.sample_data.long_session import long_session
from ctxengine.service.specs import Actor
from ctxengine.service.verify import verify_chains
from ctxengine.service.wiring import log_of, plan_from
from tests.cast import new_actor
from tests.corpus import transcripts
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

AT_ONCE, OUTLINED = 1_000_000_000, 0
"""Answers from which requests are outlined: never, always."""
IN_THE_CORPUS = sorted(set(FORMATS) - {"otel_genai", "cline_history"})
LARGE, HEAD = 400_000, 100_000
"""Bytes from which a file of lines is compared by its beginning, and how much of it that is."""
ROWS: list[tuple[type[Model], tuple[str, ...]]] = [
    (ItemRow, ("session_id", "sequence", "ordinal")),
    (UnitRow, ("session_id", "sequence")),
    (RunRow, ("session_id", "number")),
]
"""Tables in which both ways leave the same, column by column."""


@pytest.fixture
def same_ids(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports that begin anew with the same ids, keys and times."""

    def begin(outlined_from: int) -> None:
        ids = (UUID(int=number) for number in count(1 << 80))
        monkeypatch.setattr(reconstruct, "OUTLINED_FROM", outlined_from)
        # So small that most sessions are handed over in several parts.
        monkeypatch.setattr(reconstruct, "_PART_ENTRIES", 7)
        monkeypatch.setattr(reconstruct, "new_id", lambda: next(ids))
        monkeypatch.setattr(reconstruct, "id_texts", lambda: map(str, ids))
        monkeypatch.setattr(reconstruct, "new_nonce_key", lambda: b"k" * 32)
        monkeypatch.setattr(import_transcript, "utc_now", lambda: datetime(2026, 1, 2, tzinfo=UTC))

    yield begin


def rows_of(outcome: ImportOutcome) -> list[dict[str, Any]]:
    rows = RequestRow.objects.filter(session_id__in=outcome.session_ids)
    return [dict(row) for row in rows.order_by("session_id", "number").values()]


def facts_of(outcome: ImportOutcome) -> list[Any]:
    """Everything else that an import leaves and that does not depend on a salt."""
    sessions = SessionRow.objects.filter(id__in=outcome.session_ids).order_by("id")
    events = Event.objects.filter(session_id__in=outcome.session_ids).order_by(
        "session_id", "sequence"
    )
    renderings = Rendering.objects.filter(session_id__in=outcome.session_ids)
    return [
        list(
            sessions.values(
                "id", "requests", "peak_tokens", "pressure_count", "items", "units", "tokens",
                "last_sequence", "content_sequence", "runs",
            )
        ),
        [
            (
                event.sequence, event.type, {**event.payload, "request_sha256": None}, event.trust, event.run_id,
                event.body_id, event.body_length, event.tokens, event.recorded_at,
            )
            for event in events
            if event.type != "model.request.started"
        ],
        *[
            list(model._default_manager.filter(session_id__in=outcome.session_ids).order_by(*order).values())
            for model, order in ROWS
        ],
        sorted(renderings.values_list("session_id", "unit_sequence", "form", "digest")),
    ]  # fmt: skip


def assert_equal_either_way(actor: Actor, data: bytes, name: str, begin: Any) -> int:
    """Import at once, take that back, import with outlines, complete them; gives how many were outlined."""
    begin(AT_ONCE)
    with transaction.atomic():
        whole = import_file(actor=actor, name=name, data=data)
        if whole.status != "imported":
            return 0
        rows, facts = rows_of(whole), facts_of(whole)
        transaction.set_rollback(True)
    begin(OUTLINED)
    with transaction.atomic():
        later = import_file(actor=actor, name=name, data=data)
        assert later.as_json() == whole.as_json()
        outlined = [row for row in rows_of(later) if not row["request_sha256"]]
        for session_id in later.session_ids:
            complete_requests(tenant_id=actor.tenant_id, session_id=session_id)
        made = rows_of(later)
        assert len(made) == len(rows)
        for one, other in zip(made, rows, strict=True):
            assert one == other, (name, one["number"])
        for one_table, other_table in zip(facts_of(later), facts, strict=True):
            assert one_table == other_table, name
        assert [report.problem for report in verify_chains() if report.problem] == []
        # What was known before is what the whole request says.
        by_id = {row["id"]: row for row in rows}
        for row in outlined:
            same = by_id[row["id"]]
            assert (row["total_tokens"], row["budget"]) == (same["total_tokens"], same["budget"])
            assert row["inputs"] | {"fresh": ""} == same["inputs"] | {"fresh": ""}
        transaction.set_rollback(True)
    return len(outlined)


@pytest.mark.corpus
@pytest.mark.parametrize("format", IN_THE_CORPUS)
def test_requests_made_later_are_those_that_would_have_been_made_at_once(
    corpus_folder: Path, format: str, same_ids: Any
) -> None:
    paths = sorted(transcripts(corpus_folder, format), key=lambda path: path.stat().st_size)
    small = [path for path in paths if path.stat().st_size <= LARGE] or paths[:1]
    heads = [path for path in paths if path not in small and path.suffix == ".jsonl"]
    actor = new_actor()
    outlined = sum(
        assert_equal_either_way(actor, path.read_bytes(), path.name, same_ids) for path in small
    )
    assert outlined
    for path in heads:
        assert_equal_either_way(actor, beginning(path), path.name, same_ids)


def beginning(path: Path) -> bytes:
    """The first lines of a long file: enough to hold what its format is made of."""
    with path.open("rb") as file:
        return b"".join(file.readlines(HEAD))


def test_under_pressure_requests_made_later_are_the_same_too(same_ids: Any) -> None:
    text = long_session(1_500)
    outlined = assert_equal_either_way(new_actor(), text.encode(), "long.json", same_ids)
    assert outlined > 400


@pytest.fixture
def outlined(monkeypatch: pytest.MonkeyPatch) -> SessionRow:
    """A session of which nothing is rebuilt yet."""
    return imported_in_outline(new_actor(), monkeypatch)


def imported_in_outline(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> SessionRow:
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", OUTLINED)
    outcome = import_file(actor=actor, name="chat.json", data=json.dumps(CHAT).encode())
    (session_id,) = outcome.session_ids
    return SessionRow.objects.get(id=session_id)


CHAT = [
    {"role": "user", "content": "List the ports."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ports", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "22 80 " * 40},
    {"role": "assistant", "content": "22 and 80."},
    {"role": "user", "content": "And the hosts?"},
    {"role": "assistant", "content": "None."},
]


def unmade(session: SessionRow) -> list[int]:
    rows = RequestRow.objects.filter(session_id=session.id, request_sha256="")
    return list(rows.order_by("number").values_list("number", flat=True))


def test_an_import_lists_what_it_did_not_rebuild_with_its_exact_size(outlined: SessionRow) -> None:
    assert unmade(outlined) == [1, 2, 3]
    (before, *_) = list_requests(outlined.tenant_id, RequestQuery()).rows
    assert (before.request_sha256, before.status, before.reconstructed) == ("", "answered", True)
    sizes = list(RequestRow.objects.order_by("number").values_list("total_tokens", flat=True))
    assert all(sizes) and outlined.peak_tokens == max(sizes)
    assert before.usable_tokens > before.total_tokens
    complete_requests(tenant_id=outlined.tenant_id, session_id=outlined.id)
    assert (
        list(RequestRow.objects.order_by("number").values_list("total_tokens", flat=True)) == sizes
    )


def test_completing_twice_changes_nothing(outlined: SessionRow) -> None:
    tenant_id, session_id = outlined.tenant_id, outlined.id
    assert complete_requests(tenant_id=tenant_id, session_id=session_id, first=2, last=2) == 1
    assert unmade(outlined) == [1, 3]
    assert complete_requests(tenant_id=tenant_id, session_id=session_id) == 2
    rows = list(RequestRow.objects.order_by("number").values())
    assert complete_requests(tenant_id=tenant_id, session_id=session_id) == 0
    assert list(RequestRow.objects.order_by("number").values()) == rows


def test_a_whole_proof_rebuilds_what_is_missing_and_then_proves_it(outlined: SessionRow) -> None:
    assert [replay.verdict for replay in prove_all(session_id=outlined.id)] == ["identical"] * 3
    assert unmade(outlined) == []
    (report,) = verify_chains(session_id=outlined.id)
    assert report.problem is None


def test_one_replay_rebuilds_its_request(outlined: SessionRow) -> None:
    row = RequestRow.objects.get(session_id=outlined.id, number=2)
    actor = Actor(outlined.tenant_id, "reader")
    replay = replay_request(actor=actor, request_id=row.id)
    assert (replay.verdict, len(replay.recorded_sha256)) == ("identical", 64)


def test_two_requests_that_were_never_looked_at_can_be_compared(outlined: SessionRow) -> None:
    a, b = RequestRow.objects.filter(session_id=outlined.id).order_by("number")[:2]
    found = diff_requests(actor=Actor(outlined.tenant_id, "reader"), a=a.id, b=b.id)
    assert len(found.rows) == 15


def test_a_ledger_that_does_not_give_the_request_is_a_difference_and_no_crash(
    outlined: SessionRow,
) -> None:
    ItemRow.objects.filter(session_id=outlined.id).update(tokens=10_000_000)
    verdicts = {replay.verdict for replay in prove_all(session_id=outlined.id)}
    assert verdicts == {"different"}
    assert unmade(outlined) == [1, 2, 3]


def test_the_job_of_the_import_rebuilds_all_and_again_finds_nothing(outlined: SessionRow) -> None:
    assert work_off(outlined.tenant_id) == [("transcript.reconstruct", "done")]
    assert unmade(outlined) == []
    job = Job.objects.get(kind="transcript.reconstruct")
    assert (job.result, job.session_id) == ({"requests": 3}, outlined.id)


def test_a_rehearsal_asks_for_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", OUTLINED)
    data = json.dumps(CHAT).encode()
    outcome = import_file(actor=new_actor(), name="chat.json", data=data, dry_run=True)
    assert outcome.status == "imported"
    assert not Job.objects.exists() and not RequestRow.objects.exists()


def test_content_erased_before_a_request_is_rebuilt_leaves_it_provable(
    outlined: SessionRow,
) -> None:
    complete_requests(tenant_id=outlined.tenant_id, session_id=outlined.id, last=1)
    first = Event.objects.filter(session_id=outlined.id, type="user.message.created").first()
    assert first is not None and first.body_id is not None
    at = datetime.now(UTC)
    with transaction.atomic():
        erased = EventDraft(type=EventType.PERSON_ERASED, trust=Trust.PLATFORM, payload={})
        log_of(outlined).append([erased], expected=None, at=at)
        bodies = Body.objects.filter(session_id=outlined.id, id=first.body_id)
        bodies.update(data=b"", salt=b"", erased_at=at)
    verdicts = [replay.verdict for replay in prove_all(session_id=outlined.id)]
    assert verdicts == ["identical_except"] * 3


def test_a_request_that_was_outlined_under_another_count_is_rebuilt_before_the_recount(
    outlined: SessionRow,
) -> None:
    log = log_of(outlined)
    plan = plan_from(log, plan_row_of(outlined))
    counts = counts_for(outlined, log, plan.model_copy(update={"counter": "another"}))
    assert counts is not None
    assert unmade(outlined) == []


@pytest.mark.parametrize("place", ["after the first part", "at the end"])
def test_a_failure_while_parts_are_written_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(reconstruct, "_PART_ENTRIES", 2)
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", OUTLINED)
    written = 0

    def fails(*args: Any, **options: Any) -> None:
        nonlocal written
        written += 1
        if written == (2 if place == "after the first part" else 4):
            raise OSError("No space left on device")
        write_lines(*args, **options)

    monkeypatch.setattr(import_transcript, "write_lines", fails)
    with pytest.raises(OSError, match="No space"), transaction.atomic():
        import_file(actor=new_actor(), name="chat.json", data=json.dumps(CHAT).encode())
    for model in (SessionRow, Event, Body, RequestRow, Job):
        assert not model.objects.exists()


def test_what_the_database_refuses_in_a_part_is_raised_by_the_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconstruct, "_PART_ENTRIES", 2)
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", OUTLINED)
    same = str(uuid4())
    monkeypatch.setattr(reconstruct, "id_texts", lambda: repeat(same))
    with pytest.raises(IntegrityError), transaction.atomic():
        import_file(actor=new_actor(), name="chat.json", data=json.dumps(CHAT).encode())
    assert not Body.objects.exists()
