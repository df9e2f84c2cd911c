"""One step, from a session's log to a built request: measure, allocate, select, build (design 6).

`prepare` decides and says which floors must rise; the caller writes that down; `build_step` then builds from recorded values
alone, today or in a year.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.arithmetic import Frame, frame
from ctxengine.engine.budget.yields import Allocation, Demand, Floors, allocate
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.derive import ENVELOPE_TOKENS
from ctxengine.engine.fresh import OPENING_TEXT, Runtime, memory_text, omission_text, runtime_text
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Opaque, Unit
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.request import (
    CheckpointInput,
    LeftOut,
    MemoryLines,
    ModelRequest,
    RecordedDigest,
    RenderMemo,
    RunInput,
)
from ctxengine.engine.wire.base import WireRenderer


class StepInputs(BaseModel):
    """Everything a request was built from, as the request row records it (design 4)."""

    model_config = ConfigDict(frozen=True)

    head: int
    """Ledger head when it was built."""
    content_head: int
    """Newest content event it saw."""
    boundary: int
    """The run's seed: history lies strictly below."""
    epoch: int
    engine: str
    builder: str
    renderer: str
    counter: str
    policy: str
    framing: str
    factor_millionths: int = 1_000_000
    now: str | None = None
    """Local time with offset, ISO 8601."""
    timezone: str = ""
    principal: str = ""
    scopes: tuple[str, ...] = ()
    surface: str = ""
    memory_event: int | None = None
    """The `context.memory.read` event whose lines this step carries."""
    knowledge_kept: int = 0
    recall_kept: int = 0
    cut: int = 0
    pointer: int = 0
    active_pointer: int = 0
    opaque: dict[str, str] = {}
    """Digest of each unit that held opaque reasoning, by its sequence."""
    opaque_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """A step's row 13 before the allocation, best first, as (id, text)."""

    knowledge: Sequence[tuple[str, str]] = ()
    recall: Sequence[tuple[str, str]] = ()
    corrections: Sequence[tuple[str, str]] = ()

    def kept(self, knowledge: int, recall: int) -> MemoryLines:
        """What stays after the allocation; corrections never yield."""
        return MemoryLines(self.knowledge[:knowledge], self.recall[:recall], self.corrections)


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session contributes to each of its requests."""

    plan: Plan
    nonce_key: bytes = field(repr=False)
    session_key: str
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A decision: the inputs to record, the floors to raise first, and what the build will read."""

    inputs: StepInputs
    allocation: Allocation
    run: RunInput


def floors_of(yields: Sequence[EventRecord], plan_total: int) -> Floors:
    """The floors in force for a plan of `plan_total` tokens.

    Floors only rise, and count only for plans whose total is no larger than that of the plan that set them: a larger model
    sees everything again (design 6).
    """
    cut = pointer = 0
    for event in yields:
        if event.payload["plan_total"] < plan_total:
            continue
        floor = event.payload["floor_sequence"]
        if event.payload["class"] == "history":
            cut = max(cut, floor)
        else:
            pointer = max(pointer, floor)
    return Floors(EventSeq(cut), EventSeq(pointer))


def fixed_frame(plan: Plan, factor_millionths: int) -> Frame:
    """The fixed part of a plan's budget under a calibration factor."""
    return frame(
        window=plan.window,
        max_output=plan.max_output,
        prefix_tokens=plan.prefix_tokens,
        policy=plan.policy,
        factor=factor_millionths / 1_000_000,
    )


def prepare(
    log: SessionLog,
    session: SessionFacts,
    wanted: StepInputs,
    *,
    memory: Memory,
    floors: Floors,
    counter: TokenCounter,
) -> Prepared:
    """Measure and allocate one step.

    Args:
        wanted: the inputs as far as they are known before the allocation; floors and kept lines are filled in here.

    Raises:
        BudgetExceeded: what never yields does not fit.
    """
    boundary, below = EventSeq(wanted.boundary), EventSeq(wanted.content_head + 1)
    active = log.units(boundary, below)
    runtime = _runtime(wanted, active)
    fixed = fixed_frame(session.plan, wanted.factor_millionths)
    corrections = _memory_tokens(session, wanted, memory.corrections, "correction", counter)
    demand = Demand(
        active=sum(unit.tokens for unit in active) - _input_tokens(active) + wanted.opaque_tokens,
        user_input=_input_tokens(active),
        runtime=counter.text(runtime_text(runtime)),
        corrections=corrections,
        knowledge=_line_tokens(memory.knowledge, counter),
        recall=_line_tokens(memory.recall, counter),
        omission=counter.text(omission_text(turns=99_999, units=99_999, through=99_999_999)),
    )
    allocation = allocate(
        fixed=fixed,
        policy=session.plan.policy,
        demand=demand,
        floors=floors,
        index=log,
        boundary=boundary,
        head=below,
    )
    inputs = wanted.model_copy(
        update={
            "cut": allocation.floors.cut,
            "pointer": allocation.floors.pointer,
            "active_pointer": allocation.active_pointer,
            "knowledge_kept": allocation.knowledge_kept,
            "recall_kept": allocation.recall_kept,
        }
    )
    tokens = {13: corrections, 14: demand.runtime, 10: wanted.opaque_tokens}
    run = _run_input(log, session, inputs, memory, allocation, active, runtime, counter, tokens, {})
    return Prepared(inputs, allocation, run)


def build_step(
    prepared_run: RunInput,
    session: SessionFacts,
    *,
    opaque: Mapping[EventSeq, Sequence[Opaque]],
    renderer: WireRenderer,
    memo: RenderMemo | None = None,
    options: BuildOptions = BuildOptions(),
) -> ModelRequest:
    """Build what was prepared; see `build.build` for the errors."""
    return build(
        prepared_run,
        CheckpointInput(opaque),
        session.plan,
        renderer=renderer,
        memo=memo,
        options=options,
    )


def rebuild(
    log: SessionLog,
    session: SessionFacts,
    inputs: StepInputs,
    *,
    memory: Memory,
    counter: TokenCounter,
    opaque: Mapping[EventSeq, Sequence[Opaque]],
    erased: Mapping[EventSeq, str],
    renderer: WireRenderer,
    options: BuildOptions = BuildOptions(),
) -> ModelRequest:
    """Build a recorded request again from its inputs and the log; no memo, no decision taken anew.

    Args:
        erased: recorded digests of units whose content was erased since.
    """
    boundary, below = EventSeq(inputs.boundary), EventSeq(inputs.content_head + 1)
    active = log.units(boundary, below)
    runtime = _runtime(inputs, active)
    allocation = _recorded_allocation(log, inputs, boundary)
    digests = {
        EventSeq(int(sequence)): RecordedDigest(digest, "opaque")
        for sequence, digest in inputs.opaque.items()
    }
    digests |= {sequence: RecordedDigest(digest, "erased") for sequence, digest in erased.items()}
    run = _run_input(
        log, session, inputs, memory, allocation, active, runtime, counter, {}, digests
    )
    return build_step(run, session, opaque=opaque, renderer=renderer, options=options)


def _recorded_allocation(log: SessionLog, inputs: StepInputs, boundary: EventSeq) -> Allocation:
    return Allocation(
        floors=Floors(EventSeq(inputs.cut), EventSeq(inputs.pointer)),
        active_pointer=EventSeq(inputs.active_pointer),
        knowledge_kept=inputs.knowledge_kept,
        recall_kept=inputs.recall_kept,
        room=0,
        never_yield=0,
        fresh=0,
        history=0,
        uncut=log.at(boundary).tokens,
        yields=(),
        raises=(),
    )


def _run_input(
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
) -> RunInput:
    boundary = EventSeq(inputs.boundary)
    history = log.units(EventSeq(max(inputs.cut, 1)), boundary)
    left_out = _left_out(log, EventSeq(min(inputs.cut, boundary)))
    row_tokens = dict(row_tokens)
    row_tokens[9] = counter.text(_row_nine_text(left_out, history, active))
    return RunInput(
        nonce_key=session.nonce_key,
        session_key=session.session_key,
        step=str(inputs.content_head),
        history=history,
        active=active,
        allocation=allocation,
        fixed=fixed_frame(session.plan, inputs.factor_millionths),
        left_out=left_out,
        runtime=runtime,
        memory=memory.kept(inputs.knowledge_kept, inputs.recall_kept),
        row_tokens={row: tokens for row, tokens in row_tokens.items() if tokens},
        source="counted" if counter.exact else "estimated",
        imported=session.imported,
        digests=digests,
    )


def _row_nine_text(left_out: LeftOut, history: Sequence[Unit], active: Sequence[Unit]) -> str:
    if left_out.units:
        return omission_text(turns=left_out.turns, units=left_out.units, through=left_out.through)
    first = next(iter((*history[:1], *active[:1])), None)
    if first is None or first.items[0].kind in {ItemKind.USER_MESSAGE, ItemKind.SUMMARY}:
        return ""
    return OPENING_TEXT


def _left_out(log: SessionLog, cut: EventSeq) -> LeftOut:
    if cut <= 0:
        return LeftOut()
    sums = log.at(cut)
    return LeftOut(sums.index, sums.turns, sums.tokens, EventSeq(cut - 1))


def _runtime(inputs: StepInputs, active: Sequence[Unit]) -> Runtime:
    last = active[-1].items[-1].kind if active else ItemKind.USER_MESSAGE
    return Runtime(
        now=datetime.fromisoformat(inputs.now) if inputs.now else None,
        timezone=inputs.timezone,
        principal=inputs.principal,
        scopes=inputs.scopes,
        surface=inputs.surface,
        continues=last is ItemKind.ASSISTANT_MESSAGE,
    )


def _input_tokens(active: Sequence[Unit]) -> int:
    total = 0
    for unit in reversed(active):
        if unit.items[0].kind is not ItemKind.USER_MESSAGE:
            break
        total += unit.tokens
    return total


def _line_tokens(lines: Sequence[tuple[str, str]], counter: TokenCounter) -> tuple[int, ...]:
    return tuple(
        counter.text(f"- {text}\n") + (0 if place else ENVELOPE_TOKENS)
        for place, (_, text) in enumerate(lines)
    )


def _memory_tokens(
    session: SessionFacts,
    inputs: StepInputs,
    lines: Sequence[tuple[str, str]],
    kind: str,
    counter: TokenCounter,
) -> int:
    if not lines:
        return 0
    text = memory_text(lines, kind=kind, nonce_key=session.nonce_key, step=str(inputs.content_head))
    return counter.text(text)


def inputs_of(data: dict[str, Any]) -> StepInputs:
    """Read recorded inputs back."""
    return StepInputs.model_validate(data)


__all__ = [
    "Memory",
    "Prepared",
    "SessionFacts",
    "StepInputs",
    "build_step",
    "fixed_frame",
    "floors_of",
    "inputs_of",
    "prepare",
    "rebuild",
]
