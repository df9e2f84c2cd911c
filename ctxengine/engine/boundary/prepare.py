"""Before a request: how large it would be, and which compaction it needs first (boundary spec, Compaction policy)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ctxengine.engine.boundary.capability import compacts_natively
from ctxengine.engine.boundary.checkpoint import Checkpoint, contract_of, in_force, window_items
from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.settled import settled
from ctxengine.engine.boundary.work import Work
from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.history.boundary import projected
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import SessionFacts
from ctxengine.engine.items import Unit
from ctxengine.engine.legs.leg import Leg
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.run_input import shared_frame
from ctxengine.engine.wire.base import WireRenderer

NEAR: Final = 0.9
"""Share of what is usable from which on a request under a native window is counted exactly, every time."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A session before one request."""

    log: SessionLog
    session: SessionFacts
    counter: TokenCounter
    marks: Marks
    below: EventSeq
    """Where the open run begins."""
    checkpoint: Checkpoint | None
    text: str | None
    """The checkpoint's body as it is stored."""
    projection: Projection
    active: tuple[Unit, ...]
    opaque_tokens: int
    fixed: Frame

    @property
    def tokens(self) -> int:
        """What the request takes before its fresh rows: tools, instructions and options are in it (tokens, our count)."""
        return (
            self.fixed.prefix
            + self.projection.tokens
            + self.projection.row_nine_tokens
            + sum(unit.tokens for unit in self.active)
            + self.opaque_tokens
        )

    @property
    def trigger(self) -> int:
        """Tokens from which on settled turns are compacted first."""
        return int(self.fixed.usable * self.session.plan.policy.summarize_trigger)

    @property
    def native(self) -> bool:
        """Whether the provider advertises native compaction for the session's model."""
        plan = self.session.plan
        return compacts_natively(plan.provider, plan.model)

    @property
    def due(self) -> bool:
        """Whether a compaction must come first. A provider that compacts by itself is not asked while all fits."""
        if self.session.plan.policy.native_contract == "inline" and self.native:
            return self.tokens > self.fixed.usable
        return self.tokens >= self.trigger


def situation_of(
    log: SessionLog,
    session: SessionFacts,
    *,
    counter: TokenCounter,
    marks: Marks,
    below: EventSeq,
    content_head: EventSeq,
    factor_millionths: int,
    opaque_tokens: int = 0,
    standing: tuple[Checkpoint, str] | None = None,
    legs: Sequence[Leg] = (),
) -> Situation:
    """Look at a session.

    Args:
        below: where the open run begins.
        content_head: newest content event.
        standing: the checkpoint in force and its body, where the log does not hold them.
        legs: further models that the request is sized for.
    """
    if standing is not None:
        checkpoint: Checkpoint | None = standing[0]
        text: str | None = standing[1]
    else:
        checkpoint = in_force(log, contract=contract_of(session.plan), marks=marks, below=below)
        text = log.body(checkpoint.body) if checkpoint and checkpoint.body else None
    projection = projected(
        log,
        session,
        boundary=below,
        marks=marks,
        counter=counter,
        checkpoint=checkpoint,
        text=text,
    )
    active = tuple(present(log.units(below, EventSeq(content_head + 1)), marks, counter))
    fixed = shared_frame(session.plan, factor_millionths, legs)
    return Situation(
        log,
        session,
        counter,
        marks,
        below,
        checkpoint,
        text,
        projection,
        active,
        opaque_tokens,
        fixed,
    )


def work_of(
    situation: Situation,
    renderer: WireRenderer,
    *,
    keep_turns: int | None = None,
    through: int | None = None,
) -> Work | None:
    """The compaction that a session needs; None where nothing of it is settled.

    Args:
        keep_turns: most recent turns that stay whole; None: as the policy has it.
        through: last event that may be covered, where somebody said so.

    Raises:
        CompactionError: `window_unreadable` where the window it would rest on cannot be opened.
    """
    session, log = situation.session, situation.log
    policy, base = session.plan.policy, situation.checkpoint
    start = base.cut if base else EventSeq(1)
    units = present(log.units(start, situation.below), situation.marks, situation.counter)
    covered = settled(
        log,
        units,
        base=base,
        marks=situation.marks,
        below=situation.below,
        keep_turns=policy.retained_turns if keep_turns is None else keep_turns,
        keep_tokens=int(situation.fixed.usable * policy.low_water),
        through=through,
    )
    if covered is None:
        return None
    window: tuple[str, ...] = ()
    note = ""
    text = situation.text
    if base is not None and base.kind == "native":
        opened = session.unseal(text) if text is not None else None
        if opened is None:
            raise CompactionError("window_unreadable")
        window = window_items(opened)
    elif base is not None:
        note = text or ""
    retained = [
        unit
        for sequence in covered.shown
        for unit in present(
            log.units(EventSeq(sequence), EventSeq(sequence + 1)),
            situation.marks,
            situation.counter,
        )
    ]
    return Work(
        session=session,
        counter=situation.counter,
        renderer=renderer,
        covered=covered,
        tail=tuple(unit for unit in units if unit.sequence >= covered.cut),
        active=situation.active,
        retained=tuple(retained),
        window=window,
        note=note,
        excluded=situation.marks.excluded,
        usable=situation.fixed.usable,
        available=situation.fixed.total - situation.fixed.reserve,
        factor=situation.fixed.factor,
    )
