"""Building a recorded request again from the ledger: for a repeated assemble, for prove, for pages and diffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ctxengine.engine.build import BuildOptions
from ctxengine.engine.event_types import ERASURES
from ctxengine.engine.history.projection import HISTORY_FORMS
from ctxengine.engine.history.working_set_sent import as_sent_in, cards_twice_in
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Opaque
from ctxengine.engine.legs.build_leg import own_reasoning
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.recorded_step import rebuild
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.step import StepInputs, inputs_of
from ctxengine.engine.turns.record import CARDS_TWICE
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Body, Event, ItemRow, Rendering, RequestRow, RunRow, SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.checkpoints import opaque_of
from ctxengine.service.fresh_blocks import blocks_of
from ctxengine.service.markers import as_recorded
from ctxengine.service.memory_lines import memory_is_gone, memory_of
from ctxengine.service.skills import skills_at
from ctxengine.service.wiring import counter_of, log_of, plan_from, renderer_of, session_facts


def rebuild_request(
    session: SessionRow,
    row: RequestRow,
    *,
    options: BuildOptions = BuildOptions(validate=False),
    without_lost_reasoning: bool = False,
    log: PostgresLog | None = None,
) -> ModelRequest:
    """Rebuild one request from its recorded inputs.

    Args:
        without_lost_reasoning: leave out reasoning whose checkpoint is gone, so that there is a body to send; otherwise its
            recorded digest stands in for it and there is none.
        log: the session's log, for a caller that rebuilds many of its requests and reads their units once.

    Raises:
        EngineError: the ledger no longer gives a request at all (see `prove` for how that is reported).
    """
    log = log or log_of(session)
    inputs = inputs_of(row.inputs)
    if without_lost_reasoning:
        inputs = inputs.model_copy(update={"opaque": {}})
    plan = plan_from(log, plan_row_of(session, row.epoch))
    run = RunRow.objects.get(tenant_id=row.tenant_id, id=row.run_id)
    own = () if inputs.fresh_event is None else (inputs.fresh_event,)
    built = rebuild(
        log,
        session_facts(session, plan),
        inputs,
        memory=memory_of(log, inputs.memory_event),
        counter=counter_of(plan.provider, plan.model),
        opaque=own_reasoning(opaque_until(run, inputs.content_head)),
        erased=erased_digests(session, plan, inputs),
        skills=skills_at(log, inputs.skills),
        fresh_erased=memory_is_gone(log, inputs.memory_event),
        sent=blocks_of(log, inputs.sent, excluded=inputs.excluded),
        added=next(iter(blocks_of(log, own)), None),
        renderer=renderer_of(plan.provider),
        options=options,
    )
    return as_recorded(built, row.cache)


def opaque_until(run: RunRow, content_head: int) -> Mapping[EventSeq, Sequence[Opaque]]:
    """Reasoning of the run as far as this request had seen it."""
    return {
        sequence: blocks for sequence, blocks in opaque_of(run).items() if sequence <= content_head
    }


def erased_digests(session: SessionRow, plan: Plan, inputs: StepInputs) -> dict[EventSeq, str]:
    """Recorded digests of the request's units whose content was erased since, in the form each of them has there.

    What was gone already when the request was built stands in it as its tombstone, and is rendered again. Which came first is
    told by the log: clocks may jump. An erasure's event and its bodies carry the same moment. A unit may be erased more than
    once, where it went on after the first time: what the request rests on was kept by the first erasure after it.
    """
    key = {"tenant_id": session.tenant_id, "session_id": session.id}
    later = Event.objects.filter(**key, type__in=ERASURES, sequence__gt=inputs.head)
    erasures: dict[datetime, int] = dict(
        later.order_by("-sequence").values_list("recorded_at", "sequence")
    )
    erased = Body.objects.filter(**key, erased_at__in=list(erasures))
    gone = {body: erasures[at] for body, at in erased.values_list("id", "erased_at") if at}
    if not gone:
        return {}
    # Pinned units stand before the cut, and a recorded decision may show any of them.
    first = 0 if inputs.projection is not None else min((inputs.cut, *inputs.pinned))
    events = Event.objects.filter(
        **key, body_id__in=list(gone), sequence__gte=first, sequence__lte=inputs.content_head
    )
    erased_by = {seq: gone[body] for seq, body in events.values_list("sequence", "body_id") if body}
    items = ItemRow.objects.filter(**key, sequence__in=list(erased_by))
    units: dict[int, int] = {}
    for unit, sequence in items.values_list("unit_sequence", "sequence"):
        units[unit] = min(units.get(unit, erased_by[sequence]), erased_by[sequence])
    as_sent = as_sent_in(log_of(session), inputs)
    kept = _kept_digests(session, plan, units)
    digests = {
        EventSeq(unit): digest
        for (unit, form), digest in kept.items()
        if form == form_in(inputs, unit, as_sent)
    }
    twice = cards_twice_in(log_of(session), inputs, units)
    digests |= {
        EventSeq(unit): digest
        for (unit, form), digest in kept.items()
        if form == CARDS_TWICE and unit in twice and form_in(inputs, unit, as_sent) == "digest"
    }
    marked = {EventSeq(u): inputs.marked[str(u)] for u in units if str(u) in inputs.marked}
    return digests | marked


def _kept_digests(
    session: SessionRow, plan: Plan, units: Mapping[int, int]
) -> dict[tuple[int, str], str]:
    """Digests by unit and form, of units by the erasure that kept them."""
    own = {erasure: rendered_under(plan, erasure) for erasure in set(units.values())}
    rows = Rendering.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        renderer__in=[rendered_under(plan), *own.values()],
        unit_sequence__in=list(units),
    )
    found = {(row.unit_sequence, row.form, row.renderer): row.digest for row in rows}
    first = {
        (unit, form): found[unit, form, under]
        for unit, form, under in found
        if under not in own.values()
    }
    return first | {
        (unit, form): digest
        for (unit, form, under), digest in found.items()
        if under == own[units[unit]]
    }


def rendered_under(plan: Plan, erasure: int = 0) -> str:
    """What a unit's bytes depend on beside its content: the renderer, and what the epoch calls its tools.

    Args:
        erasure: sequence of the erasure that found the unit other than it was first; 0 names the first.
    """
    under = f"{plan.renderer}#{plan.epoch}"
    return f"{under}/{erasure}" if erasure else under


def form_in(inputs: StepInputs, unit: int, as_sent: Sequence[tuple[int, int]] = ()) -> str:
    """The form in which a unit stands in the request made from these inputs.

    Args:
        as_sent: stretches of history, by first and last event, that stand as they were sent.
    """
    if unit < inputs.boundary and inputs.engine in HISTORY_FORMS:
        kept = any(first <= unit <= last for first, last in as_sent)
        return "whole" if kept else HISTORY_FORMS[inputs.engine]
    floor = inputs.pointer if unit < inputs.boundary else inputs.active_pointer
    return "pointer" if unit < floor else "whole"
