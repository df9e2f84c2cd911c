"""`POST people/{id}/erase`: a person's content leaves every session, and what was sent is still proven (design 4).

Session by session, each in a transaction of its own: one that breaks off in the middle is simply done again, and goes on with
what is left. Bodies lose bytes and salt and leave a tombstone that the chain still verifies. Before they go, the digests that
recorded requests rest on are kept; they are rendered before the session's lock is taken. Open runs of the sessions end, since
what they stand on is gone. Only a plan that carried the person's memory snapshot is followed by one without it: a plan that
holds nothing of theirs keeps its epoch and its bytes. A persona is a document of its own and is edited, not erased.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.history.projection import HISTORY_FORMS
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import Plan, plan_text, redacted
from ctxengine.engine.ports import StaleHead
from ctxengine.engine.render import RenderContext
from ctxengine.engine.rows import render_unit
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.turns.record import closed_record
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import (
    AuditEntry,
    Body,
    ClosedTurn,
    Event,
    ItemRow,
    PlanRow,
    Rendering,
    SearchEntry,
    SessionRow,
    SnapshotTrace,
)
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.children_without_name import (
    NOBODY,
    nameless_children_of,
    owned_bodies,
    owners_of,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import finish_run, interruptions
from ctxengine.service.plan_specs import PersonErased
from ctxengine.service.rebuild import rendered_under
from ctxengine.service.refusals import refusing
from ctxengine.service.rotate_epoch import turn_now
from ctxengine.service.rotation import Rotation, rotation, same_request
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.turns.quoted import forget_quoting, turns_quoting
from ctxengine.service.wiring import (
    counter_of,
    log_of,
    plan_from,
    renderer_of,
    session_facts,
)

BeforeEach = Callable[[int, int], None]
"""(sessions done, sessions in all)."""

_BULK = 500
_WHOLE_OR_SHORT = ("whole", "pointer")
_TRIES = 5
"""So often one session is tried while others write to it; what was done in the sessions before stays done."""


def erase_person(
    *,
    actor: Actor,
    principal: str,
    note: str,
    erasure: str = "",
    before_each: BeforeEach | None = None,
) -> PersonErased:
    """Erase a principal's content from all sessions of the tenant. Doing it again erases what is left and what has come since.

    Args:
        erasure: names this erasure, so that one which goes on after it broke off counts what was done before; left out: the
            caller's idempotency key, or a new name.
        before_each: called before each session's turn; may break off by raising.

    Raises:
        ServiceError: `reason_required` (422) without a note; `not_found` (404) where nothing was ever of this person;
            `stale_head` (409) when a session is written to so busily that its turn never came.
    """
    if not note.strip():
        raise ServiceError(
            "reason_required", 422, "Say in `note` why this person's content is erased."
        )
    if not _is_known(actor, principal):
        raise ServiceError(
            "not_found", 404, "No session and no content of this person is known; check the id."
        )
    erasure = erasure or actor.idempotency_key or uuid4().hex
    _record_once(actor, "person.erasure_begun", principal, note, {"erasure": erasure})
    done = []
    sessions = _sessions(actor, principal)
    for number, session in enumerate(sessions):
        if before_each is not None:
            before_each(number, len(sessions))
        done.append(_patiently(actor, session, principal, erasure))
    marked = _marked(actor, principal, erasure)
    # A session that held nothing of theirs has no marker; its run ended all the same.
    unmarked = sum(runs for bodies, runs in done if not bodies)
    erased = PersonErased(
        sessions=len(marked),
        bodies=sum(bodies for bodies, _ in marked),
        runs_ended=sum(runs for _, runs in marked) + unmarked,
    )
    with transaction.atomic():
        fence(actor.tenant_id, principal)
        ClosedTurn.objects.filter(tenant_id=actor.tenant_id, principal=principal).delete()
        figures = {
            "sessions": erased.sessions,
            "bodies": erased.bodies,
            "runs": erased.runs_ended,
        }
        _record_once(actor, "person.erased", principal, note, figures | {"erasure": erasure})
    return erased


def _record_once(
    actor: Actor, action: str, principal: str, note: str, after: dict[str, Any]
) -> None:
    """An erasure that goes on has begun already, and one whose answer was lost has ended."""
    target = model_view(principal)
    entries = AuditEntry.objects.filter(tenant_id=actor.tenant_id, action=action, target=target)
    if not entries.filter(after__erasure=after["erasure"]).exists():
        record_audit(actor=actor, action=action, target=target, reason=note, after=after)


def _marked(actor: Actor, principal: str, erasure: str) -> list[tuple[int, int]]:
    """(bodies, runs) of every session that this erasure has been through, in this attempt or an earlier one."""
    gone = Body.objects.filter(
        tenant_id=actor.tenant_id, owner=principal, erased_at__isnull=False
    ).values("session_id")
    markers = Event.objects.filter(
        tenant_id=actor.tenant_id,
        session_id__in=gone,
        type=EventType.PERSON_ERASED,
        payload__erasure=erasure,
    )
    return [(told["bodies"], told["runs"]) for told in markers.values_list("payload", flat=True)]


def _is_known(actor: Actor, principal: str) -> bool:
    """Whether anything was ever of this person: whoever was erased before still is."""
    tenant = {"tenant_id": actor.tenant_id}
    return (
        Body.objects.filter(**tenant, owner=principal).exists()
        or SessionRow.objects.filter(**tenant, principal=principal).exists()
        or SnapshotTrace.objects.filter(**tenant, principal=principal).exists()
    )


def _sessions(actor: Actor, principal: str) -> list[UUID]:
    tenant = {"tenant_id": actor.tenant_id}
    bodies = Body.objects.filter(**tenant, owner=principal, erased_at__isnull=True)
    found = set(bodies.values_list("session_id", flat=True).distinct())
    found |= set(
        SnapshotTrace.objects.filter(
            **tenant, principal=principal, withdrawn_at__isnull=True
        ).values_list("session_id", flat=True)
    )
    return sorted(found | nameless_children_of(actor.tenant_id, principal))


def _patiently(actor: Actor, session_id: UUID, principal: str, erasure: str) -> tuple[int, int]:
    """Erase from one session; gives how many bodies went and how many runs ended."""
    for left in reversed(range(_TRIES)):
        try:
            with refusing():
                return _erase(actor, session_id, principal, erasure)
        except ServiceError as error:
            if error.code != "stale_head" or not left:
                raise
    raise AssertionError(_TRIES)


def _erase(actor: Actor, session_id: UUID, principal: str, name: str) -> tuple[int, int]:
    session = SessionRow.objects.get(tenant_id=actor.tenant_id, id=session_id)
    log, now = log_of(session), utc_now()
    head = log.head()
    session.refresh_from_db()
    run = open_run(session)
    closing = []
    if run is not None:
        closing = interruptions(session, run, log, first=EventSeq(head.sequence + 1))
    erasure = _Erasure(session, log, principal, now)
    erasure.prepare()
    turned = _without_snapshot(session, erasure.current)
    with transaction.atomic():
        # Before the session's lock, as everybody takes them who pins a snapshot.
        fence(actor.tenant_id, principal)
        if log.lock().sequence != head.sequence:
            raise StaleHead("Something was appended while the session's erasure was prepared.")
        if run is not None:
            finish_run(run=run, log=log, outcome="cancelled", at=now, closing=closing)
        kept = erasure.keep_what_proves()
        erasure.blank()
        if erasure.bodies:
            marker = EventDraft(
                type=EventType.PERSON_ERASED,
                trust=Trust.PLATFORM,
                payload={
                    "bodies": len(erasure.bodies),
                    "snapshot": turned is not None,
                    "kept": kept,
                    "runs": int(run is not None),
                    "erasure": name,
                },
            )
            log.append([marker], expected=None, at=now, key=actor.idempotency_key)
        if turned is not None and session.state == "open":
            turn_now(actor=actor, session=session, log=log, turned=turned, expected=None)
    return len(erasure.bodies), int(run is not None)


def _without_snapshot(session: SessionRow, plan: Plan | None) -> Rotation | None:
    """The plan that follows one whose snapshot is about to go; None where nothing of the plan goes."""
    if plan is None or not plan.snapshot:
        return None
    wanted = replace(same_request(plan), snapshot=(), snapshot_trace="", snapshot_watermark=0)
    note = "a person's content was erased"
    return rotation(session, plan, wanted, (EpochReason.SNAPSHOT_MISSING,), note=note)


class _Erasure:
    """One session's erasure: `prepare` without any lock, then the rest with the session's."""

    def __init__(
        self, session: SessionRow, log: PostgresLog, principal: str, now: datetime
    ) -> None:
        self.session = session
        self.log = log
        self.now = now
        self.key = {"tenant_id": session.tenant_id, "session_id": session.id}
        self.principal = principal
        owners = owners_of(session, principal)
        self.nameless = NOBODY in owners
        """Whether the session worked for the person and does not say so."""
        owned = owned_bodies(session, owners)
        self.bodies: list[UUID] = list(owned.values_list("id", flat=True))
        events = Event.objects.filter(**self.key, body_id__in=self.bodies)
        self.sequences: list[int] = list(events.values_list("sequence", flat=True))
        self.turns = turns_quoting(session, self.sequences, self.bodies)
        self.bodies += sorted(set(self.turns.cards).difference(self.bodies))
        self.current: Plan | None = None
        """The plan of the session's epoch, where its text is about to go."""
        self._digests: list[Rendering] = []
        self._plans: dict[int, Plan] = {}

    def prepare(self) -> None:
        """Render what recorded requests rest on, as each epoch's requests do."""
        if not self.bodies:
            return
        affected = set(self._units())
        for row in PlanRow.objects.filter(**self.key).order_by("epoch"):
            plan = plan_from(self.log, row)
            self._digests += self._digests_under(plan, affected)
            if row.body_id in self.bodies:
                self._plans[row.epoch] = plan
                if row.epoch == self.session.epoch:
                    self.current = plan

    def keep_what_proves(self) -> dict[str, str]:
        """Store the digests, and each plan without what is erased of it; gives the sha256 of the latter by body id."""
        kept_as: dict[str, str] = {}
        Rendering.objects.bulk_create(self._digests, _BULK, ignore_conflicts=True)
        for epoch, plan in self._plans.items():
            # A plan without a snapshot holds nothing of the person's: its text stays as it is.
            data = plan_text(redacted(plan) if plan.snapshot else plan).encode()
            kept = Body.objects.create(
                **self.key,
                id=uuid4(),
                salt=b"",
                data=data,
                sha256=sha256_hex(data),
                length=len(data),
            )
            PlanRow.objects.filter(**self.key, epoch=epoch).update(redacted_body_id=kept.id)
            kept_as[str(kept.id)] = kept.sha256
        return kept_as

    def _digests_under(self, plan: Plan, affected: set[int]) -> list[Rendering]:
        """The digest of every affected unit in each form, as this epoch's requests rest on it."""
        renderer = renderer_of(plan.provider)
        context = RenderContext(
            nonce_key=session_facts(self.session, plan).nonce_key,
            wire_names={tool.name: tool.wire_name for tool in plan.tools},
            api=renderer.api.value,
            foreign_as_pointer=bool(self.session.import_sha256),
            inline_maximum_bytes=plan.policy.inline_maximum_bytes,
            whole_lines=self.session.engine in WINDOWED_ENGINES,
            searchable=plan.searchable,
        )
        counter = counter_of(plan.provider, plan.model)
        units = self.log.units(EventSeq(1), EventSeq(self.log.head().sequence + 1))
        shown = [
            (form, unit) for unit in units if unit.sequence in affected for form in _WHOLE_OR_SHORT
        ]
        if HISTORY_FORMS.get(self.session.engine) == "digest":
            closed = closed_record([u for u in units if u.sequence in affected], counter)
            shown += [("digest", unit) for unit in closed]
        return [
            Rendering(
                **self.key,
                unit_sequence=unit.sequence,
                renderer=rendered_under(plan),
                form=form,
                digest=render_unit(unit, context, renderer, as_pointers=form == "pointer").digest,
            )
            for form, unit in shown
        ]

    def _units(self) -> Sequence[int]:
        rows = ItemRow.objects.filter(**self.key, sequence__in=self.sequences)
        return list(rows.values_list("unit_sequence", flat=True).distinct())

    def blank(self) -> None:
        """Take the content away, from the bodies and from everything that was derived from them."""
        SnapshotTrace.objects.filter(**self.key, withdrawn_at__isnull=True).update(
            withdrawn_at=self.now
        )
        if not self.bodies:
            return
        Body.objects.filter(**self.key, id__in=self.bodies).update(
            data=b"", salt=b"", erased_at=self.now, owner=self.principal
        )
        if self.nameless:
            # From now on it says for whom it works, as children do.
            SessionRow.objects.filter(tenant_id=self.session.tenant_id, id=self.session.id).update(
                principal=self.principal
            )
        units = self._units()
        ItemRow.objects.filter(**self.key, sequence__in=self.sequences).update(preview="")
        Rendering.objects.filter(**self.key, unit_sequence__in=units).update(data=None)
        SearchEntry.objects.filter(**self.key, sequence__in=self.sequences).delete()
        ClosedTurn.objects.filter(**self.key).delete()
        forget_quoting(self.session, self.turns)
