"""Letting go of a run's reasoning, all of it and once, where bytes before it change (design 7.12).

A provider that binds reasoning to what stands before it refuses the next request otherwise. An act that rewrites history drops
it with its own event; a cut under pressure drops it with the build that makes the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxengine.engine.build import build
from ctxengine.engine.cache.bound_reasoning import binds_reasoning, rewrites_before
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.inputs import Prepared, StepInputs, inputs_of
from ctxengine.engine.legs.build_leg import own_reasoning
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import CheckpointInput, ModelRequest
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.checkpoints import drop_checkpoint, opaque_of

_ROW_OF_REASONING = 10
_COUNTING = frozenset(
    {
        EventType.YIELD_APPLIED,
        EventType.COMPACTED,
        EventType.COMPACTION_UNDONE,
        EventType.PRESENTATION_SET,
        EventType.WORKING_SET_PLANNED,
        EventType.REQUEST_STARTED,
        EventType.RESPONSE_COMPLETED,
    }
)


def open_run(session: SessionRow) -> RunRow | None:
    """The session's open run."""
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    return rows.exclude(state="ended").first()


def reasoning_at_stake(run: RunRow | None, model: str, *, given_up: bool = False) -> int:
    """Blocks that a rewrite of earlier bytes makes invalid; 0 on models that do not bind them.

    Args:
        given_up: a call of the provider's own tools stands as a note, and what was signed over it goes on every model.
    """
    if run is None or not (given_up or binds_reasoning(model)):
        return 0
    return sum(len(blocks) for blocks in own_reasoning(opaque_of(run)).values())


def drop_reasoning(run: RunRow | None) -> int:
    """Forget a run's reasoning for good; gives how many blocks went.

    Call it in the transaction of the event that counts them, with the session's lock held: every writer takes it first.
    """
    if run is None:
        return 0
    dropped = drop_checkpoint(run)
    if dropped:
        run.refresh_from_db(fields=["settings"])
        run.settings |= {"opaque_tokens": 0}
        RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(settings=run.settings)
    return dropped


def build_bound(
    run: RunRow, plan: Plan, prepared: Prepared, *, renderer: WireRenderer, memo: BuildMemo
) -> tuple[Prepared, ModelRequest]:
    """Build a step with the reasoning that it may replay: all of the run's, or none where what it is bound to has changed.

    A call of the provider's own tools that was given up takes with it what was thought before, on every model.

    Raises:
        EngineError: as `build` does.
    """
    opaque = own_reasoning(opaque_of(run))
    bound = bool(opaque) and binds_reasoning(plan.model)
    earlier = inputs_before(run) if bound else None
    if earlier is not None and _rewrites(earlier, prepared):
        prepared, opaque, earlier = _without_reasoning(prepared), {}, None
    built = build(prepared.run, CheckpointInput(opaque), plan, renderer=renderer, memo=memo)
    given_up = bool(opaque) and bool(built.abandoned) and min(opaque) <= max(built.abandoned)
    if given_up or (earlier is not None and not _stays(earlier.fresh, built)):
        prepared = _without_reasoning(prepared)
        built = build(prepared.run, CheckpointInput({}), plan, renderer=renderer, memo=memo)
    return prepared, built


def inputs_before(run: RunRow) -> StepInputs | None:
    """Inputs of the run's latest request; None for its first step."""
    rows = RequestRow.objects.filter(tenant_id=run.tenant_id, run_id=run.id)
    row = rows.order_by("-number").first()
    return inputs_of(row.inputs) if row is not None else None


def _rewrites(earlier: StepInputs, prepared: Prepared) -> bool:
    shown = tuple(packet.sequence for packet in prepared.packets)
    return rewrites_before(earlier, prepared.inputs) or earlier.packets != shown


def _stays(fresh: str, built: ModelRequest) -> bool:
    """Whether the fresh block of the request before still stands in front of the reasoning that answered it."""
    if not fresh or not built.opaque_units:
        return True
    newest = max(built.opaque_units)
    for stretch in built.stretches:
        if any(unit.sequence == newest for unit in stretch.units):
            return False
        if fresh in stretch.digests:
            return True
    return False


def _without_reasoning(prepared: Prepared) -> Prepared:
    """A step without the run's reasoning."""
    rows = dict(prepared.run.row_tokens)
    rows.pop(_ROW_OF_REASONING, None)
    return replace(
        prepared,
        inputs=prepared.inputs.model_copy(update={"opaque_tokens": 0}),
        run=replace(prepared.run, row_tokens=rows),
    )


def counted(drafts: Sequence[EventDraft], dropped: int) -> list[EventDraft]:
    """The drafts of a step or an act, the reasoning that goes with it counted in the first that says what changed."""
    if not dropped:
        return list(drafts)
    place = next((n for n, draft in enumerate(drafts) if draft.type in _COUNTING), None)
    return [
        replace(draft, payload={**draft.payload, "reasoning_dropped": dropped})
        if n == place
        else draft
        for n, draft in enumerate(drafts)
    ]
