"""`POST people/{id}/erase`: a person's content leaves every session, and what was sent is still proven (design 4).

Bodies lose bytes and salt and leave a tombstone that the chain still verifies. Before they go, the digests that recorded
requests rest on are kept. Open runs of the sessions end, since what they stand on is gone; the memory snapshot goes with its
trace, and the session gets a plan without it. A persona is a document of its own and is edited, not erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import Plan, plan_text, redacted
from ctxengine.engine.render import RenderContext
from ctxengine.engine.rows import render_unit
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import (
    Body,
    ClosedTurn,
    Event,
    ItemRow,
    PlanRow,
    Rendering,
    RunRow,
    SessionRow,
    SnapshotTrace,
)
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import finish_run
from ctxengine.service.plan_specs import PersonErased
from ctxengine.service.rebuild import rendered_under
from ctxengine.service.refusals import refusing
from ctxengine.service.rotate_epoch import turn_now
from ctxengine.service.rotation import rotation, same_request
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of, plan_from, renderer_of, session_facts

_BULK = 500


def erase_person(*, actor: Actor, principal: str, note: str) -> PersonErased:
    """Erase a principal's content from all sessions of the tenant. Doing it again erases what has come since.

    Raises:
        ServiceError: `reason_required` (422) without a note.
    """
    if not note.strip():
        raise ServiceError(
            "reason_required", 422, "Say in `note` why this person's content is erased."
        )
    with refusing(), transaction.atomic():
        fence(actor.tenant_id, principal)
        done = [_erase(actor, session, principal) for session in _sessions(actor, principal)]
        ClosedTurn.objects.filter(tenant_id=actor.tenant_id, principal=principal).delete()
        erased = PersonErased(
            sessions=sum(bodies > 0 for bodies, _ in done),
            bodies=sum(bodies for bodies, _ in done),
            runs_ended=sum(runs for _, runs in done),
        )
        record_audit(
            actor=actor,
            action="person.erased",
            target=principal,
            reason=model_view(note),
            after={"sessions": erased.sessions, "bodies": erased.bodies, "runs": erased.runs_ended},
        )
    return erased


def _sessions(actor: Actor, principal: str) -> list[UUID]:
    tenant = {"tenant_id": actor.tenant_id}
    bodies = Body.objects.filter(**tenant, owner=principal, erased_at__isnull=True)
    found = set(bodies.values_list("session_id", flat=True).distinct())
    found |= set(
        SnapshotTrace.objects.filter(
            **tenant, principal=principal, withdrawn_at__isnull=True
        ).values_list("session_id", flat=True)
    )
    return sorted(found)


def _erase(actor: Actor, session_id: UUID, principal: str) -> tuple[int, int]:
    """Erase from one session, under its lock; gives how many bodies went and how many runs ended."""
    session = SessionRow.objects.select_for_update().get(tenant_id=actor.tenant_id, id=session_id)
    log, now = log_of(session), utc_now()
    runs = _end_runs(session, log, now)
    erasure = _Erasure(session, log, principal, now)
    if not erasure.bodies:
        return 0, runs
    current = erasure.keep_what_proves()
    erasure.blank()
    had_snapshot = bool(current is not None and current.snapshot)
    marker = EventDraft(
        type=EventType.PERSON_ERASED,
        trust=Trust.PLATFORM,
        payload={"bodies": len(erasure.bodies), "snapshot": had_snapshot},
    )
    log.append([marker], expected=None, at=now, key=actor.idempotency_key)
    if current is not None and session.state == "open":
        _pin_without_snapshot(actor, session, log, current)
    return len(erasure.bodies), runs


def _end_runs(session: SessionRow, log: PostgresLog, now: datetime) -> int:
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    waiting = list(rows.exclude(state="ended"))
    for run in waiting:
        finish_run(session=session, run=run, log=log, outcome="cancelled", at=now)
    return len(waiting)


def _pin_without_snapshot(actor: Actor, session: SessionRow, log: PostgresLog, old: Plan) -> None:
    wanted = replace(same_request(old), snapshot=(), snapshot_trace="", snapshot_watermark=0)
    turned = rotation(
        session, old, wanted, (EpochReason.SNAPSHOT_MISSING,), note="a person's content was erased"
    )
    turn_now(actor=actor, session=session, log=log, turned=turned, expected=None)


class _Erasure:
    """One session's erasure; the caller holds the session's lock."""

    def __init__(
        self, session: SessionRow, log: PostgresLog, principal: str, now: datetime
    ) -> None:
        self.session = session
        self.log = log
        self.now = now
        self.key = {"tenant_id": session.tenant_id, "session_id": session.id}
        owned = Body.objects.filter(**self.key, owner=principal, erased_at__isnull=True)
        self.bodies: list[UUID] = list(owned.values_list("id", flat=True))
        events = Event.objects.filter(**self.key, body_id__in=self.bodies)
        self.sequences: list[int] = list(events.values_list("sequence", flat=True))

    def keep_what_proves(self) -> Plan | None:
        """Keep digests and redacted plans; gives the current plan where its content is about to go."""
        current = None
        rows = PlanRow.objects.filter(**self.key).order_by("epoch")
        for row in rows:
            if row.body_id not in self.bodies and row.redacted_body_id is None:
                self._keep_digests(plan_from(self.log, row))
                continue
            plan = plan_from(self.log, row)
            self._keep_digests(plan)
            if row.body_id in self.bodies:
                self._redact(row, plan)
                if row.epoch == self.session.epoch:
                    current = plan
        return current

    def _redact(self, row: PlanRow, plan: Plan) -> None:
        data = plan_text(redacted(plan)).encode()
        kept = Body.objects.create(
            **self.key, id=uuid4(), salt=b"", data=data, sha256="", length=len(data)
        )
        PlanRow.objects.filter(**self.key, epoch=row.epoch).update(redacted_body_id=kept.id)

    def _keep_digests(self, plan: Plan) -> None:
        """The digest of every affected unit in both forms, as this epoch's requests rest on it."""
        affected = set(self._units())
        context = RenderContext(
            nonce_key=session_facts(self.session, plan).nonce_key,
            wire_names={tool.name: tool.wire_name for tool in plan.tools},
            api=renderer_of(plan.provider).api.value,
            foreign_as_pointer=bool(self.session.import_sha256),
            inline_maximum_bytes=plan.policy.inline_maximum_bytes,
        )
        renderer = renderer_of(plan.provider)
        rows = [
            Rendering(
                **self.key,
                unit_sequence=unit.sequence,
                renderer=rendered_under(plan),
                form=form,
                digest=render_unit(unit, context, renderer, as_pointers=form == "pointer").digest,
            )
            for unit in self.log.units(EventSeq(1), EventSeq(self.log.head().sequence + 1))
            if unit.sequence in affected
            for form in ("whole", "pointer")
        ]
        Rendering.objects.bulk_create(rows, _BULK, ignore_conflicts=True)

    def _units(self) -> Sequence[int]:
        rows = ItemRow.objects.filter(**self.key, sequence__in=self.sequences)
        return list(rows.values_list("unit_sequence", flat=True).distinct())

    def blank(self) -> None:
        """Take the content away, from the bodies and from everything that was derived from them."""
        Body.objects.filter(**self.key, id__in=self.bodies).update(
            data=b"", salt=b"", erased_at=self.now
        )
        units = self._units()
        ItemRow.objects.filter(**self.key, sequence__in=self.sequences).update(preview="")
        Rendering.objects.filter(**self.key, unit_sequence__in=units).update(data=None)
        ClosedTurn.objects.filter(**self.key).delete()
        SnapshotTrace.objects.filter(**self.key, withdrawn_at__isnull=True).update(
            withdrawn_at=self.now
        )
