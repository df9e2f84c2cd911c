"""`plan.measure`: what the provider's own counting endpoint says of a pinned prefix, stored beside the plan (design 7.4).

Opening a session asks no network. The difference between a body with the prefix and one without it is the prefix: what
the endpoint adds for roles and framing stands in both.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from ctxengine.engine.plan.plan import Plan, wire_prefix
from ctxengine.engine.wire.base import WireMessage, WireParams, WirePrefix, WireText
from ctxengine.ledger.models import Job, PlanRow
from ctxengine.providers.adapters.registry import counting_providers
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.jobs.stops import JobFailed
from ctxengine.service.side_calls import counting_call
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import log_of, plan_from, renderer_of, session_facts

KIND = "plan.measure"
_TIMEOUT_S = 20.0
_SHORTEST_MESSAGE = "."
_OUTPUT_TOKENS = 16


def ask_to_measure(
    *, actor: Actor, session_id: UUID, epoch: int, provider: str, cause: str
) -> Job | None:
    """Ask for a plan's measurement where its provider can be asked to count; None where it cannot.

    It only writes a job; call it in the transaction that stores the plan.
    """
    if provider not in counting_providers():
        return None
    return enqueue(
        actor=actor,
        kind=KIND,
        arguments={"epoch": epoch},
        session_id=session_id,
        subject=f"plan of epoch {epoch}",
        single_flight=f"{KIND}:{session_id}:{epoch}",
        cause=cause,
    )


def run(context: JobContext) -> dict[str, Any]:
    """Count the prefix, and keep what was said beside the plan. Doing it again says the same."""
    if context.job.session_id is None:
        raise JobFailed("invalid_arguments", "A measurement needs the session whose plan it is.")
    session = session_of(context.actor, context.job.session_id)
    row = plan_row_of(session, int(context.arguments["epoch"]))
    try:
        plan = plan_from(log_of(session), row)
    except LookupError as error:
        raise JobFailed("content_gone", "The plan's content was erased.") from error
    prefix = wire_prefix(plan, session_facts(session, plan).nonce_key)
    counts = []
    for percent, part in ((10, prefix), (60, WirePrefix((), ()))):
        context.check()
        context.progress("asking the provider", percent)
        counts.append(_count(context, plan, part))
    whole, bare = counts
    if whole is None or bare is None:
        context.note(f"{plan.provider} has no counting endpoint.")
        return {"tokens": None}
    measured = {
        "tokens": whole - bare,
        "pinned_tokens": row.prefix_tokens,
        "provider": plan.provider,
        "model": plan.model,
        "at": utc_now().isoformat(timespec="seconds"),
    }
    PlanRow.objects.filter(
        tenant_id=row.tenant_id, session_id=row.session_id, epoch=row.epoch
    ).update(measured=measured)
    context.note(f"{whole - bare:,} tokens; {row.prefix_tokens:,} were counted when it was pinned.")
    return measured


def _count(context: JobContext, plan: Plan, prefix: WirePrefix) -> int | None:
    renderer = renderer_of(plan.provider)
    message = WireMessage("user", (WireText(_SHORTEST_MESSAGE),))
    params = WireParams(plan.model, _OUTPUT_TOKENS, "")
    body = json.loads(renderer.body(prefix, renderer.fragments(message), params))
    return counting_call(
        tenant_id=context.job.tenant_id,
        provider=plan.provider,
        body=body,
        session_id=context.job.session_id,
        job_id=context.job.id,
        timeout_s=_TIMEOUT_S,
    )
