"""Weighing rewrites with the prices a plan was pinned with, beside the build (design 8: net-cost test)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxengine.engine.cache.cost import CostModel
from ctxengine.engine.compaction.net_cost import NetCost, net_cost, priced
from ctxengine.engine.compaction.packet import CompactionResult
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.cost_model import cost_model_of


def prices_of(session: SessionRow) -> CostModel | None:
    """The prices pinned with the session's plan; None where the model's price was not known."""
    return cost_model_of(plan_row_of(session))


def weighed(prepared: Prepared, built: ModelRequest, prices: CostModel | None) -> Prepared:
    """A step whose new summaries carry the verdict in money, where there is a price; merges that a cut brings along as well."""
    outcome = prepared.compaction
    if outcome is None:
        return prepared

    def weigh(result: CompactionResult) -> CompactionResult:
        verdict = result.verdict or _forced(
            result.tokens_before - result.tokens_after, prepared, built, None
        )
        if prices is not None:
            verdict = priced(verdict, prices, built.budget.request)
        return result.model_copy(update={"verdict": verdict})

    made = tuple(weigh(result) for result in outcome.made)
    return replace(prepared, compaction=outcome._replace(made=made))


def with_verdicts(
    drafts: Sequence[EventDraft],
    prepared: Prepared,
    built: ModelRequest,
    prices: CostModel | None,
) -> list[EventDraft]:
    """The drafts of a step, each floor that rises under pressure with what it saves and re-caches."""
    raises = iter(prepared.allocation.raises)

    def weigh(draft: EventDraft) -> EventDraft:
        if draft.type is not EventType.YIELD_APPLIED:
            return draft
        raised = next(raises)
        verdict = _forced(raised.before - raised.after, prepared, built, prices)
        return replace(draft, payload={**draft.payload, "verdict": verdict.model_dump()})

    return [weigh(draft) for draft in drafts]


def _forced(
    saved: int, prepared: Prepared, built: ModelRequest, prices: CostModel | None
) -> NetCost:
    """A rewrite under pressure: it is forced, and weighed all the same.

    Behind the first byte that changes stands all that is left of history and the open run.
    """
    allocation = prepared.allocation
    return net_cost(
        saved_tokens=saved,
        recached_tokens=allocation.history + allocation.never_yield,
        expected_steps=built.plan.policy.expected_steps,
        forced_by="budget",
        prices=prices,
        prompt_tokens=built.budget.request,
    )
