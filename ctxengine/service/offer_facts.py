"""Offering surviving facts when a session ends (frozen-prefix spec, Established facts feed formation)."""

from __future__ import annotations

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.standing import working_state_of
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.working_state.offers import AUTHORITY, eligible_facts
from ctxengine.engine.working_state.transitions import Transition, TransitionBody
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Body, SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.child_seed import works_for_a_run
from ctxengine.service.wiring import plan_from

_USER_EVENTS = frozenset({EventType.USER_MESSAGE, EventType.INPUT_RECEIVED})


def facts_offer(session: SessionRow, log: PostgresLog) -> EventDraft | None:
    """The event that offers facts; None where the policy wants none or none survived.

    The words of a child session's user are its parent's, so it offers nothing.
    """
    if not session.principal or works_for_a_run(session) or session.import_sha256:
        return None
    if not plan_from(log, plan_row_of(session)).policy.offer_facts:
        return None
    state, newest, _ = working_state_of(log)
    if newest is None or not state.facts:
        return None
    offer = eligible_facts(state.facts, lambda sequence: _is_own(session, log, sequence))
    if not offer.facts:
        return None
    body = TransitionBody(transition=Transition(writer="runtime", facts=offer.facts))
    return EventDraft(
        type=EventType.FACTS_OFFERED,
        trust=lowest([Trust.USER, *(fact.trust for fact in offer.facts)]),
        payload={
            "facts": len(offer.facts),
            "withheld": offer.withheld,
            "principal": session.principal,
            "authority": AUTHORITY,
        },
        body=body.model_dump_json(exclude_defaults=True),
        owner=session.principal,
    )


def _is_own(session: SessionRow, log: PostgresLog, sequence: int) -> bool:
    """Whether an event is a message of the owning principal, still there and trusted as the user's."""
    found = log.events(after=EventSeq(sequence - 1), limit=1) if sequence > 0 else ()
    event = found[0] if found and found[0].sequence == sequence else None
    if event is None or event.body is None:
        return False
    if event.type not in _USER_EVENTS or event.trust is not Trust.USER:
        return False
    return Body.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        id=event.body.id,
        owner=session.principal,
        erased_at__isnull=True,
    ).exists()
