"""Retention that comes again: to a session that is used meanwhile, after another erasure, after an import, after a failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import (
    AuditEntry,
    Body,
    ImportRow,
    Job,
    JobState,
    Rendering,
    RequestRow,
    SearchEntry,
    SessionRow,
    SnapshotTrace,
)
from ctxengine.service import session_erasure
from ctxengine.service.erase import erase_person
from ctxengine.service.import_transcript import import_file
from ctxengine.service.prove import replay_request
from ctxengine.service.retention import old
from ctxengine.service.retention.apply import apply_retention, ask_for_retention_of, due
from ctxengine.service.retention.content import LeftBehind
from ctxengine.service.specs import PrincipalSpec, SnapshotSpec
from ctxengine.service.verify import verify_session
from tests.cast import Call, Runtime, new_actor
from tests.service.test_retention import LONG_AGO, SAID, idle, keep, lived, told_by
from tests.shrinking import Shrinker
from tests.work_off import work_off

pytestmark = pytest.mark.django_db
TEA = SnapshotSpec(trace_id="profile", watermark=1, items=("Mara likes tea.",))


def looking(**opened: Any) -> Shrinker:
    """A session with a run whose call is open."""
    runtime = lived(**opened)
    runtime.ask("Look it up")
    runtime.assemble()
    runtime.say("looking", Call("c9", "read"))
    return runtime


def verdicts(runtime: Runtime) -> list[str]:
    return [replay_request(actor=runtime.actor, request_id=r.id).verdict for r in runtime.requests]


def expire(runtime: Shrinker) -> None:
    idle(runtime)
    keep(runtime.actor, content=1)
    assert apply_retention(actor=runtime.actor)["content"] == 1


def erase(runtime: Shrinker) -> None:
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")


# --- the proof, after every round ---


@pytest.mark.parametrize(
    "rounds",
    [(expire, expire), (erase, expire), (expire, erase), (erase, erase), (expire, erase, expire)],
)
def test_each_request_is_proven_after_every_round(
    rounds: tuple[Callable[[Shrinker], None], ...],
) -> None:
    """A call that a round cut off belongs to a unit of which a part is gone already when the next round comes."""
    runtime = looking(principal=PrincipalSpec(id="mara"))
    for act in rounds:
        act(runtime)
        assert set(verdicts(runtime)) == {"identical_except"}
        runtime.turn("Hello again", "Hi")
        runtime.ask("Look once more")
        runtime.assemble()
        runtime.say("looking", Call(f"c{len(runtime.requests)}", "read"))
        assert "different" not in verdicts(runtime)
    assert verify_session(runtime.row).problem is None


def test_what_the_first_erasure_kept_stands_as_it_always_did_and_a_later_ones_beside_it() -> None:
    runtime = looking()
    expire(runtime)
    assert not Rendering.objects.filter(session_id=runtime.session, renderer__contains="/").exists()
    runtime.turn("Hello again", "Hi")
    expire(runtime)
    beside = Rendering.objects.filter(session_id=runtime.session, renderer__contains="/")
    (marker,) = runtime.events(EventType.CONTENT_EXPIRED)[1:]
    assert beside.exists()
    assert all(row.renderer.endswith(f"/{marker.sequence}") for row in beside)
    assert "different" not in verdicts(runtime)


# --- a session in use ---


@pytest.mark.parametrize("moment", ["prepared", "locked"])
def test_a_session_that_somebody_comes_back_to_at_the_last_moment_stays_whole(
    monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    runtime = lived()
    idle(runtime)
    keep(runtime.actor, content=1)
    came: list[int] = []

    def come_back() -> None:
        if not came:
            came.append(1)
            runtime.ask("I am back with a fresh question")

    prepare, head = session_erasure._Erasure.prepare, session_erasure.log_of
    if moment == "prepared":

        def prepared(self: Any) -> None:
            come_back()
            prepare(self)

        monkeypatch.setattr(session_erasure._Erasure, "prepare", prepared)
    else:
        # Between the question whether it is idle and the look at the log's head.
        monkeypatch.setattr(session_erasure, "log_of", lambda row: (come_back(), head(row))[1])
    assert apply_retention(actor=runtime.actor)["content"] == 0
    assert came and not runtime.events(EventType.CONTENT_EXPIRED)
    assert not runtime.events(EventType.RUN_ENDED)[1:]
    assert not Body.objects.filter(session_id=runtime.session, erased_at__isnull=False).exists()
    runtime.assemble()
    runtime.say("Welcome back.")


# --- what an expiry leaves to others ---


def test_an_expiry_withdraws_no_recall_from_the_persons_other_sessions() -> None:
    for principal in (PrincipalSpec(id="mara"), None):
        first = lived(principal=principal, extra={"snapshot": TEA})
        expire(first)
        assert not SnapshotTrace.objects.filter(session_id=first.session).exists()
        again = Runtime(actor=first.actor, principal=principal, extra={"snapshot": TEA})
        again.ask("Hello")
        assert b"likes tea" in again.assemble().body
        assert not again.events(EventType.EPOCH_ROTATED)
        first.turn("Hello", "Hi")


def test_an_erasure_withdraws_it_still() -> None:
    first = lived(principal=PrincipalSpec(id="mara"), extra={"snapshot": TEA})
    erase(first)
    again = Runtime(actor=first.actor, principal=PrincipalSpec(id="mara"), extra={"snapshot": TEA})
    again.ask("Hello")
    assert b"likes tea" not in again.assemble().body


def test_the_log_says_why_a_snapshot_went() -> None:
    for act, note in (
        (expire, "content has passed its keeping time"),
        (erase, "a person's content was erased"),
    ):
        runtime = lived(principal=PrincipalSpec(id="mara"), extra={"snapshot": TEA})
        act(runtime)
        (turned,) = runtime.events(EventType.EPOCH_ROTATED)
        assert turned.payload["note"] == note


# --- a dry run says what goes, and then nothing is left ---


@pytest.mark.parametrize("kind", ["plain", "snapshot", "open call"])
def test_what_an_expiry_writes_itself_is_not_due(kind: str) -> None:
    runtime = looking() if kind == "open call" else lived(
        principal=PrincipalSpec(id="mara"),
        extra={"snapshot": TEA} if kind == "snapshot" else {},
    )  # fmt: skip
    tenant = runtime.actor.tenant_id
    for _ in range(2):
        idle(runtime)
        keep(runtime.actor, content=1)
        counted = due(tenant)
        assert counted["content"] == 1
        assert apply_retention(actor=runtime.actor) == counted
        assert due(tenant)["content"] == 0
        assert apply_retention(actor=runtime.actor)["content"] == 0
        runtime.ask(f"My word is still {SAID}")
        runtime.assemble()
        runtime.say("looking", Call(f"c{len(runtime.requests)}", "read"))
    assert len(runtime.events(EventType.CONTENT_EXPIRED)) == 2


# --- imports ---


def test_an_old_file_is_kept_as_long_as_anything_from_its_import_on() -> None:
    actor = new_actor()
    at = datetime(2025, 1, 1, tzinfo=UTC)
    lines = [
        {"type": kind, "uuid": str(n), "parentUuid": str(n - 1) if n else None, "sessionId": "s",
         "timestamp": (at + timedelta(seconds=n)).isoformat().replace("+00:00", "Z"),
         "message": {"role": kind, "model": "claude-sonnet-4-5", "content": f"line {n} {SAID}"}}
        for n, kind in enumerate(["user", "assistant"] * 2)
    ]  # fmt: skip
    data = "\n".join(json.dumps(line) for line in lines).encode()
    import_file(actor=actor, name="old.jsonl", data=data)
    session = SessionRow.objects.get(tenant_id=actor.tenant_id)
    assert session.active_at.year == 2025
    assert RequestRow.objects.filter(session_id=session.id, created_at__year=2025).exists()
    keep(actor, content=90, manifests=30, search=30)
    assert not any(due(actor.tenant_id).values())
    assert not any(apply_retention(actor=actor).values())
    ImportRow.objects.update(created_at=datetime.now(UTC) - timedelta(days=60))
    counted = due(actor.tenant_id)
    assert counted["manifests"] and not counted["content"]
    ImportRow.objects.update(created_at=datetime.now(UTC) - timedelta(days=91))
    counted = due(actor.tenant_id)
    assert counted["manifests"] and counted["content"] == 1
    gone = apply_retention(actor=actor)
    assert (gone["manifests"], gone["content"]) == (counted["manifests"], 1)


# --- one that fails ---


def fails_for(monkeypatch: pytest.MonkeyPatch, runtime: Shrinker) -> None:
    prepare = session_erasure._Erasure.prepare

    def broken(self: Any) -> None:
        if self.session.id == runtime.session:
            raise LookupError("a provider that nobody knows any more")
        prepare(self)

    monkeypatch.setattr(session_erasure._Erasure, "prepare", broken)


def test_a_session_that_cannot_be_taken_from_stops_no_other_and_no_other_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = lived()
    good = lived(bad.actor)
    for runtime in (bad, good):
        idle(runtime)
    SessionRow.objects.filter(id=good.session).update(active_at=LONG_AGO.replace(month=2))
    SearchEntry.objects.filter(session_id=bad.session).update(at=LONG_AGO)
    keep(bad.actor, content=1, search=1)
    fails_for(monkeypatch, bad)
    with pytest.raises(LeftBehind) as left:
        apply_retention(actor=bad.actor)
    assert left.value.sessions == [bad.session]
    assert good.events(EventType.CONTENT_EXPIRED) and not bad.events(EventType.CONTENT_EXPIRED)
    assert not SearchEntry.objects.filter(session_id=bad.session).exists()
    (told,) = AuditEntry.objects.filter(tenant_id=bad.actor.tenant_id, action="retention.applied")
    assert told.after["content"] == 1 and told.after["search"] >= 1


def test_the_command_fails_and_names_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = lived()
    idle(bad)
    keep(bad.actor, content=1)
    fails_for(monkeypatch, bad)
    with pytest.raises(CommandError, match=str(bad.session)):
        told_by(bad.actor.tenant_id)


def test_the_job_fails_at_the_end_and_names_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = lived()
    idle(bad)
    keep(bad.actor, content=1)
    fails_for(monkeypatch, bad)
    job = ask_for_retention_of(bad.actor)
    work_off(bad.actor.tenant_id, kind="upkeep.retain")
    ended = Job.objects.get(id=job.id)
    assert ended.state == JobState.FAILED
    assert str(bad.session) in json.dumps([ended.log, ended.error])


# --- item lists: each is looked at once ---


def test_no_item_list_is_looked_at_twice_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = lived()
    for n in range(3):
        runtime.turn(f"And {n}?", "So.")
    rows = RequestRow.objects.filter(session_id=runtime.session)
    # Several at one moment, so that the cursor has to tell them apart.
    rows.update(created_at=LONG_AGO)
    monkeypatch.setattr(old, "_PORTION", 2)
    keep(runtime.actor, manifests=30)
    with monkeypatch.context() as patched:
        # As if their runs had not ended: looked at, and left.
        patched.setattr(old, "_may_be_thinned", lambda rows, *_: rows.none())
        left_as_they_are(runtime, rows.count())
    assert apply_retention(actor=runtime.actor)["manifests"] == rows.count()


def left_as_they_are(runtime: Shrinker, total: int) -> None:
    portions = -(-total // 2)
    with CaptureQueriesContext(connection) as asked:
        assert list(old.OLD["manifests"].remove(runtime.actor, 30)) == [0] * portions
    looks = [q["sql"] for q in asked if "ORDER BY" in q["sql"]]
    assert len(looks) in (portions, portions + 1)
    assert all(one != two for one, two in pairwise(looks))


def test_item_lists_that_went_before_are_not_looked_at_again() -> None:
    runtime = lived()
    runtime.turn("And?", "So.")
    RequestRow.objects.filter(session_id=runtime.session).update(created_at=LONG_AGO)
    keep(runtime.actor, manifests=30)
    assert apply_retention(actor=runtime.actor)["manifests"] > 0
    assert list(old.OLD["manifests"].remove(runtime.actor, 30)) == []
    whole = old._whole(runtime.actor.tenant_id, 30).order_by("created_at", "id")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "request_whole" in whole.explain()
