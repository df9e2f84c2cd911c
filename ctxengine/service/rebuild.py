"""Building a recorded request again from the ledger: for a repeated assemble, for prove, for pages and diffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxengine.engine.build import BuildOptions
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Opaque
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.step import inputs_of, rebuild
from ctxengine.ledger.models import Body, Event, Rendering, RequestRow, RunRow, SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.checkpoints import opaque_of
from ctxengine.service.memory_lines import memory_of
from ctxengine.service.wiring import counter_of, log_of, plan_from, renderer_of, session_facts


def rebuild_request(
    session: SessionRow, row: RequestRow, *, options: BuildOptions = BuildOptions(validate=False)
) -> ModelRequest:
    """Rebuild one request from its recorded inputs.

    Raises:
        EngineError: the ledger no longer gives a request at all (see `prove` for how that is reported).
    """
    log = log_of(session)
    inputs = inputs_of(row.inputs)
    plan = plan_from(log, plan_row_of(session, row.epoch))
    run = RunRow.objects.get(tenant_id=row.tenant_id, id=row.run_id)
    return rebuild(
        log,
        session_facts(session, plan),
        inputs,
        memory=memory_of(log, inputs.memory_event),
        counter=counter_of(plan.provider, plan.model),
        opaque=_opaque_until(run, inputs.content_head),
        erased=erased_digests(session, plan.renderer, inputs.cut, inputs.content_head),
        renderer=renderer_of(plan.provider),
        options=options,
    )


def _opaque_until(run: RunRow, content_head: int) -> Mapping[EventSeq, Sequence[Opaque]]:
    """Reasoning of the run as far as this request had seen it."""
    return {
        sequence: blocks for sequence, blocks in opaque_of(run).items() if sequence <= content_head
    }


def erased_digests(
    session: SessionRow, renderer: str, first: int, last: int
) -> dict[EventSeq, str]:
    """Recorded digests of units in [first, last] whose content was erased."""
    key = {"tenant_id": session.tenant_id, "session_id": session.id}
    erased = Body.objects.filter(**key, erased_at__isnull=False).values_list("id", flat=True)
    gone = list(erased)
    if not gone:
        return {}
    events = Event.objects.filter(
        **key, body_id__in=gone, sequence__gte=first, sequence__lte=last
    ).values_list("sequence", flat=True)
    rows = Rendering.objects.filter(
        **key, renderer=renderer, form="whole", unit_sequence__in=list(events)
    )
    return {EventSeq(row.unit_sequence): row.digest for row in rows}
