"""`POST sessions/{id}/reset`: set everything so far aside and go on from a handoff (capacity spec 4).

The rescue for a model with no usable horizon. Nothing is lost: turns behind the reset are neither shown nor planned, and
`recall` still reaches each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.compaction.summarise import LedgerSummariser, Range, read_source, summarise
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.handoff import newest_handoff
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Head
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.clock import utc_now
from ctxengine.service.factor import factor_in_force
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ResetSession, ServiceError
from ctxengine.service.turns.close_turns import close_missing_turns
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import log_of
from ctxengine.service.working_set.ground import planning_of, profile_in_force
from ctxengine.service.working_set.plan_run import ENGINE

LEAST_HANDOFF_TOKENS = 200


@dataclass(frozen=True, slots=True)
class SessionReset:
    """Answer of reset_session."""

    event: int
    turns: int
    """Turns set aside, those of earlier resets included."""
    through: int
    tokens: int
    """What the handoff takes (tokens, raw count)."""
    by: str
    """`runtime` for a text that was given, `ledger` for one taken from the session."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "event": self.event,
            "turns": self.turns,
            "through": self.through,
            "tokens": self.tokens,
            "by": self.by,
        }


def reset_session(*, actor: Actor, session_id: UUID, spec: ResetSession) -> SessionReset:
    """Put a handoff in the place of all turns so far; the next run starts from it.

    Raises:
        ServiceError: 422 `reset_unavailable` for another engine than `working_set`, `too_long` for a handoff over its budget,
            `empty_text`; 409 `run_open`, `session_ended`, `nothing_to_reset`, `stale_head`; 404.
    """
    session = session_of(actor, session_id)
    if session.engine != ENGINE:
        raise ServiceError(
            "reset_unavailable",
            422,
            f"A session of the engine {session.engine} is not reset; only those of {ENGINE} are. Compact it, or open another.",
        )
    return redo_once(lambda: _reset(actor, session, spec))


def _reset(actor: Actor, session: SessionRow, spec: ResetSession) -> SessionReset:
    log = log_of(session)
    close_missing_turns(session, log)
    with refusing():
        head = log.head()
        still_open_session(session)
        if open_run(session) is not None:
            raise ServiceError("run_open", 409, "A run is open; end it before the reset.")
        turns = _turns(log)
        text, tokens = _handoff(session, log, head, spec)
        done = SessionReset(
            event=head.sequence + 1,
            turns=turns,
            through=head.content_sequence,
            tokens=tokens,
            by="ledger" if spec.handoff is None else "runtime",
        )
        draft = EventDraft(
            type=EventType.SESSION_RESET,
            trust=Trust.MODEL,
            payload={
                "turns": done.turns,
                "through": done.through,
                "tokens": done.tokens,
                "counter": session.counter,
                "note": model_view(spec.note),
                "by": done.by,
            },
            body=text,
            owner=session.principal,
        )
        with transaction.atomic():
            log.append([draft], expected=head.sequence, at=utc_now(), key=actor.idempotency_key)
            record_audit(
                actor=actor,
                action="session.reset",
                target=str(session.id),
                reason=spec.note,
                after={"turns": done.turns, "through": done.through, "by": done.by},
            )
    return done


def _turns(log: PostgresLog) -> int:
    """Turns closed so far, where there are any that no reset has set aside yet."""
    newest, before = log.newest(EventType.TURN_CLOSED), newest_handoff(log)
    turns = int(newest.payload["number"]) if newest is not None else 0
    if turns <= (before.turns if before is not None else 0):
        raise ServiceError(
            "nothing_to_reset", 409, "No turn has closed since the session began or was reset."
        )
    return turns


def _handoff(
    session: SessionRow, log: PostgresLog, head: Head, spec: ResetSession
) -> tuple[str, int]:
    """The handoff's text and what it costs (tokens): the one given, else one taken from the whole session."""
    plan = plan_of_session(session, log)
    profile, _ = profile_in_force(session, plan)
    factor = factor_in_force(session.tenant_id, plan.provider, plan.model)
    planning = planning_of(
        log,
        plan,
        profile,
        profile_id=None,
        factor_millionths=factor,
        below=head.content_sequence + 1,
    )
    usable = min(planning.fixed.usable, profile.usable * 1_000_000 // factor)
    behind = max(0, usable - plan.prefix_tokens)
    allowed = max(LEAST_HANDOFF_TOKENS, min(plan.policy.summary_tokens, behind // 4))
    if spec.handoff is not None:
        text = spec.handoff.strip()
        tokens = planning.counter.text(text)
        if not text:
            raise ServiceError("empty_text", 422, "The handoff is empty; leave it out instead.")
        if tokens > allowed:
            raise ServiceError(
                "too_long",
                422,
                f"The handoff may take {allowed:,} tokens on this model, and takes {tokens:,}. Say it shorter.",
            )
        return text, tokens
    if planning.surroundings is None:
        raise ServiceError(
            "compaction_off", 409, "The policy wants no summaries; send a `handoff` of your own."
        )
    source = read_source(
        log,
        Range(EventSeq(1), EventSeq(head.content_sequence + 1), max(head.tokens, allowed * 4)),
        planning.surroundings,
        excluded=frozenset(planning.marks.excluded),
    )
    made = summarise(
        source,
        planning.surroundings,
        summariser=LedgerSummariser(planning.counter),
        counter=planning.counter,
        budget_tokens=allowed,
    )
    if isinstance(made, Refusal):
        raise ServiceError(made.value, 409, "No handoff can be made of the session; send your own.")
    text = redact(made.summary).text
    return text, planning.counter.text(text)
