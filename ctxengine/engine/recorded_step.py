"""A recorded step built again from its inputs and the log: the other way into `build()` (design 4, Replay)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ctxengine.engine.budget.yields import Allocation, Floors
from ctxengine.engine.build import BuildOptions
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.fresh_parts import without_fresh
from ctxengine.engine.history.project import project
from ctxengine.engine.history.projection import SentBlock
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Memory, SessionFacts, StepInputs
from ctxengine.engine.items import Opaque
from ctxengine.engine.plan.skills import LoadedSkill
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.request import ModelRequest, RecordedDigest, RunInput
from ctxengine.engine.run_input import run_input, runtime_of
from ctxengine.engine.sent_digests import with_digests
from ctxengine.engine.standing import NOTHING_STANDING, recorded_standing
from ctxengine.engine.step import build_step
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.engine.working_state.block import shown_state


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
    skills: Sequence[LoadedSkill] = (),
    fresh_erased: bool = False,
    sent: Sequence[SentBlock] = (),
    added: SentBlock | None = None,
) -> ModelRequest:
    """Build a recorded request again from its inputs and the log; no memo, no decision taken anew.

    See `recorded_run` for the arguments.
    """
    run = recorded_run(
        log,
        session,
        inputs,
        memory=memory,
        counter=counter,
        erased=erased,
        skills=skills,
        fresh_erased=fresh_erased,
        sent=sent,
        added=added,
    )
    return build_step(run, session, opaque=opaque, renderer=renderer, options=options)


def recorded_run(
    log: SessionLog,
    session: SessionFacts,
    inputs: StepInputs,
    *,
    memory: Memory,
    counter: TokenCounter,
    erased: Mapping[EventSeq, str],
    skills: Sequence[LoadedSkill] = (),
    fresh_erased: bool = False,
    sent: Sequence[SentBlock] = (),
    added: SentBlock | None = None,
) -> RunInput:
    """What a recorded request was built from, before any renderer saw it.

    Args:
        erased: recorded digests of units whose content was erased since.
        skills: the bodies that the inputs name.
        fresh_erased: whether lines or bodies of the fresh rows were erased since.
        sent: the blocks that the inputs name.
        added: what the step added to them, where the plan keeps blocks in place.
    """
    boundary, below = EventSeq(inputs.boundary), EventSeq(inputs.content_head + 1)
    projection = project(log, session, inputs, counter)
    marks = inputs.marks
    active = present(log.units(boundary, below), marks, counter)
    standing = NOTHING_STANDING
    if inputs.state_event or inputs.packets or marks:
        standing = recorded_standing(
            log, state_event=inputs.state_event, packets=inputs.packets, marks=marks
        )
        state = shown_state(standing.state, active, counter, session.plan.policy)
        standing = replace(standing, state=state)
    runtime = runtime_of(inputs, active)
    allocation = _recorded_allocation(log, inputs, boundary)
    digests = {sequence: RecordedDigest(digest, "erased") for sequence, digest in erased.items()}
    # A unit that held reasoning was hashed with it, whatever else of it is gone since.
    digests |= {
        EventSeq(int(sequence)): RecordedDigest(digest, "opaque")
        for sequence, digest in inputs.opaque.items()
    }
    run = run_input(
        log,
        session,
        inputs,
        memory,
        allocation,
        active,
        runtime,
        counter,
        {},
        digests,
        standing,
        projection,
    )
    gone = fresh_erased or any(skill.erased for skill in skills) or 14 in standing.erased_rows
    fresh = RecordedDigest(inputs.fresh, "erased") if gone and inputs.fresh else None
    told_erased = 9 in standing.erased_rows or (projection and projection.row_nine_erased)
    summary = RecordedDigest(inputs.summary, "erased") if told_erased else None
    run = replace(
        run,
        skills=skills,
        fresh=fresh,
        summary=summary,
        sent=sent,
        fresh_place=EventSeq(inputs.fresh_place),
        unsent=inputs.unsent,
        lone_results=inputs.lone_results,
    )
    run = with_digests(run, inputs.sent_digests)
    if inputs.fresh_held:
        run = without_fresh(run)
    if session.plan.fresh_rows == "appended":
        run = _as_added(run, inputs, added)
    return run


def _as_added(run: RunInput, inputs: StepInputs, added: SentBlock | None) -> RunInput:
    """The step with the block it sent, word for word as it was kept."""
    if added is None:
        return replace(run, added="", fresh=None)
    if added.text is None:
        return replace(run, added="", fresh=RecordedDigest(inputs.fresh or added.digest, "erased"))
    return replace(run, added=added.text, fresh=None)


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
