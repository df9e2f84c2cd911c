"""The job `compaction.packet`: read a head, ask the model without holding anything, install by compare-and-set (design 7.9).

What it installs is a cache: no byte of any request moves before a plan wants just these turns in a packet, or more of them. A
failure changes nothing but that it is told, as an event with its reason and as the job's own error.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from django.db import transaction

from ctxengine.engine.compaction.packet import PACKET_REASON, CompactionResult
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.events import EventDraft
from ctxengine.engine.history.handoff import newest_handoff
from ctxengine.engine.history.working_set_packet_text import PacketGround, tell_packet
from ctxengine.engine.history.working_set_packets import (
    PacketStore,
    first_readable,
    is_told,
    packet_lost,
    packet_store,
)
from ctxengine.engine.log.records import EventRecord, Head
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.standing import Standing, history_acts, working_state_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.compactors import (
    WORDS,
    MadeFor,
    compaction_draft,
    compactor_of,
    refusal_event,
)
from ctxengine.service.factor import factor_in_force
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobFailed
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.asking import Asking
from ctxengine.service.summaries.install import (
    MOST_LOOKS,
    hold_unless_cancelled,
    installed_by,
)
from ctxengine.service.wiring import counter_of, log_of, plan_from
from ctxengine.service.working_set.ground import frame_of
from ctxengine.service.working_set.wanted_packet import WantedPacket


def run(context: JobContext) -> dict[str, Any]:
    """Write one packet and install it; the result names the event, the model and the spend.

    Raises:
        JobFailed: nothing was installed, and trying again would not help; the session's log says why.
        ProviderError: a call failed in a way that may pass.
    """
    return _Work(context).run()


class _Look(NamedTuple):
    """The session at one head, as far as a packet of certain turns needs it."""

    log: PostgresLog
    head: Head
    plan: Plan
    store: PacketStore
    ground: PacketGround | None
    """None where the policy wants no packets any more, or a reset has set its turns aside."""


def _look(session: SessionRow, wanted: WantedPacket, *, below: int | None = None) -> _Look:
    """The session now.

    Args:
        below: one past the newest content event that counts; left out, all of them do.

    Raises:
        ServiceError: 409 `session_ended`.
    """
    log = log_of(session)
    head = log.head()
    still_open_session(session)
    plan = plan_from(log, plan_row_of(session))
    acts = history_acts(log)
    store = packet_store(log, acts.undone)
    state, _, _ = working_state_of(log)
    compactor = compactor_of(
        log,
        plan,
        Standing(state=state, marks=acts.marks, undone=acts.undone),
        below=below or head.content_sequence + 1,
    )
    handoff = newest_handoff(log)
    aside = handoff is not None and handoff.through >= wanted.first
    if compactor is None or aside:
        return _Look(log, head, plan, store, None)
    ground = PacketGround(
        log,
        wanted.range,
        first_readable(log, store.shorter(wanted.first, wanted.through)),
        compactor.surroundings,
        counter_of(plan.provider, plan.model),
        compactor.excluded,
    )
    return _Look(log, head, plan, store, ground)


class _Work:
    """One attempt."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._wanted = WantedPacket.model_validate(context.arguments)
        if context.job.session_id is None:
            raise JobFailed("not_found", "The job names no session.")
        try:
            self._session = session_of(context.actor, context.job.session_id)
            self._made_at = _look(self._session, self._wanted)
        except ServiceError as error:
            raise JobFailed(error.code, error.detail) from error
        self._asking = Asking(context, self._session, self._made_at.plan)

    def run(self) -> dict[str, Any]:
        """Write and install."""
        wanted, ground = self._wanted, self._made_at.ground
        if ground is None or not self._may_be_made(self._made_at):
            self._refuse(Refusal.SOURCE_CHANGED)
        if wanted.cause == "ahead":
            there = self._needless()
            if there is not None:
                return {"outcome": "unchanged", "event": there.sequence}
            if ground.grown_from is None:
                # The whole history would be read: it is asked for again once a plan has made the packet to go on from.
                self._refuse(Refusal.SOURCE_CHANGED)
        try:
            made = tell_packet(
                ground, summariser=self._asking.summariser, budget_tokens=wanted.budget_tokens
            )
        except ProviderError as error:
            refusal = self._asking.refusal_of(error)
            self._refuse(refusal, code=error.code, detail=error.detail)
        if isinstance(made, Refusal):
            self._refuse(made)
        self._context.check()
        self._context.progress("installing", 95)
        if not self._install(made):
            self._refuse(Refusal.SOURCE_CHANGED)
        return installed_by(self._made_at.log, self._context.job) or {}

    def _may_be_made(self, look: _Look) -> bool:
        """Whether no operator has taken a packet over these turns back; who asks by hand wants one all the same."""
        by_hand = self._wanted.cause == "hand"
        return by_hand or look.store.may_be_made(self._wanted.first, self._wanted.through)

    def _needless(self) -> EventRecord | None:
        """A packet beside which one ahead of a plan would be of no use, as nothing would grow from it.

        It is a longer one, or one that a model wrote over the same turns.
        """
        wanted, store = self._wanted, self._made_at.store
        further = store.reaches(wanted.first, wanted.through + 1)
        same = store.over(wanted.first, wanted.through, wanted.budget_tokens)
        return further or next((event for event in same if is_told(event)), None)

    # --- installing ---

    def _install(self, made: CompactionResult) -> bool:
        """Append it at a head at which all that it was made from is as it was; False where something has changed.

        Raises:
            LeaseLost: another worker has the job; nothing was written.
            JobCancelled: somebody asked for its end; nothing was written.
            ServiceError: `stale_head` when others appended all the time; the job is tried again.
        """
        below = self._made_at.head.content_sequence + 1
        for _ in range(MOST_LOOKS):
            try:
                now = _look(self._session, self._wanted, below=below)
            except ServiceError:
                return False
            if now.ground is None or not self._holds(now, now.ground, made):
                return False
            with transaction.atomic():
                hold_unless_cancelled(self._context)
                if now.log.lock().sequence != now.head.sequence:
                    continue
                draft = self._draft(now, now.ground, made)
                now.log.append([draft], expected=now.head.sequence, at=utc_now())
                self._audit(made)
                self._context.conclude(installed_by(now.log, self._context.job) or {})
                return True
        raise ServiceError("stale_head", 409, "Others appended to this session all the time.")

    def _holds(self, now: _Look, ground: PacketGround, made: CompactionResult) -> bool:
        """Compare-and-set: no undoing, exclusion or erasure since, the same turns, the same stored packet before them."""
        since, wanted = self._made_at.head.sequence, self._wanted
        if not self._may_be_made(now) or packet_lost(now.log, since, wanted.first, wanted.through):
            return False
        read = self._made_at.ground.grown_from if self._made_at.ground else None
        if read is not None:
            standing = [event for event in now.store.events if event.sequence == read.sequence]
            if first_readable(now.log, standing) is None:
                return False
        # One that came in meanwhile and reaches further changes nothing of what was read.
        ground = ground._replace(grown_from=read)
        return ground.digest(ground.source()) == made.source_sha256

    def _draft(self, now: _Look, ground: PacketGround, made: CompactionResult) -> EventDraft:
        wanted, plan = self._wanted, now.plan
        writer = self._asking.summariser.writer
        factor = factor_in_force(self._session.tenant_id, plan.provider, plan.model)
        return compaction_draft(
            # Constraints and open tasks are those of now, whatever the model has written.
            made.model_copy(
                update={
                    "constraints": tuple(
                        dict.fromkeys((*made.constraints, *ground.surroundings.constraints))
                    ),
                    "open_tasks": ground.surroundings.open_tasks,
                }
            ),
            came_with=(),
            made_for=MadeFor(
                frame_of(plan, factor).total, plan.model, plan.policy.label, self._forced_by
            ),
            run=wanted.run,
            owner=self._session.principal,
            reason=PACKET_REASON,
            writer=self._asking.facts(writer) if writer is not None else None,
        )

    @property
    def _forced_by(self) -> str:
        by_hand = self._wanted.cause == "hand"
        return self._context.actor.label if by_hand else f"job:{self._context.job.id}"

    def _audit(self, made: CompactionResult) -> None:
        if self._wanted.cause != "hand":
            return
        record_audit(
            actor=self._context.actor,
            action="history.compacted",
            target=str(self._session.id),
            reason=self._wanted.note,
            before={"tokens": made.tokens_before},
            after={"tokens": made.tokens_after, "through": made.replaced_through_sequence},
        )

    # --- telling why not ---

    def _refuse(self, refusal: Refusal, *, code: str = "", detail: str = "") -> NoReturn:
        wanted = self._wanted
        draft = refusal_event(
            refusal,
            first=wanted.first,
            through=wanted.through,
            tokens=wanted.tokens,
            content_head=self._made_at.head.content_sequence,
            forced_by=self._forced_by,
            run=wanted.run,
            asked=self._asking.asked(code),
        )
        with transaction.atomic():
            self._context.hold()
            self._made_at.log.append([draft], expected=None, at=utc_now())
        raise JobFailed(code or refusal.value, detail or WORDS[refusal])
