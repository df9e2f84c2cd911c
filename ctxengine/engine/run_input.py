"""A step's decision and the log as the one value that `build()` reads (design 4 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ctxengine.engine.budget.arithmetic import Frame, frame
from ctxengine.engine.budget.yields import Allocation
from ctxengine.engine.compaction.acts import Marks, tiles_of
from ctxengine.engine.compaction.marks import PROMOTED_TEXT, pinned_below, present
from ctxengine.engine.compaction.packet import Packet, Tile
from ctxengine.engine.fresh import Runtime
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Memory, SessionFacts, StepInputs
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.legs.leg import Leg, sized_for, smallest
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.request import LeftOut, RecordedDigest, RunInput
from ctxengine.engine.row_nine import row_nine_text
from ctxengine.engine.standing import Standing


def fixed_frame(plan: Plan, factor_millionths: int) -> Frame:
    """The fixed part of a plan's budget under a calibration factor."""
    return frame(
        window=plan.window,
        max_output=plan.max_output,
        prefix_tokens=plan.prefix_tokens,
        policy=plan.policy,
        factor=factor_millionths / 1_000_000,
    )


def shared_frame(plan: Plan, factor_millionths: int, legs: Sequence[Leg]) -> Frame:
    """The fixed part of the budget that a plan and the legs of a step leave together."""
    own = fixed_frame(plan, factor_millionths)
    return smallest(own, legs, plan.policy) if legs else own


def run_input(
    log: SessionLog,
    session: SessionFacts,
    inputs: StepInputs,
    memory: Memory,
    allocation: Allocation,
    active: Sequence[Unit],
    runtime: Runtime,
    counter: TokenCounter,
    row_tokens: dict[int, int],
    digests: Mapping[EventSeq, RecordedDigest],
    standing: Standing,
    projection: Projection | None = None,
) -> RunInput:
    """What `build()` reads, from a decision and the log; the same for a step taken now and for one that was recorded."""
    boundary = EventSeq(inputs.boundary)
    cut = EventSeq(min(inputs.cut, boundary))
    marks = standing.marks
    tiles: Sequence[Tile] = ()
    row_tokens = dict(row_tokens)
    history: Sequence[Unit]
    pinned: Sequence[Unit]
    if projection is not None:
        history, pinned = projection.history, projection.promoted
        left_out = LeftOut(
            projection.units_left_out,
            projection.turns_left_out,
            projection.tokens_left_out,
            EventSeq(cut - 1) if projection.units_left_out else EventSeq(0),
        )
        row_tokens[9] = projection.row_nine_tokens
    else:
        history = present(log.units(EventSeq(max(inputs.cut, 1)), boundary), marks, counter)
        left_out = _left_out(log, cut)
        tiles = tiles_of(standing.packets, cut, log) if standing.packets else ()
        if not any(isinstance(tile, Packet) for tile in tiles):
            tiles = ()
        row_tokens[9] = counter.text(
            row_nine_text(left_out, tiles, history, active, session.nonce_key)
        )
        pinned = pinned_units(log, pinned_below(marks, cut), marks, counter)
    if projection is not None and projection.kept:
        lines = len(projection.kept) * counter.text(projection.promoted_line)
        row_tokens[10] = row_tokens.get(10, 0) + lines
    if pinned:
        line = PROMOTED_TEXT if projection is None else projection.promoted_line
        row_tokens[10] = row_tokens.get(10, 0) + counter.text(line)
    return RunInput(
        nonce_key=session.nonce_key,
        session_key=session.session_key,
        step=str(inputs.content_head),
        history=history,
        active=active,
        allocation=allocation,
        fixed=shared_frame(session.plan, inputs.factor_millionths, inputs.legs),
        left_out=left_out,
        runtime=runtime,
        memory=memory.kept(inputs.knowledge_kept, inputs.recall_kept, inputs.recall_window),
        row_tokens={row: tokens for row, tokens in row_tokens.items() if tokens},
        source="counted" if counter.exact else "estimated",
        sized_for=sized_for(fixed_frame(session.plan, inputs.factor_millionths), inputs.legs)
        if inputs.legs
        else "",
        imported=session.imported,
        history_ttl=inputs.history_ttl,
        digests=digests,
        tiles=tiles,
        pinned=pinned,
        projection=projection,
        marks=marks,
        state=standing.state,
    )


def _left_out(log: SessionLog, cut: EventSeq) -> LeftOut:
    if cut <= 0:
        return LeftOut()
    sums = log.at(cut)
    return LeftOut(sums.index, sums.turns, sums.tokens, EventSeq(cut - 1))


def runtime_of(inputs: StepInputs, active: Sequence[Unit]) -> Runtime:
    """Row 14 as the inputs have it."""
    last = active[-1].items[-1].kind if active else ItemKind.USER_MESSAGE
    return Runtime(
        now=datetime.fromisoformat(inputs.now) if inputs.now else None,
        timezone=inputs.timezone,
        principal=inputs.principal,
        scopes=inputs.scopes,
        scopes_shown=inputs.scopes_shown,
        surface=inputs.surface,
        continues=last is ItemKind.ASSISTANT_MESSAGE,
    )


def pinned_units(
    log: SessionLog, starts: Sequence[EventSeq], marks: Marks, counter: TokenCounter
) -> list[Unit]:
    """The units that start at these places, as an operator's acts show them."""
    units = [unit for start in starts for unit in log.units(start, EventSeq(start + 1))]
    return list(present(units, marks, counter))
