"""Reported usage, normalised once at the door, and what it teaches the estimator (design 7.4)."""

from __future__ import annotations

import json
from typing import Any

from ctxengine.engine.tokens.factors import CalibrationFactor
from ctxengine.engine.tokens.usage import Usage, normalise
from ctxengine.ledger.models import Calibration, RequestRow, SessionRow
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor


def usage_of(
    actor: Actor, session: SessionRow, request: RequestRow, raw: str | None
) -> dict[str, Any]:
    """Normalise a usage report into disjoint buckets and let it move the model's factor.

    Odd figures are kept with a flag and teach nothing; a report that is no JSON object counts as not reported.
    """
    usage = read_usage(session.provider, raw, request.budget.get("window"))
    if usage is None:
        return {}
    if usage.calibrates and not request.reconstructed:
        _learn(actor, session, request, usage)
    return usage_json(usage)


def read_usage(provider: str, raw: str | None, window: int | None) -> Usage | None:
    """A usage report as a value; None when nothing usable was reported."""
    if not raw:
        return None
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    return normalise(provider, data, window=window)


def usage_json(usage: Usage) -> dict[str, Any]:
    """The buckets as a request row keeps them; they add up to the prompt."""
    return {
        "fresh": usage.fresh,
        "cache_read": usage.cache_read,
        "cache_write_5m": usage.cache_write_5m,
        "cache_write_1h": usage.cache_write_1h,
        "output": usage.output,
        "prompt_total": usage.prompt_total,
        "problems": list(usage.problems),
    }


def _learn(actor: Actor, session: SessionRow, request: RequestRow, usage: Usage) -> None:
    key: dict[str, Any] = {
        "tenant_id": actor.tenant_id,
        "provider": session.provider,
        "model": session.model[:200],
    }
    row = Calibration.objects.filter(**key).first()
    known = CalibrationFactor(
        model=session.model,
        millionths=row.factor_millionths if row else 1_000_000,
        samples=row.samples if row else 0,
        last_error_millionths=row.last_error_millionths if row else 0,
    )
    learnt = known.reconcile(request.total_tokens, usage)
    Calibration.objects.update_or_create(
        **key,
        defaults={
            "factor_millionths": learnt.millionths,
            "samples": learnt.samples,
            "last_error_millionths": learnt.last_error_millionths,
            "updated_at": utc_now(),
        },
    )
