"""What a built request leaves behind: its events and its row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.budget.demand import Raise
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.excerpt import is_legacy
from ctxengine.engine.items import Unit
from ctxengine.engine.manifest import YieldStep
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.step import Prepared, StepInputs
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.cache_use import cache_json
from ctxengine.service.compactors import MadeFor, pressure_compactions


def step_drafts(
    prepared: Prepared,
    built: ModelRequest,
    *,
    request_id: UUID,
    step: int,
    model: str,
    run: str,
    reconstructed: bool = False,
    first: int = 0,
    owner: str = "",
) -> list[EventDraft]:
    """Events of one step: floors that rose, summaries of what a cut drops, pressure if any, then the request itself.

    Args:
        first: sequence that the first of them will have.
        owner: principal whose erasure takes the summaries along.
    """
    allocation = prepared.allocation
    made_for = MadeFor(built.budget.total, model, prepared.inputs.policy, str(request_id))
    drafts = yield_drafts(allocation.raises, made_for, run=run)
    drafts += pressure_compactions(
        prepared,
        drafts,
        first=first,
        run=run,
        owner=owner,
        made_for=made_for,
    )
    if allocation.under_pressure:
        drafts.append(
            pressure_draft(
                allocation.yields, run=run, legacy=legacy_excerpts(built), request=str(request_id)
            )
        )
    payload: dict[str, Any] = {
        "request": str(request_id),
        "step": step,
        "epoch": prepared.inputs.epoch,
        "prefix_sha256": built.plan.prefix_sha256,
        "request_sha256": built.request_sha256,
        "tokens": built.budget.request,
    }
    if reconstructed:
        payload["reconstructed"] = True
    drafts.append(
        EventDraft(type=EventType.REQUEST_STARTED, trust=Trust.PLATFORM, run=run, payload=payload)
    )
    return drafts


def yield_drafts(raises: Sequence[Raise], made_for: MadeFor, *, run: str) -> list[EventDraft]:
    """The floors that rise before a request."""
    return [
        EventDraft(
            type=EventType.YIELD_APPLIED,
            trust=Trust.PLATFORM,
            run=run,
            payload={
                "class": raised.budget_class.value,
                "floor_sequence": raised.floor,
                "model": made_for.model,
                "plan_total": made_for.plan_total,
                "policy": made_for.policy,
                "before": raised.before,
                "after": raised.after,
                "items": raised.items,
                "forced_by": made_for.forced_by,
            },
        )
        for raised in raises
    ]


def pressure_draft(
    steps: Sequence[YieldStep], *, run: str, legacy: int, request: str = ""
) -> EventDraft:
    """What yielded before a request (spec, Ports and data model).

    Args:
        legacy: results that stand as excerpts under a limit they were not counted under.
        request: the request that fits after it; empty where none does.
    """
    payload: dict[str, Any] = {"request": request} if request else {}
    payload |= {
        "fits": bool(request),
        "steps": [step.model_dump(mode="json") for step in steps],
        "legacy_tool_excerpts": legacy,
    }
    return EventDraft(
        type=EventType.BUDGET_PRESSURE, trust=Trust.PLATFORM, run=run, payload=payload
    )


def exceeded_drafts(
    error: BudgetExceeded, units: Sequence[Unit], policy: BudgetPolicy, *, run: str, step: int
) -> list[EventDraft]:
    """The events of a step that cannot be built: the pressure that did not help, then what does not fit.

    Args:
        units: the open run's, which stand in the request whatever yields.
        step: the content head that the step saw.
    """
    legacy = sum(is_legacy(item, policy.inline) for unit in units for item in unit.items)
    numbers = error.numbers
    exceeded = EventDraft(
        type=EventType.BUDGET_EXCEEDED,
        trust=Trust.PLATFORM,
        payload={
            "class": numbers["budget_class"],
            "needed": numbers["needed"],
            "available": numbers["available"],
            "content_sequence": step,
        },
    )
    return [pressure_draft(error.steps, run=run, legacy=legacy), exceeded]


def fresh_digest(built: ModelRequest) -> str:
    """Digest of rows 11 to 14 as rendered; empty when they hold nothing."""
    return next((s.digests[0] for s in built.stretches if not s.units and s.row == 14), "")


def summary_digest(built: ModelRequest) -> str:
    """Digest of row 9 as rendered."""
    return "".join(s.digests[0] for s in built.stretches if not s.units and s.row == 9)


def legacy_excerpts(built: ModelRequest) -> int:
    """Results that stand as excerpts under a limit they were not counted under (spec, What history selection retains)."""
    limit = built.plan.policy.inline
    return sum(
        is_legacy(item, limit)
        for stretch in built.stretches
        if stretch.form == "whole"
        for unit in stretch.units
        for item in unit.items
    )


def request_row(
    *,
    session: SessionRow,
    run: RunRow,
    request_id: UUID,
    step: int,
    inputs: StepInputs,
    prepared: Prepared,
    built: ModelRequest,
    at: datetime,
    build_ms: float,
    cache: dict[str, Any] | None = None,
) -> RequestRow:
    """The row of a built request; `session.requests` must be the count before it.

    Args:
        cache: what it is expected to read; None for one that is reconstructed, of which nothing is predicted.
    """
    recorded = inputs.model_copy(
        update={
            "opaque": {
                str(sequence): built.unit_digests[sequence] for sequence in built.opaque_units
            },
            "marked": {
                str(sequence): digest
                for sequence, digest in built.marked_digests(inputs.marks).items()
            },
            "unsent": built.unsent,
            "fresh": fresh_digest(built),
            "summary": summary_digest(built)
            if inputs.packets or inputs.projection is not None
            else "",
        }
    )
    return RequestRow(
        tenant_id=session.tenant_id,
        id=request_id,
        session_id=session.id,
        run_id=run.id,
        number=session.requests + 1,
        run_number=run.number,
        step=step,
        content_sequence=inputs.content_head,
        act_sequence=session.act_sequence,
        epoch=inputs.epoch,
        engine=session.engine,
        provider=built.plan.provider,
        model=built.plan.model,
        inputs=recorded.model_dump(mode="json"),
        manifest=built.manifest.as_json(),
        budget=built.budget.model_dump(mode="json"),
        cache=cache_json(built) if cache is None else cache,
        request_sha256=built.request_sha256,
        prefix_sha256=built.plan.prefix_sha256,
        wire_prefix_sha256=built.plan.wire_prefix_sha256,
        total_tokens=built.budget.request,
        body_bytes=len(built.body),
        body_chars=len(built.body.decode("utf-8", "surrogatepass")),
        reconstructed=cache is None,
        build_ms=build_ms,
        created_at=at,
    )
