"""Planning the working set at run start; its event goes in with the run's first message (design 7.16)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.working_set_plan import Planned, Planning, Wish, plan_run
from ctxengine.engine.history.working_set_record import PlanReason
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import TextPart
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.relevance import RECENT_TURNS
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.compactors import MadeFor, compaction_draft
from ctxengine.service.factor import factor_in_force
from ctxengine.service.specs import ReadingSpec
from ctxengine.service.turns.values import values_for
from ctxengine.service.warm import plan_of_session
from ctxengine.service.working_set.ground import planning_of, profile_in_force

ENGINE = "working_set"


def start_drafts(
    session: SessionRow,
    log: PostgresLog,
    *,
    said: Sequence[EventDraft],
    boundary: EventSeq,
    next_sequence: int,
    run: str,
    turned: Plan | None,
    reading: ReadingSpec | None = None,
) -> list[EventDraft]:
    """The events of a run's plan: a packet where a new one is needed, then the plan. None for other engines.

    Reads only; every turn that is over must have been closed before.

    Args:
        said: the drafts of the run's first message, its first at `boundary`.
        next_sequence: place of the first event that is given here.
        turned: the plan that the run is about to be bound to, where it is a new one.
        reading: the runtime's own reading of the message.
    """
    if session.engine != ENGINE:
        return []
    plan = turned or plan_of_session(session, log)
    profile, profile_id = profile_in_force(session, plan)
    planning = planning_of(
        log,
        plan,
        profile,
        profile_id=profile_id,
        factor_millionths=factor_in_force(session.tenant_id, plan.provider, plan.model),
        below=boundary,
    )
    newest = log.newest(EventType.TURN_CLOSED)
    closed = newest.payload["number"] if newest is not None else 0
    values = values_for(
        session, _directive(said, reading), newest=closed, oldest=closed - RECENT_TURNS
    )
    wish = Wish(
        reason=PlanReason.START, boundary=boundary, values=values, next_sequence=next_sequence
    )
    return drafts_of(session, plan, planning, plan_run(planning, wish), run=run)


def drafts_of(
    session: SessionRow,
    plan: Plan,
    planning: Planning,
    planned: Planned,
    *,
    run: str | None,
    asked_by: str = "",
) -> list[EventDraft]:
    """The events of a plan: its new packet, if any, then the plan itself.

    Args:
        asked_by: who asks for the packet itself; empty where the plan needs it.
    """
    drafts = []
    if planned.packet is not None:
        made_for = MadeFor(
            planning.fixed.total,
            plan.model,
            plan.policy.label,
            asked_by or planned.record.reason.value,
        )
        drafts.append(
            compaction_draft(
                planned.packet,
                came_with=(),
                made_for=made_for,
                run=run,
                owner=session.principal,
                reason=PACKET_REASON,
            )
        )
    return [*drafts, planned.record.draft(run)]


def plan_in_force(log: SessionLog, run: RunRow) -> int | None:
    """The newest plan event of a run; None where it has none."""
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    return newest.sequence if newest is not None and newest.run == str(run.id) else None


def _directive(said: Sequence[EventDraft], reading: ReadingSpec | None) -> str:
    """The user's words, and what the runtime reads in them."""
    words = [
        part.text
        for draft in said[:1]
        for item in draft.decoded
        for part in item.parts
        if isinstance(part, TextPart)
    ]
    if reading is not None:
        words += [*reading.domains, *reading.entities]
    return "\n".join(words)
