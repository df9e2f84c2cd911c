"""The last gate before a request under a native window goes out: the provider's own count of it (boundary spec, strictness).

A window is counted when it is made; the first request that stands on it is counted whole, and later ones where our own count
comes near the limit. An estimate alone admits none of these.
"""

from __future__ import annotations

from ctxengine.engine.boundary.failures import CompactionError, ContextLengthError
from ctxengine.engine.boundary.prepare import NEAR
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.boundary.ask import refused, too_long
from ctxengine.service.boundary.ports import ServiceNative
from ctxengine.service.specs import Actor, ServiceError


def admit(
    actor: Actor, session: SessionRow, run: RunRow, built: ModelRequest, prepared: Prepared
) -> None:
    """Let a request pass, counted by the provider where that is due. No transaction is open here.

    Raises:
        ServiceError: 409 `context_length_exceeded`; 409 `compaction_failed` where the count cannot be had.
    """
    shown = prepared.run.projection
    if session.engine != "boundary" or shown is None or not shown.native or not built.body:
        return
    checkpoint = prepared.inputs.projection or 0
    near = built.budget.request > NEAR * built.budget.usable
    if not near and _sent_before(session, checkpoint):
        return
    port = ServiceNative(
        tenant_id=actor.tenant_id, session_id=session.id, job_id=None, plan=built.plan
    )
    available = built.budget.total - built.budget.reserve
    try:
        tokens = port.count(built.body)
    except CompactionError as error:
        raise refused(error) from error
    if tokens > available:
        raise too_long(
            ContextLengthError(
                tokens,
                available,
                source="counted",
                remedy="End the run, compact by hand, or choose a larger window.",
            )
        )


def does_not_fit(error: BudgetExceeded) -> ServiceError:
    """A request that cannot be built within its budget, as this engine says it: nothing was clipped."""
    numbers = error.numbers
    needed, available = int(str(numbers["needed"])), int(str(numbers["available"]))
    refusal = too_long(
        ContextLengthError(
            needed,
            available,
            source="estimated",
            remedy=f"The class {numbers['budget_class']} holds its ground: end the run, or choose a larger window.",
        )
    )
    refusal.extra["budget_class"] = numbers["budget_class"]
    return refusal


def _sent_before(session: SessionRow, checkpoint: int) -> bool:
    """Whether a request on this checkpoint was recorded already: it was counted then."""
    return RequestRow.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        act_sequence__gte=checkpoint,
        inputs__projection=checkpoint,
    ).exists()
