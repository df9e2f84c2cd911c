"""A session as a summary needs it, read at one head, and whether that still holds later (design 7.9: compare-and-set)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.budget.yields import Floors
from ctxengine.engine.compaction.compactor import Compactor
from ctxengine.engine.compaction.packet import CompactionResult
from ctxengine.engine.compaction.summarise import read_source
from ctxengine.engine.log.records import Head
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import Summariser
from ctxengine.engine.standing import Standing, standing_of
from ctxengine.engine.step import fixed_frame, floors_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, still_open_session
from ctxengine.service.compactors import compactor_of
from ctxengine.service.summaries.wanted import WantedSummary
from ctxengine.service.wiring import log_of, plan_from


class SessionState(NamedTuple):
    """One look at a session."""

    log: PostgresLog
    head: Head
    epoch: int
    plan: Plan
    plan_total: int
    standing: Standing
    floors: Floors

    def compactor(
        self, summariser: Summariser | None = None, *, content_head: int | None = None
    ) -> Compactor | None:
        """The compactor of the session as it stands here; it reads the log up to its own head, or to another one."""
        below = (content_head or self.head.content_sequence) + 1
        return compactor_of(self.log, self.plan, self.standing, below=below, summariser=summariser)

    def serves(self, wanted: WantedSummary) -> bool:
        """Whether the pass that asked for a summary would still be made this way."""
        return self.floors == wanted.floors and self.epoch == wanted.epoch

    def same_ground(self, other: SessionState) -> bool:
        """Whether all that a summary stands beside is as it was: plan, floors, summaries, what was undone."""
        mine, theirs = self.standing, other.standing
        return (
            (self.epoch, self.floors) == (other.epoch, other.floors)
            and mine.packets == theirs.packets
            and set(mine.undone) == set(theirs.undone)
        )

    def still_gives(
        self, wanted: WantedSummary, result: CompactionResult, made_at: SessionState
    ) -> bool:
        """Whether the range reads as it did when the summary was made of it; what was said since plays no part."""
        compactor = self.compactor(content_head=made_at.head.content_sequence)
        if compactor is None:
            return False
        source = read_source(
            self.log, wanted.range, compactor.surroundings, excluded=compactor.excluded
        )
        return source.digest == result.source_sha256


def look(session: SessionRow, wanted: WantedSummary) -> SessionState:
    """The session now.

    Raises:
        ServiceError: 409 `session_ended`.
    """
    log = log_of(session)
    head = log.head()
    still_open_session(session)
    plan = plan_from(log, plan_row_of(session))
    total = fixed_frame(plan, wanted.factor_millionths).total
    standing = standing_of(log, plan_total=total)
    return SessionState(
        log,
        head,
        session.epoch,
        plan,
        total,
        standing,
        floors_of(log.newest_yields(), total, standing.undone),
    )
