"""One step, from a session's log to a built request: measure, allocate, select, build (design 6).

`prepare` decides and says which floors must rise; the caller writes that down; `build_step` then builds from recorded values
alone, today or in a year.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.budget.yields import Allocation, Demand, Floors, allocate
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.compaction.acts import Marks, tiles_of
from ctxengine.engine.compaction.compactor import Compactor, Outcome
from ctxengine.engine.compaction.marks import PROMOTED_TEXT, pinned_below, present
from ctxengine.engine.compaction.net_cost import net_cost
from ctxengine.engine.compaction.packet import Packet
from ctxengine.engine.compaction.summarise import Range
from ctxengine.engine.fresh import memory_text, omission_text, runtime_text
from ctxengine.engine.fresh_fit import line_tokens, recall_window, scopes_shown
from ctxengine.engine.fresh_parts import Offer, adding, against
from ctxengine.engine.history.projection import Projection, SentBlock
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Memory, Prepared, SessionFacts, StepInputs, inputs_of
from ctxengine.engine.items import ItemKind, Opaque, Unit
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.skills import LoadedSkill, loaded_tokens
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.request import (
    CheckpointInput,
    LeftOut,
    ModelRequest,
    RunInput,
)
from ctxengine.engine.row_nine import row_nine_text
from ctxengine.engine.run_input import (
    fixed_frame,
    pinned_units,
    run_input,
    runtime_of,
    shared_frame,
)
from ctxengine.engine.server_calls import server_call_open
from ctxengine.engine.standing import NOTHING_STANDING, Standing
from ctxengine.engine.tail import NO_TAIL, Tail, thread_text, tools_text
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.engine.working_state.block import shown_state, state_tokens


def floors_of(
    yields: Sequence[EventRecord], plan_total: int, undone: Collection[int] = frozenset()
) -> Floors:
    """The floors in force for a plan of `plan_total` tokens.

    A floor never falls. It binds the plan that set it and every plan of at most that size, so a model with more room starts
    from the whole session (design 6). Those that came with an undone compaction do not count.
    """
    cut = pointer = 0
    for event in yields:
        if event.payload["plan_total"] < plan_total or event.sequence in undone:
            continue
        floor = event.payload["floor_sequence"]
        if event.payload["class"] == "history":
            cut = max(cut, floor)
        else:
            pointer = max(pointer, floor)
    return Floors(EventSeq(cut), EventSeq(pointer))


def prepare(
    log: SessionLog,
    session: SessionFacts,
    wanted: StepInputs,
    *,
    memory: Memory,
    floors: Floors,
    counter: TokenCounter,
    skills: Sequence[LoadedSkill] = (),
    standing: Standing = NOTHING_STANDING,
    compactor: Compactor | None = None,
    sent: Sequence[SentBlock] = (),
    projection: Projection | None = None,
    tail: Tail = NO_TAIL,
) -> Prepared:
    """Measure and allocate one step.

    Args:
        wanted: the inputs as far as they are known before the allocation; floors and kept lines are filled in here.
        skills: skills loaded before this step, in load order.
        standing: working state, summaries and acts as they stand.
        compactor: summarises what a cut drops; None leaves the bare cut with its line.
        sent: fresh rows that stay where earlier steps of the run sent them.
        projection: what the engine shows of everything before the run; None lets the allocation cut history (`suffix`).
        tail: what the turn's directive is read as, where the engine shows it.

    Raises:
        BudgetExceeded: what never yields does not fit; the projection counts among it.
    """
    boundary, below = EventSeq(wanted.boundary), EventSeq(wanted.content_head + 1)
    marks = standing.marks
    active = present(log.units(boundary, below), marks, counter)
    state = shown_state(standing.state, active, counter, session.plan.policy)
    wanted = wanted.model_copy(
        update={
            "scopes_shown": scopes_shown(runtime_of(wanted, active), session.plan.policy, counter)
        }
    )
    runtime = runtime_of(wanted, active)
    fixed = shared_frame(session.plan, wanted.factor_millionths, wanted.legs)
    offer = Offer(skills, state, memory, runtime, tail)
    if session.plan.fresh_rows == "appended":
        kept = projection.blocks if projection is not None else ()
        offer = against(offer, sent, session.nonce_key, kept=kept)
    api = PROVIDER_API.get(session.plan.provider, "")
    held = session.plan.policy.enforce_caps and server_call_open(active, api)
    if held:
        offer = offer.held
    new = offer.new
    corrections = _memory_tokens(session, wanted, new.memory.corrections, "correction", counter)
    demand = Demand(
        active=sum(unit.tokens for unit in active)
        - _input_tokens(active)
        + wanted.opaque_tokens
        + sum(block.tokens for block in sent),
        user_input=_input_tokens(active),
        runtime=counter.text(runtime_text(new.runtime)) + counter.text(new.tail.intent),
        working_state=state_tokens(new.state, session.nonce_key, str(wanted.content_head), counter)
        + counter.text(thread_text(new.tail, session.nonce_key, str(wanted.content_head))),
        skills=loaded_tokens(new.skills) + counter.text(tools_text(new.tail, session.nonce_key)),
        corrections=corrections,
        knowledge=line_tokens(new.memory.knowledge, counter),
        recall=line_tokens(new.memory.recall, counter),
        omission=counter.text(omission_text(turns=99_999, units=99_999, through=99_999_999)),
        newest=next(
            (unit.sequence for unit in reversed(active) if unit.result_tokens), EventSeq(0)
        ),
    )
    outcome = None
    if projection is not None:
        allocation = _beside(
            projection, log, fixed, session.plan.policy, demand, floors, boundary, below
        )
    else:
        demand = replace(
            demand,
            row_nine=_summaries_tokens(log, session, standing, min(floors.cut, boundary), counter),
            summary=compactor.allowance(fixed.body - demand.never_yield) if compactor else 0,
        )
        allocation = _allocated(
            log, fixed, session.plan.policy, demand, floors, boundary, below, standing, counter
        )
        outcome = _compacted(
            compactor, standing, allocation, fixed.body - demand.never_yield, demand, log, boundary
        )
    packets = standing.packets if outcome is None else outcome.packets
    inputs = wanted.model_copy(
        update={
            "cut": allocation.floors.cut,
            "pointer": allocation.floors.pointer,
            "active_pointer": allocation.active_pointer,
            "knowledge_kept": allocation.knowledge_kept,
            "recall_kept": allocation.recall_kept,
            "recall_window": recall_window(new.memory.recall, allocation.recall_window, counter),
            "skills": tuple(skill.sequence for skill in skills),
            "state_event": standing.state_event,
            "pinned": marks.pinned,
            "folded": marks.folded,
            "excluded": marks.excluded,
            "sent": tuple(block.sequence for block in sent),
            "fresh_held": held,
            "lone_results": not session.imported,
        }
    )
    tokens = {
        13: corrections,
        14: demand.runtime,
        10: wanted.opaque_tokens,
        11: demand.skills,
        12: demand.working_state,
    }
    shown = replace(standing, state=new.state, packets=packets)
    run = run_input(
        log,
        session,
        inputs,
        new.memory,
        allocation,
        active,
        new.runtime,
        counter,
        tokens,
        {},
        shown,
        projection,
    )
    run = replace(
        run,
        skills=new.skills,
        sent=sent,
        fresh_place=EventSeq(inputs.fresh_place),
        tail=new.tail,
        holds_fresh=held,
        lone_results=inputs.lone_results,
    )
    if session.plan.fresh_rows == "appended":
        run = adding(run, offer, counter)
    shown_packets = tuple(tile for tile in run.tiles if isinstance(tile, Packet))
    return Prepared(inputs, allocation, run, outcome, shown_packets)


def _allocated(
    log: SessionLog,
    fixed: Frame,
    policy: BudgetPolicy,
    demand: Demand,
    floors: Floors,
    boundary: EventSeq,
    head: EventSeq,
    standing: Standing,
    counter: TokenCounter,
) -> Allocation:
    """Allocate, with room for pinned units that the floors pass: they stay whole and never yield."""
    pinned = _beside_history(log, floors, standing.marks, boundary, counter)
    while True:
        allocation = allocate(
            fixed=fixed,
            policy=policy,
            demand=replace(demand, pinned=pinned),
            floors=floors,
            index=log,
            boundary=boundary,
            head=head,
        )
        now = _beside_history(log, allocation.floors, standing.marks, boundary, counter)
        if now <= pinned:
            return allocation
        pinned = now


def _beside(
    projection: Projection,
    log: SessionLog,
    fixed: Frame,
    policy: BudgetPolicy,
    demand: Demand,
    floors: Floors,
    boundary: EventSeq,
    head: EventSeq,
) -> Allocation:
    """Allocate beside a projection: it stands as it is, so only fresh rows and the open run's results can give way."""
    allocation = allocate(
        fixed=fixed,
        policy=policy,
        demand=replace(demand, pinned=projection.tokens, row_nine=projection.row_nine_tokens),
        floors=Floors(boundary, max(boundary, floors.pointer)),
        index=log,
        boundary=boundary,
        head=head,
    )
    return replace(
        allocation,
        floors=Floors(projection.cut, EventSeq(0)),
        room=allocation.room + projection.tokens,
        never_yield=allocation.never_yield - projection.tokens,
        history=projection.history_tokens,
        raises=tuple(r for r in allocation.raises if r.budget_class is not BudgetClass.HISTORY),
    )


def _beside_history(
    log: SessionLog, floors: Floors, marks: Marks, boundary: EventSeq, counter: TokenCounter
) -> int:
    """What pinned units take that the sums over units do not hold (tokens).

    All of those that the cut passed, which stand behind history; of those below the pointer floor what pointers would save.
    """
    cut = min(floors.cut, boundary)
    passed = sum(u.tokens for u in pinned_units(log, pinned_below(marks, cut), marks, counter))
    passed += counter.text(PROMOTED_TEXT) if passed else 0
    whole = [start for start in marks.pinned if cut <= start < floors.pointer]
    units = [unit for start in whole for unit in log.units(EventSeq(start), EventSeq(start + 1))]
    return passed + sum(unit.tokens - unit.pointer_tokens for unit in units)


def _compacted(
    compactor: Compactor | None,
    standing: Standing,
    allocation: Allocation,
    body_tokens: int,
    demand: Demand,
    log: SessionLog,
    boundary: EventSeq,
) -> Outcome | None:
    """Summarise exactly what the cut drops, when there is a cut."""
    raised = next((r for r in allocation.raises if r.budget_class is BudgetClass.HISTORY), None)
    if compactor is None or raised is None:
        return None
    first = EventSeq(max(1, raised.floor_before))
    verdict = net_cost(
        saved_tokens=raised.before - raised.after,
        recached_tokens=raised.after + demand.active + demand.summary,
        expected_steps=compactor.policy.expected_steps,
        forced_by="budget",
    )
    return compactor.compact(
        Range(first, raised.floor, raised.before - raised.after),
        [packet for packet in standing.packets if packet.through < first],
        standing.results,
        body_tokens,
        verdict,
    )


def build_step(
    prepared_run: RunInput,
    session: SessionFacts,
    *,
    opaque: Mapping[EventSeq, Sequence[Opaque]],
    renderer: WireRenderer,
    memo: BuildMemo | None = None,
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


def _input_tokens(active: Sequence[Unit]) -> int:
    total = 0
    for unit in reversed(active):
        if unit.items[0].kind is not ItemKind.USER_MESSAGE:
            break
        total += unit.tokens
    return total


def _summaries_tokens(
    log: SessionLog,
    session: SessionFacts,
    standing: Standing,
    cut: EventSeq,
    counter: TokenCounter,
) -> int:
    """Row 9 at the present cut where summaries stand in it: they, and the lines for the gaps between them."""
    tiles = tiles_of(standing.packets, cut, log) if standing.packets else ()
    if not any(isinstance(tile, Packet) for tile in tiles):
        return 0
    return counter.text(row_nine_text(LeftOut(), tiles, (), (), session.nonce_key))


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
    "shared_frame",
]
