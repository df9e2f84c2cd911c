"""Reading and writing a session's working state (frozen-prefix spec, Working state)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.compaction.parrot import Run, Said, repeated_runs
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.errors import EngineError
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.standing import since_keyframe, working_state_of
from ctxengine.engine.trust.levels import lowest
from ctxengine.engine.working_state.block import cap_of
from ctxengine.engine.working_state.carry import CARRY_RULES, carried
from ctxengine.engine.working_state.limits import CAPS, settle
from ctxengine.engine.working_state.outcomes import (
    Asked,
    Outcome,
    asked_transition,
    outcome_transition,
)
from ctxengine.engine.working_state.render import block_text
from ctxengine.engine.working_state.resolve import Desk, SourceEvent, user_transition
from ctxengine.engine.working_state.state import EMPTY, WorkingState
from ctxengine.engine.working_state.transitions import (
    KEYFRAME_EVERY,
    KEYFRAME_WITHIN,
    Transition,
    TransitionBody,
    apply,
)
from ctxengine.engine.working_state.wishes import clean_text
from ctxengine.ledger.ahead import Read
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ChangeConstraints, ServiceError
from ctxengine.service.wiring import counter_of, log_of, plan_from

_NEXT_RUN = "(the next run)"
"""Stands for the run that will see the state when none is open."""


class StateWriter:
    """The state as it stands while one append is being put together; gives the events that change it."""

    def __init__(
        self,
        log: PostgresLog,
        session: SessionRow,
        run: str | None,
        *,
        any_act: bool,
        pending: Sequence[EventDraft] = (),
        first: int = 0,
    ) -> None:
        """Nothing is read before it is needed.

        Args:
            any_act: whether the session holds any act at all; without one there is no state to read.
            pending: drafts of the same append that come first, the first of them at sequence `first`.
        """
        self._log = log
        self._owner = session.principal
        self._run = run
        self._any_act = any_act
        self._pending = pending
        self._first = first
        self._state: WorkingState | None = None
        self._since = 0

    @property
    def state(self) -> WorkingState:
        """The state after everything pending."""
        if self._state is None:
            self._state = self._read()
        return self._state

    def _read(self) -> WorkingState:
        state = EMPTY
        if self._any_act:
            state, newest, _ = working_state_of(self._log)
            self._since = since_keyframe(self._log) if newest else 0
        for place, draft in enumerate(self._pending):
            if draft.type is EventType.WORKING_STATE_UPDATED and draft.body is not None:
                body = TransitionBody.model_validate_json(draft.body)
                state = apply(state, body.transition, sequence=self._first + place, run=draft.run)
                self._since = 0 if body.state else self._since + 1
        return state

    def draft(
        self, transition: Transition, sequence: int, *, causes: Sequence[int] = ()
    ) -> EventDraft:
        """The event of a transition that will stand at `sequence`; the writer's state moves on with it."""
        after = apply(self.state, transition, sequence=sequence, run=self._run)
        keyframe = self._since + 1 >= KEYFRAME_EVERY
        body = TransitionBody(transition=transition, state=after if keyframe else None)
        self._state = after
        self._since = 0 if keyframe else self._since + 1
        return EventDraft(
            type=EventType.WORKING_STATE_UPDATED,
            trust=transition.trust,
            run=self._run,
            payload={
                "writer": transition.writer,
                "changed": transition.changed,
                "entries": after.entries,
                "evicted": len(transition.evicted),
                "keyframe": keyframe,
                "causes": list(causes),
            },
            body=body.model_dump_json(exclude_defaults=True),
            owner=self._owner,
        )


def asks_working_state(log: PostgresLog) -> Read:
    """What a `StateWriter` asks first, to be read ahead."""
    return log.asks_latest({EventType.WORKING_STATE_UPDATED}, limit=KEYFRAME_WITHIN)


def observed(
    writer: StateWriter,
    *,
    asked: Sequence[Asked],
    outcomes: Sequence[Outcome],
    sequence: int,
    any_act: bool,
    repeated: Callable[[Sequence[str]], Sequence[Sequence[Run]]] = lambda texts: [
        [] for _ in texts
    ],
) -> list[EventDraft]:
    """What the runtime itself writes: questions that were asked, tasks and questions that came out.

    Args:
        repeated: what texts repeat of untrusted content; needed where something was asked.
    """
    drafts: list[EventDraft] = []
    if asked:
        opened = asked_transition(writer.state, asked, repeated)
        if opened is not None:
            drafts.append(writer.draft(opened, sequence))
    if outcomes and (any_act or asked):
        moved = outcome_transition(writer.state, outcomes)
        if moved is not None:
            drafts.append(writer.draft(moved, sequence + len(drafts)))
    return drafts


def desk_of(
    session: SessionRow,
    log: PostgresLog,
    plan: Plan,
    *,
    run: str | None,
    below: int,
    now: datetime,
) -> Desk:
    """What resolving a wish needs of the session; content is read only where the wish asks for it.

    Args:
        below: one past the newest event that counts.
    """

    def repeated(texts: Sequence[str]) -> list[list[Run]]:
        # Prose that is still shown may repeat evidence from before the history cut: all of it counts.
        ground = SessionTexts(log, EventSeq(below), EventSeq(1))
        said = [Said(EventSeq(below), text) for text in texts]
        return repeated_runs(said, ground.untrusted(EventSeq(below)), ground.brought)

    return Desk(
        counter=counter_of(session.provider, session.model),
        cap_tokens=cap_of(plan.policy),
        run=run,
        now=now.isoformat(),
        source_event=lambda number: _source_event(log, number, below),
        repeated=repeated,
        newest_input=_newest_input(log),
    )


def _source_event(log: PostgresLog, number: int, below: int) -> SourceEvent | None:
    if not 1 <= number < below:
        return None
    unit = log.unit_of_item(EventSeq(number))
    items = [item for item in unit.items if item.id.sequence == number] if unit else []
    if not items:
        return None
    return SourceEvent(lowest(item.trust for item in items), items[0].source)


def _newest_input(log: PostgresLog) -> int:
    found = log.latest({EventType.USER_MESSAGE, EventType.INPUT_RECEIVED}, limit=1)
    return found[0].sequence if found else 0


@dataclass(frozen=True, slots=True)
class WorkingStateView:
    """The state as REST and pages show it."""

    state: WorkingState
    tokens: int
    cap_tokens: int
    event: int | None
    """Newest transition; None when nothing was ever written."""
    erased: bool
    """Whether texts it rests on were erased."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.state.model_dump(mode="json", exclude={"made"}),
            "event": self.event,
            "tokens": self.tokens,
            "cap_tokens": self.cap_tokens,
            "erased": self.erased,
            "caps": {cap.field: {"entries": cap.entries, "at_cap": cap.at_cap} for cap in CAPS},
            "carry": {rule.field: {"carry": rule.carry, "rule": rule.rule} for rule in CARRY_RULES},
        }


def working_state_view(*, actor: Actor, session_id: UUID) -> WorkingStateView:
    """A session's working state now.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    plan = plan_from(log, plan_row_of(session))
    state, event, erased = working_state_of(log)
    cap = cap_of(plan.policy)
    counter = counter_of(plan.provider, plan.model)
    with refusing():
        # As the next request will show it: what belonged to a run that is over is gone.
        seen = carried(state, _open_run(session) or _NEXT_RUN)
        shown = settle(seen.model_copy(update={"run": state.run}), counter, cap).state
    return WorkingStateView(shown, counter.text(block_text(shown)), cap, event, erased)


def change_constraints(
    *, actor: Actor, session_id: UUID, spec: ChangeConstraints
) -> WorkingStateView:
    """Lift or add constraints by hand: the user's right alone (frozen-prefix spec, Working state).

    Raises:
        ServiceError: 403 `principal_required` when a runtime does not name the session's own principal; 422 for a constraint
            that does not exist or does not fit; 409 `session_ended`.
    """
    session = session_of(actor, session_id)
    by_key = actor.label.startswith("key:") and "operate" not in actor.scopes
    if by_key and (not session.principal or spec.principal != session.principal):
        raise ServiceError(
            "principal_required",
            403,
            "Only the user changes constraints by hand: name the session's own principal, or use a key with the scope "
            "`operate`.",
        )
    redo_once(lambda: _change(actor, session, spec))
    return working_state_view(actor=actor, session_id=session_id)


def _change(actor: Actor, session: SessionRow, spec: ChangeConstraints) -> None:
    log, now = log_of(session), utc_now()
    with refusing():
        head = log.head()
        still_open_session(session)
        plan = plan_from(log, plan_row_of(session))
        run = _open_run(session)
        desk = desk_of(session, log, plan, run=run, below=head.sequence + 1, now=now)
        writer = StateWriter(log, session, run, any_act=head.act_sequence > 0)
        try:
            transition = user_transition(
                writer.state,
                add=[clean_text(text, "add_constraints") for text in spec.add_constraints],
                lift=spec.remove_constraints,
                desk=desk,
            )
        except EngineError as error:
            raise ServiceError(error.code, 422, error.message, **error.numbers) from error
        if not transition.changed:
            return
        lifted = {c.id: c.text for c in writer.state.constraints if c.id in transition.lifted}
        draft = writer.draft(transition, head.sequence + 1)
        with transaction.atomic():
            log.append([draft], expected=head.sequence, at=now, key=actor.idempotency_key)
            record_audit(
                actor=actor,
                action="constraints.changed",
                target=str(session.id),
                reason=spec.note,
                before={"constraints": sorted(lifted)},
                after={"added": len(transition.constraints), "lifted": list(transition.lifted)},
            )


def _open_run(session: SessionRow) -> str | None:
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    found = rows.exclude(state="ended").values_list("id", flat=True).first()
    return str(found) if found else None


__all__ = [
    "StateWriter",
    "WorkingStateView",
    "change_constraints",
    "desk_of",
    "observed",
    "working_state_view",
]
