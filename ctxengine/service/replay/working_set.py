"""The `working_set` engine in the lab: turns close with cards, runs are planned, closed history gives way under pressure.

The same pure functions as in the service; what it reads from Postgres, the index and the profile, is in memory here, and the
profile is the model's metadata, so that every machine finds the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxengine.engine.capacity.profile import metadata_profile
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_plan import Planned, Planning, Wish, plan_run
from ctxengine.engine.history.working_set_pressure import (
    recorded_values,
    same_forms,
    smaller_rooms,
)
from ctxengine.engine.history.working_set_record import PlannedSet, PlanReason, planned_at
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared, StepInputs
from ctxengine.engine.items import ItemKind, TextPart
from ctxengine.engine.ports import SumColumn
from ctxengine.engine.run_input import fixed_frame
from ctxengine.engine.standing import Standing, history_acts, working_state_of
from ctxengine.engine.turns.closed import turns_not_closed
from ctxengine.engine.turns.closing import closing_of
from ctxengine.engine.turns.own_words import own_words
from ctxengine.engine.turns.postings import MemoryPostings
from ctxengine.engine.turns.presentation import presentations_of
from ctxengine.engine.turns.relevance import RECENT_TURNS, values_of
from ctxengine.ledger.models import SessionRow
from ctxengine.service.compactors import compactor_of
from ctxengine.service.turns.close_turns import EVIDENCE_TOKENS
from ctxengine.service.working_set.plan_run import drafts_of

if TYPE_CHECKING:
    from ctxengine.service.replay.session import LabSession


class WorkingSetDriver:
    """Plans each run of a session."""

    def __init__(self) -> None:
        """No turn is closed yet."""
        self._postings = MemoryPostings()

    def run_ended(self, lab: LabSession, run: str) -> None:
        """Close every turn that is over: its card, its event, its place in the index."""
        log = lab.log
        below = EventSeq(log.head().sequence + 1)
        newest = log.newest(EventType.TURN_CLOSED)
        turns = turns_not_closed(log, newest, below=below)
        if not turns:
            return
        before = max(0, log.at(turns[0].first).tokens - EVIDENCE_TOKENS)
        first = log.first(SumColumn.TOKENS, before, turns[0].first).sequence
        words = own_words(turns, SessionTexts(log, below, first))
        ends = [*(following.first for following in turns[1:]), below]
        for turn, own, end in zip(turns, words, ends, strict=True):
            closing = closing_of(
                turn,
                outcome="completed",
                counter=lab.counter,
                words=own,
                presentations=presentations_of(log, turn.first, end - 1),
            )
            self._postings.add(closing.terms)
            lab.append([closing.draft])

    def run_opened(self, lab: LabSession, run: str) -> None:
        """Plan the run: which closed turn stands in which form."""
        log, boundary = lab.log, lab.boundary
        newest = log.newest(EventType.TURN_CLOSED)
        closed = newest.payload["number"] if newest is not None else 0
        values = values_of(
            _directive(lab), newest=closed, postings=self._postings, oldest=closed - RECENT_TURNS
        )
        wish = Wish(
            reason=PlanReason.START,
            boundary=boundary,
            values=values,
            next_sequence=log.head().sequence + 1,
        )
        self._write(lab, plan_run(_planning(lab, below=boundary), wish), run)

    def before_step(self, lab: LabSession, run: str, wanted: StepInputs) -> bool:
        """Nothing is due before pressure is seen."""
        return False

    def decision(self, lab: LabSession, run: str) -> int | None:
        """The newest plan of the run."""
        newest = lab.log.newest(EventType.WORKING_SET_PLANNED)
        return newest.sequence if newest is not None and newest.run == run else None

    def relieve(
        self,
        lab: LabSession,
        run: str,
        wanted: StepInputs,
        projection: Projection | None,
        pressed: Prepared | BudgetExceeded,
    ) -> bool:
        """Shrink closed history where the open turn no longer fits beside it."""
        decided = self.decision(lab, run)
        if decided is None or projection is None:
            return False
        record = planned_at(lab.log, decided)
        for most in smaller_rooms(pressed, projection, record.room.tokens):
            smaller = self._replanned(lab, record, wanted, most)
            if not same_forms(smaller.record, record):
                self._write(lab, smaller, run)
                return True
        return False

    def _replanned(
        self, lab: LabSession, record: PlannedSet, wanted: StepInputs, most: int
    ) -> Planned:
        head = lab.log.head()
        wish = Wish(
            reason=PlanReason.PRESSURE,
            boundary=lab.boundary,
            values=recorded_values(record),
            next_sequence=head.sequence + 1,
            open_turn=head.tokens - lab.log.at(lab.boundary).tokens,
            most=most,
            keep=tuple(turn.number for turn in record.promoted),
        )
        planning = _planning(
            lab, below=head.content_sequence + 1, factor_millionths=wanted.factor_millionths
        )
        return plan_run(planning, wish)

    def _write(self, lab: LabSession, planned: Planned, run: str) -> None:
        planning = _planning(lab, below=lab.boundary)
        lab.append(drafts_of(SessionRow(principal=""), lab.plan, planning, planned, run=run))


def _planning(lab: LabSession, *, below: int, factor_millionths: int = 1_000_000) -> Planning:
    """Everything a plan rests on but the directive."""
    plan, acts = lab.plan, history_acts(lab.log)
    state, _, _ = working_state_of(lab.log)
    standing = Standing(state=state, marks=acts.marks, undone=acts.undone)
    compactor = compactor_of(lab.log, plan, standing, below=below)
    return Planning(
        log=lab.log,
        counter=lab.counter,
        policy=plan.policy,
        fixed=fixed_frame(plan, factor_millionths),
        profile=metadata_profile(
            provider=plan.provider,
            model=plan.model,
            declared_window=plan.window,
            max_output=plan.max_output,
        ),
        skills=bool(plan.skills),
        marks=acts.marks,
        undone=acts.undone,
        surroundings=compactor.surroundings if compactor is not None else None,
    )


def _directive(lab: LabSession) -> str:
    """The words of the run's own message."""
    units = lab.log.units(lab.boundary, EventSeq(lab.boundary + 1))
    return "\n".join(
        part.text
        for unit in units
        for item in unit.items
        if item.kind is ItemKind.USER_MESSAGE
        for part in item.parts
        if isinstance(part, TextPart)
    )
