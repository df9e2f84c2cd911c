"""What passes a tenant's keeping times goes, kind by kind; the chain, the proof and the other tenants stay (design 4)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import (
    AuditEntry,
    Body,
    ImportRow,
    ItemRow,
    Job,
    JobState,
    OpenRefusal,
    PlanRow,
    ReplayCellRow,
    ReplayRow,
    RequestRow,
    RetentionRule,
    SearchEntry,
    SessionRow,
    SideCallRow,
    Tenant,
)
from ctxengine.service.expire import ask_for_upkeep
from ctxengine.service.prove import replay_request
from ctxengine.service.retention.apply import apply_retention, ask_for_retention_of, due
from ctxengine.service.retention.kinds import KINDS
from ctxengine.service.retention.old import OLD
from ctxengine.service.retention.rules import keeping_times, set_keeping_times
from ctxengine.service.search.index_session import index_session
from ctxengine.service.specs import Actor, PrincipalSpec, ServiceError, SnapshotSpec
from ctxengine.service.verify import verify_session
from tests.cast import new_actor
from tests.shrinking import Shrinker
from tests.work_off import work_off

pytestmark = pytest.mark.django_db
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
SAID = "zinnober-7f3a"


def keep(actor: Actor, **days: int) -> None:
    set_keeping_times(actor=actor, days=days, note="the house's rule")


def idle(runtime: Shrinker) -> None:
    """As if nobody had come back to the session for long."""
    SessionRow.objects.filter(id=runtime.session).update(active_at=LONG_AGO)


def rows_that_say(tenant_id: Any, word: str) -> list[str]:
    """Tables with a row of the tenant that holds the word, in whatever column."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'tenant_id'"
        )
        for (table,) in cursor.fetchall():
            told = f'SELECT count(*) FROM "{table}" t WHERE tenant_id = %s AND t::text LIKE %s'
            encoded = word.encode().hex()
            for written in (word, encoded):
                cursor.execute(told, [tenant_id, f"%{written}%"])
                if cursor.fetchone()[0]:
                    found.append(table)
    return sorted(set(found))


def lived(actor: Actor | None = None, **opened: Any) -> Shrinker:
    runtime = Shrinker(actor=actor, **opened) if actor else Shrinker(**opened)
    runtime.ask(f"My word is {SAID}. ")
    runtime.look("c1", f"A file that says {SAID}. " * 40)
    runtime.assemble()
    runtime.say(f"You said {SAID}.")
    index_session(tenant_id=runtime.actor.tenant_id, session_id=runtime.session)
    return runtime


# --- content ---


def test_content_of_idle_sessions_goes_everywhere_and_everything_is_still_proven() -> None:
    runtime = lived(principal=PrincipalSpec(id="mara"))
    SessionRow.objects.filter(id=runtime.session).update(title=f"About {SAID}")
    busy = lived(runtime.actor)
    idle(runtime)
    keep(runtime.actor, content=90)
    assert due(runtime.actor.tenant_id)["content"] == 1
    before = len(runtime.requests)
    assert apply_retention(actor=runtime.actor)["content"] == 1
    for model in (Body, ItemRow, SearchEntry):
        rows = model._default_manager.filter(session_id=runtime.session)
        if model is Body:
            kept = PlanRow.objects.filter(session_id=runtime.session)
            rows = rows.exclude(id__in=kept.values("redacted_body_id"))
            assert {bytes(row.data) for row in rows} == {b""}
            assert all(row.erased_at for row in rows)
        elif model is ItemRow:
            assert {row.preview for row in rows} == {""}
        else:
            assert not rows.exists()
    assert runtime.row.title == runtime.row.agent_name
    assert runtime.row.active_at == LONG_AGO
    assert verify_session(runtime.row).problem is None
    assert len(runtime.requests) == before
    runtime.all_proven_but_erased()
    (marker,) = runtime.events(EventType.CONTENT_EXPIRED)
    assert marker.payload["days"] == 90
    busy.all_proven()
    assert not busy.events(EventType.CONTENT_EXPIRED)
    # Nothing is left to do, and nothing is done twice.
    assert due(runtime.actor.tenant_id)["content"] == 0
    assert apply_retention(actor=runtime.actor)["content"] == 0


def test_no_table_of_the_tenant_says_a_word_of_what_has_expired() -> None:
    runtime = lived()
    assert "body" in rows_that_say(runtime.actor.tenant_id, SAID)
    idle(runtime)
    keep(runtime.actor, content=1)
    apply_retention(actor=runtime.actor)
    assert rows_that_say(runtime.actor.tenant_id, SAID) == []


def test_a_session_whose_content_has_expired_can_be_gone_on_with() -> None:
    snapshot = SnapshotSpec(trace_id="t1", watermark=1, items=("Mara likes tea.",))
    runtime = lived(principal=PrincipalSpec(id="mara"), extra={"snapshot": snapshot})
    runtime.ask("And now?")
    idle(runtime)
    keep(runtime.actor, content=1)
    apply_retention(actor=runtime.actor)
    (rotated,) = runtime.events(EventType.EPOCH_ROTATED)
    assert rotated.payload["reasons"] == ["snapshot_missing"]
    runtime.turn("Hello again.", "Hello.")
    assert verify_session(runtime.row).problem is None
    runtime.all_proven_but_erased()


def test_a_session_that_somebody_came_back_to_meanwhile_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = lived()
    second = lived(first.actor)
    for runtime in (first, second):
        idle(runtime)
    keep(first.actor, content=1)
    gone = OLD["content"].remove(first.actor, 1)
    assert next(gone) == 1
    left = first if second.events(EventType.CONTENT_EXPIRED) else second
    left.ask("I am back.")
    assert list(gone) == []
    assert not left.events(EventType.CONTENT_EXPIRED)


def test_what_a_files_repair_set_aside_goes_with_the_content() -> None:
    runtime = lived()
    sha256 = "a" * 64
    SessionRow.objects.filter(id=runtime.session).update(import_sha256=sha256)
    ImportRow.objects.create(
        tenant_id=runtime.actor.tenant_id, sha256=sha256, name="a.jsonl", format="openai_chat",
        sessions=[str(runtime.session)], items_in=2, items_kept=1, created_at=LONG_AGO,
        report=[{"action": "set_aside", "code": "unknown", "where": "line 2", "raw": SAID}],
    )  # fmt: skip
    idle(runtime)
    keep(runtime.actor, content=1)
    apply_retention(actor=runtime.actor)
    (line,) = ImportRow.objects.get(sha256=sha256).report
    assert "raw" not in line and line["where"] == "line 2"


# --- the other kinds ---


def test_item_lists_of_requests_go_and_the_requests_are_still_proven() -> None:
    runtime = lived()
    runtime.ask("And then?")
    runtime.assemble()
    RequestRow.objects.filter(session_id=runtime.session).update(created_at=LONG_AGO)
    keep(runtime.actor, manifests=30)
    of_ended = len(runtime.requests) - 1
    assert due(runtime.actor.tenant_id)["manifests"] == of_ended
    assert apply_retention(actor=runtime.actor)["manifests"] == of_ended
    rows = list(RequestRow.objects.filter(session_id=runtime.session).order_by("number"))
    assert [bool(row.manifest["spans"]) for row in rows] == [False] * of_ended + [True]
    assert all(row.manifest["rows"] and row.manifest["yields"] for row in rows)
    assert rows[0].manifest["expired_at"] and "expired_at" not in rows[-1].manifest
    for row in rows:
        assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "identical"
    assert apply_retention(actor=runtime.actor)["manifests"] == 0


def replayed(actor: Actor, job: Job | None = None) -> ReplayRow:
    row = ReplayRow.objects.create(
        tenant_id=actor.tenant_id, id=uuid4(), session_id=uuid4(), created_at=LONG_AGO,
        job_id=job.id if job else None,
    )  # fmt: skip
    ReplayCellRow.objects.create(
        tenant_id=actor.tenant_id, replay_id=row.id, number=1, engine="suffix", provider="x",
        model="y", finished_at=LONG_AGO,
    )  # fmt: skip
    return row


def test_old_search_rows_replays_jobs_and_records_go_and_new_ones_stay() -> None:
    runtime = lived()
    actor = runtime.actor
    old = SearchEntry.objects.filter(session_id=runtime.session).order_by("sequence").first()
    assert old is not None
    SearchEntry.objects.filter(session_id=runtime.session, sequence=old.sequence).update(
        at=LONG_AGO
    )
    replayed(actor)
    unfinished = ask_for_retention_of(actor)
    still = replayed(actor, unfinished)
    tenant = actor.tenant_id
    for at in (LONG_AGO, datetime.now(UTC)):
        SideCallRow.objects.create(
            tenant_id=tenant, id=uuid4(), at=at, provider="x", model="y", purpose="note", outcome="completed"
        )  # fmt: skip
        OpenRefusal.objects.create(
            tenant_id=tenant, id=uuid4(), at=at, code="c", budget_class="b", needed=2, available=1,
            engine="suffix", provider="x", model="y",
        )  # fmt: skip
        Job.objects.create(
            tenant_id=tenant, id=uuid4(), kind="upkeep.expire", queue="upkeep", state=JobState.DONE,
            not_before=at, created_at=at, finished_at=at,
        )  # fmt: skip
    keep(actor, search=30, replays=30, records=31)
    found = SearchEntry.objects.filter(tenant_id=tenant).count()
    assert due(tenant) == {"content": 0, "manifests": 0, "search": 1, "replays": 1, "jobs": 1, "records": 2}  # fmt: skip
    gone = apply_retention(actor=actor)
    assert gone == {
        "content": 0,
        "manifests": 0,
        "search": 1,
        "replays": 1,
        "jobs": 1,
        "records": 2,
    }
    assert SearchEntry.objects.filter(tenant_id=tenant).count() == found - 1
    assert [row.id for row in ReplayRow.objects.filter(tenant_id=tenant)] == [still.id]
    assert ReplayCellRow.objects.filter(tenant_id=tenant).count() == 1
    for model in (SideCallRow, OpenRefusal):
        assert model._default_manager.filter(tenant_id=tenant).count() == 1
    assert not any(due(tenant).values())


def test_a_job_is_kept_as_long_as_its_tenant_says_and_thirty_days_where_it_says_nothing() -> None:
    for days, stays in ((0, True), (36_500, True), (1, False), (None, False)):
        actor = new_actor()
        job = ask_for_retention_of(actor)
        Job.objects.filter(id=job.id).update(
            state=JobState.DONE, created_at=LONG_AGO, finished_at=LONG_AGO
        )
        if days is not None:
            keep(actor, jobs=days)
        ask_for_upkeep()
        work_off(actor.tenant_id)
        assert Job.objects.filter(id=job.id).exists() is stays
        told = AuditEntry.objects.filter(tenant_id=actor.tenant_id, action="retention.applied")
        assert [entry.after for entry in told] == ([] if stays else [{"jobs": 1}])


# --- rules, the job, the command ---


def test_nothing_goes_by_itself_but_ended_jobs_after_thirty_days() -> None:
    times = keeping_times(new_actor().tenant_id)
    assert {name: days for name, days in times.items() if days} == {"jobs": 30}


def test_a_rule_is_one_tenants_alone_and_stands_in_its_audit_log() -> None:
    mine, other = lived(), lived()
    for runtime in (mine, other):
        idle(runtime)
    keep(mine.actor, content=7)
    apply_retention(actor=other.actor)
    assert not other.events(EventType.CONTENT_EXPIRED)
    apply_retention(actor=mine.actor)
    assert not other.events(EventType.CONTENT_EXPIRED)
    entries = AuditEntry.objects.filter(tenant_id=mine.actor.tenant_id)
    told = dict(entries.filter(action__startswith="retention.").values_list("action", "after"))
    assert told == {"retention.changed": {"content": 7}, "retention.applied": {"content": 1}}
    keep(mine.actor, content=7)
    assert entries.filter(action="retention.changed").count() == 1


@pytest.mark.parametrize(
    ("days", "note", "code"),
    [
        ({"content": 1}, " ", "reason_required"),
        ({"nothing": 1}, "x", "invalid_field"),
        ({"content": 40_000}, "x", "invalid_field"),
        ({"content": -1}, "x", "invalid_field"),
        ({"manifests": 6}, "x", "invalid_field"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_refused_whole(days: dict[str, int], note: str, code: str) -> None:
    actor = new_actor()
    with pytest.raises(ServiceError) as refused:
        set_keeping_times(actor=actor, days={"search": 9} | days, note=note)
    assert refused.value.code == code
    assert not RetentionRule.objects.filter(tenant_id=actor.tenant_id).exists()


def test_each_kind_can_be_counted_and_removed() -> None:
    assert set(OLD) == {kind.name for kind in KINDS}


def test_a_worker_is_asked_once_a_day_where_there_is_a_rule() -> None:
    runtime = lived()
    idle(runtime)
    without = new_actor()
    keep(runtime.actor, content=30)
    tenant = runtime.actor.tenant_id
    for _ in range(2):
        ask_for_upkeep()
        work_off(tenant, kind="upkeep.retain")
    jobs = Job.objects.filter(kind="upkeep.retain")
    assert [job.state for job in jobs.filter(tenant_id=tenant)] == [JobState.DONE]
    assert not jobs.filter(tenant_id=without.tenant_id).exists()
    assert jobs.get(tenant_id=tenant).result["content"] == 1
    jobs.filter(tenant_id=tenant).update(created_at=datetime.now(UTC) - timedelta(hours=25))
    ask_for_upkeep()
    assert jobs.filter(tenant_id=tenant).count() == 2


def test_one_that_breaks_off_has_told_what_went_and_goes_on() -> None:
    first = lived()
    second = lived(first.actor)
    for runtime in (first, second):
        idle(runtime)
    keep(first.actor, content=1)
    calls: list[str] = []

    def before_each(kind: str) -> None:
        calls.append(kind)
        if len(calls) == 2:
            raise ConnectionError("the worker was stopped")

    with pytest.raises(ConnectionError):
        apply_retention(actor=first.actor, before_each=before_each)
    entries = AuditEntry.objects.filter(tenant_id=first.actor.tenant_id, action="retention.applied")
    assert [entry.after for entry in entries] == [{"content": 1}]
    assert apply_retention(actor=first.actor)["content"] == 1


def told_by(command_tenant: Any, *words: str) -> dict[str, Any]:
    out = StringIO()
    slug = Tenant.objects.get(id=command_tenant).slug
    call_command("apply_retention", "--tenant", slug, *words, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_command_counts_with_dry_run_and_takes_away_without() -> None:
    runtime = lived()
    idle(runtime)
    keep(runtime.actor, content=30)
    tenant = runtime.actor.tenant_id
    told = told_by(tenant, "--dry-run")
    assert told["dry_run"] and told["kinds"]["content"] == {"days": 30, "due": 1}
    assert told["kinds"]["search"] == {"days": None, "due": 0}
    assert not runtime.events(EventType.CONTENT_EXPIRED)
    assert told_by(tenant)["kinds"]["content"] == {"days": 30, "gone": 1}
    assert runtime.events(EventType.CONTENT_EXPIRED)
