"""A session as another model would see it: its closed turns planned anew on that model's profile, read only (capacity spec 4).

Nothing is written and no model is asked. A packet that would have to be made is only named.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_plan import Wish, plan_run
from ctxengine.engine.history.working_set_record import PlannedSet, PlanReason, planned_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.engine.turns.relevance import RECENT_TURNS
from ctxengine.ledger.log import PostgresLog
from ctxengine.service.access import session_of
from ctxengine.service.factor import factor_in_force
from ctxengine.service.specs import Actor
from ctxengine.service.turns.values import values_for
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import facts_about, log_of
from ctxengine.service.working_set.ground import planning_of, profile_in_force

PLANNED_ENGINES = frozenset({"working_set"})
"""Engines whose history hangs on the model's profile."""


class TurnForm(StrEnum):
    """How a closed turn stands in a plan."""

    BEHIND_RESET = "behind_reset"
    PACKET = "packet"
    CARD = "card"
    FULL = "full"
    SENT = "sent"
    """Whole, as it was sent."""
    PROMOTED = "promoted"
    """Whole, behind the history, since the directive is about it."""


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The newest plan that was recorded."""

    event: int
    record: PlannedSet


@dataclass(frozen=True, slots=True)
class SeenBy:
    """A plan that nobody recorded."""

    profile: CapacityProfile
    stored: str | None
    """Revision of the profile; None for one from metadata alone."""
    record: PlannedSet
    packet_missing: bool
    """Whether the packet it wants was never made: a run would make it at its start."""


class FormRange(NamedTuple):
    """Neighbouring turns that stand in one form."""

    form: TurnForm
    first: int
    last: int


class Forms:
    """How every turn stands in one plan. Making it reads the plan once; a turn is then a look-up."""

    def __init__(self, record: PlannedSet) -> None:
        self._record = record
        self._promoted = {stretch.number for stretch in record.promoted}
        self._sent = frozenset(record.sent_numbers)

    def of(self, number: int) -> TurnForm:
        """How a turn stands in the plan that was made for it."""
        record = self._record
        if number <= record.behind:
            return TurnForm.BEHIND_RESET
        if number in self._promoted:
            return TurnForm.PROMOTED
        if number in self._sent:
            return TurnForm.SENT
        if number >= record.full_from:
            return TurnForm.FULL
        return TurnForm.PACKET if number <= record.packet_through else TurnForm.CARD

    def ranges(self) -> tuple[FormRange, ...]:
        """The closed turns from the first to the newest, neighbours of one form together."""
        found: list[FormRange] = []
        for number in range(1, self._record.turns + 1):
            form = self.of(number)
            if found and found[-1].form is form:
                found[-1] = FormRange(form, found[-1].first, number)
            else:
                found.append(FormRange(form, number, number))
        return tuple(found)

    def counts(self) -> Counter[TurnForm]:
        """How many closed turns stand in each form."""
        return Counter(self.of(number) for number in range(1, self._record.turns + 1))


def plan_in_force_of(*, actor: Actor, session_id: UUID) -> PlanInForce | None:
    """The newest plan of a session; None where its engine plans nothing, or no run was started yet.

    Raises:
        ServiceError: 404.
    """
    newest = log_of(session_of(actor, session_id)).newest(EventType.WORKING_SET_PLANNED)
    if newest is None:
        return None
    return PlanInForce(newest.sequence, planned_of(newest.payload))


def seen_by(
    *, actor: Actor, session_id: UUID, provider: str, model: str, directive: str = ""
) -> SeenBy | None:
    """What the next run would show of the closed turns if its model were this one.

    Args:
        directive: what it would be about; it decides which turns are brought back whole.

    Returns:
        None for a session of an engine whose history does not hang on what a model can use.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    if session.engine not in PLANNED_ENGINES:
        return None
    log = log_of(session)
    closed = closed_turns(log)
    below = EventSeq(log.head().sequence + 1)
    plan = _for_model(plan_of_session(session, log), provider, model)
    profile, stored = profile_in_force(session, plan)
    planning = planning_of(
        log,
        plan,
        profile,
        profile_id=stored,
        factor_millionths=factor_in_force(session.tenant_id, provider, model),
        below=below,
    )
    wish = Wish(
        reason=PlanReason.START,
        boundary=_boundary(log, below),
        values=values_for(
            session,
            directive,
            newest=len(closed.events),
            oldest=len(closed.events) - RECENT_TURNS,
        ),
        next_sequence=int(below),
    )
    # Without what a packet is written from, none is: a stored one stands, and any other is a range alone.
    record = plan_run(replace(planning, surroundings=None), wish).record
    return SeenBy(profile, stored, record, bool(record.packet_through and record.refused))


def _for_model(plan: Plan, provider: str, model: str) -> Plan:
    """The session's plan as it would be for another model, its tokens as they were counted."""
    if (provider, model) == (plan.provider, plan.model):
        return plan
    facts = facts_about(provider, model)
    return plan.model_copy(
        update={
            "provider": provider,
            "model": model,
            "window": facts.window,
            "max_output": facts.max_output,
        }
    )


def _boundary(log: PostgresLog, below: EventSeq) -> int:
    """Where the history ends: behind the newest closed turn, or at the log's end."""
    newest = log.newest(EventType.TURN_CLOSED)
    return int(newest.payload["last"]) + 1 if newest is not None else int(below)
