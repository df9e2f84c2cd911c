"""Taking content out of one session, so that its chain still verifies and what was sent is still proven (design 4).

Bodies lose bytes and salt and leave a tombstone. Before they go, the digests that recorded requests rest on are kept; they are
rendered before the session's lock is taken. An open run ends, since what it stands on is gone. A plan that carried a memory
snapshot is followed by one without it, and each plan is kept without what was erased of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import QuerySet

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
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.engine.turns.record import CARDS_TWICE, closed_record
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import (
    Body,
    ClosedTurn,
    Event,
    ImportRow,
    ItemRow,
    PlanRow,
    Rendering,
    ReplayRow,
    SearchEntry,
    SessionRow,
    SnapshotTrace,
)
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.children_without_name import (
    NOBODY,
    owned_bodies,
    owners_of,
    remaining_bodies,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import finish_run, interruptions
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

_BULK = 500
_WHOLE_OR_SHORT = ("whole", "pointer")
_TRIES = 5
"""So often one session is tried while others write to it."""


class Taken(NamedTuple):
    """What one session lost."""

    bodies: int
    runs: int
    """Open runs that ended: none or one."""


class Wanted(NamedTuple):
    """What is to go, and what the log says of it."""

    owner: str | None
    """Whose content; None: everybody's."""
    marker: EventType
    told: Mapping[str, Any]
    """Fields of the marker beside the counts."""
    note: str
    """Why a plan is followed by one without its snapshot."""
    still: Callable[[UUID], bool] | None = None
    """Asked of the session once its lock is held; where it says no, and where somebody wrote meanwhile, all stays."""


def take_content(*, actor: Actor, session_id: UUID, wanted: Wanted) -> Taken:
    """Erase from one session; done again where somebody wrote to it meanwhile, unless only what is `still` so is wanted.

    Raises:
        ServiceError: `stale_head` (409) when the session is written to so busily that its turn never came.
    """
    for left in reversed(range(1 if wanted.still else _TRIES)):
        try:
            with refusing():
                return _take(actor, session_id, wanted)
        except ServiceError as error:
            if error.code != "stale_head" or not left:
                raise
    raise AssertionError(_TRIES)


def _take(actor: Actor, session_id: UUID, wanted: Wanted) -> Taken:
    session = SessionRow.objects.get(tenant_id=actor.tenant_id, id=session_id)
    log, now = log_of(session), utc_now()
    head = log.head()
    session.refresh_from_db()
    run = open_run(session)
    closing = []
    if run is not None:
        closing = interruptions(session, run, log, first=EventSeq(head.sequence + 1))
    erasure = _Erasure(session, log, wanted.owner, now)
    erasure.prepare()
    turned = _without_snapshot(session, erasure.current, wanted.note)
    with transaction.atomic():
        # Before the session's lock, as everybody takes them who pins a snapshot.
        fence(actor.tenant_id, erasure.principal)
        if log.lock().sequence != head.sequence:
            raise StaleHead("Something was appended while the session's erasure was prepared.")
        if wanted.still is not None and not wanted.still(session.id):
            raise StaleHead("The session came to use again before its turn.")
        if run is not None:
            finish_run(run=run, log=log, outcome="cancelled", at=now, closing=closing)
        kept = erasure.keep_what_proves(marker=log.head().sequence + 1)
        erasure.blank()
        if erasure.bodies:
            payload = {
                "bodies": len(erasure.bodies),
                "snapshot": turned is not None,
                "kept": kept,
                "runs": int(run is not None),
                **wanted.told,
            }
            marker = EventDraft(type=wanted.marker, trust=Trust.PLATFORM, payload=payload)
            log.append([marker], expected=None, at=now, key=actor.idempotency_key)
        if turned is not None and session.state == "open":
            turn_now(actor=actor, session=session, log=log, turned=turned, expected=None)
        if wanted.owner is None:
            # Upkeep is no activity: the session stays where it stood among the others.
            SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(
                active_at=session.active_at
            )
    return Taken(len(erasure.bodies), int(run is not None))


def _without_snapshot(session: SessionRow, plan: Plan | None, note: str) -> Rotation | None:
    """The plan that follows one whose snapshot is about to go; None where nothing of the plan goes."""
    if plan is None or not plan.snapshot:
        return None
    wanted = replace(same_request(plan), snapshot=(), snapshot_trace="", snapshot_watermark=0)
    return rotation(session, plan, wanted, (EpochReason.SNAPSHOT_MISSING,), note=note)


class _Erasure:
    """One session's erasure: `prepare` without any lock, then the rest with the session's."""

    def __init__(
        self, session: SessionRow, log: PostgresLog, owner: str | None, now: datetime
    ) -> None:
        self.session = session
        self.log = log
        self.now = now
        self.key = {"tenant_id": session.tenant_id, "session_id": session.id}
        self.owner = owner
        self.principal = session.principal if owner is None else owner
        owners = () if owner is None else owners_of(session, owner)
        self.nameless = NOBODY in owners
        """Whether the session worked for the person and does not say so."""
        owned = remaining_bodies(session) if owner is None else owned_bodies(session, owners)
        self.bodies: list[UUID] = list(owned.values_list("id", flat=True))
        events = Event.objects.filter(**self.key, body_id__in=self.bodies)
        self.sequences: list[int] = list(events.values_list("sequence", flat=True))
        self.turns = turns_quoting(session, self.sequences, self.bodies)
        self.bodies += sorted(set(self.turns.cards).difference(self.bodies))
        self.current: Plan | None = None
        """The plan of the session's epoch, where its text is about to go."""
        self._digests: list[tuple[Plan, Rendering]] = []
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

    def keep_what_proves(self, *, marker: int) -> dict[str, str]:
        """Store the digests, and each plan without what is erased of it; gives the sha256 of the latter by body id.

        Args:
            marker: sequence that the erasure's event is about to get.
        """
        kept_as: dict[str, str] = {}
        self._keep_digests(marker)
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

    def _keep_digests(self, marker: int) -> None:
        """What was kept of a unit before stays; one that is another by now, as it lost part of itself, is kept beside it."""
        found: dict[tuple[int, str, str], tuple[Plan, Rendering]] = {}
        for plan, row in self._digests:
            found.setdefault((row.unit_sequence, row.renderer, row.form), (plan, row))
        rows = [row for _, row in found.values()]
        Rendering.objects.bulk_create(rows, _BULK, ignore_conflicts=True)
        units = {unit for unit, _, _ in found}
        stored = Rendering.objects.filter(**self.key, unit_sequence__in=units)
        before = {(row.unit_sequence, row.renderer, row.form): row.digest for row in stored}
        others = []
        for key, (plan, row) in found.items():
            if before[key] != row.digest:
                row.renderer = rendered_under(plan, marker)
                others.append(row)
        Rendering.objects.bulk_create(others, _BULK)

    def _digests_under(self, plan: Plan, affected: set[int]) -> list[tuple[Plan, Rendering]]:
        """The digest of every affected unit in each form, as this epoch's requests rest on it."""
        renderer = renderer_of(plan.provider)
        context = RenderContext(
            nonce_key=session_facts(self.session, plan).nonce_key,
            wire_names={tool.name: tool.wire_name for tool in plan.tools},
            api=renderer.api.value,
            foreign_as_pointer=bool(self.session.import_sha256),
            inline=plan.policy.inline,
            whole_lines=self.session.engine in WINDOWED_ENGINES,
            searchable=plan.searchable,
        )
        counter = counter_of(plan.provider, plan.model)
        units = self.log.units(EventSeq(1), EventSeq(self.log.head().sequence + 1))
        shown = [
            (form, unit) for unit in units if unit.sequence in affected for form in _WHOLE_OR_SHORT
        ]
        if HISTORY_FORMS.get(self.session.engine) == "digest":
            own = [u for u in units if u.sequence in affected]
            turns = closed_turns(self.log)
            repeats = turns.repeats(range(1, len(turns.events) + 1))
            closed = closed_record(own, counter, repeats=repeats, digests=turns.digests_at)
            shown += [("digest", unit) for unit in closed]
            earlier = closed_record(own, counter, once=False, digests=turns.digests_at)
            shown += [
                (CARDS_TWICE, unit)
                for unit, now in zip(earlier, closed, strict=True)
                if unit != now
            ]
        rows = [
            Rendering(
                **self.key,
                unit_sequence=unit.sequence,
                renderer=rendered_under(plan),
                form=form,
                digest=render_unit(unit, context, renderer, as_pointers=form == "pointer").digest,
            )
            for form, unit in shown
        ]
        return [(plan, row) for row in rows]

    def _units(self) -> Sequence[int]:
        rows = ItemRow.objects.filter(**self.key, sequence__in=self.sequences)
        return list(rows.values_list("unit_sequence", flat=True).distinct())

    def blank(self) -> None:
        """Take the content away, from the bodies and from everything that was derived from them."""
        traces = SnapshotTrace.objects.filter(**self.key)
        if self.owner is None:
            # The recall behind it is not withdrawn: another session may pin it anew.
            traces.filter(withdrawn_at__isnull=True).delete()
        else:
            traces.filter(withdrawn_at__isnull=True).update(withdrawn_at=self.now)
        if not self.bodies:
            return
        gone = Body.objects.filter(**self.key, id__in=self.bodies)
        if self.owner is None:
            gone.update(data=b"", salt=b"", erased_at=self.now)
        else:
            gone.update(data=b"", salt=b"", erased_at=self.now, owner=self.principal)
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
        if self.owner is None or self.principal == self.session.principal or self.nameless:
            self._forget_beside()

    def _forget_beside(self) -> None:
        """Words of a session that all goes which stand outside its ledger: its title, and what its file's repair set aside."""
        of_tenant = {"tenant_id": self.session.tenant_id}
        title = self.session.agent_name
        SessionRow.objects.filter(**of_tenant, id=self.session.id).update(title=title)
        ReplayRow.objects.filter(**self.key).update(title=title)
        if not self.session.import_sha256:
            return
        for row in _imports_of(self.session):
            row.report = [
                {name: told for name, told in line.items() if name != "raw"} for line in row.report
            ]
            row.save(update_fields=["report"])


def _imports_of(session: SessionRow) -> QuerySet[ImportRow]:
    rows = ImportRow.objects.filter(tenant_id=session.tenant_id)
    return rows.filter(sha256=session.import_sha256).select_for_update()
