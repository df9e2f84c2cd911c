"""Reported usage, normalised once at the door: what it says of the cache, and what it teaches (design 7.4, 8)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ctxengine.engine.cache.verdict import CacheVerdict
from ctxengine.engine.content.response import ResponseContent
from ctxengine.engine.tokens.usage import Usage, normalise
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.service.cache_verdict import (
    Heard,
    measured_entries,
    unjudged,
    verdict_json,
    verdict_on,
    withholds_reasoning,
)
from ctxengine.service.calibration import ModelKey, learn_receipt
from ctxengine.service.legs.answered import Answering, answered_by
from ctxengine.service.specs import TakeResponse


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a response reports of its request."""

    usage: Usage | None
    """None when nothing usable was reported."""
    verdict: CacheVerdict
    reasoned: bool
    """Whether the response held reasoning."""
    withheld: bool
    """Whether the provider said that reasoning of the request did not reach the model."""
    at: datetime
    """When it came."""
    leg: Answering | None = None
    """The fallback leg that answered; None for the session's own model."""


def receipt_of(
    session: SessionRow,
    request: RequestRow,
    spec: TakeResponse,
    content: ResponseContent,
    *,
    reasoned: bool,
    at: datetime,
    leg: Answering | None = None,
) -> Receipt:
    """Read what a response reports and judge its cache figures. Odd figures are kept with a flag and teach nothing."""
    raw = spec.usage_raw or content.usage_raw
    if leg is not None:
        # What was predicted is of a body that nobody sent.
        usage = read_usage(leg.provider, raw, leg.window)
        return Receipt(usage, unjudged(usage), reasoned, withheld=False, at=at, leg=leg)
    usage = read_usage(session.provider, raw, request.budget.get("window"))
    heard = Heard(
        response_raw=spec.response_raw or "",
        response_model=content.model or "",
        reasoned=reasoned,
        reasoned_before=lambda: _reasoned_before(request),
        at=at,
    )
    withheld = withholds_reasoning(heard.response_raw)
    return Receipt(usage, verdict_on(request, usage, heard), reasoned, withheld, at)


def _reasoned_before(request: RequestRow) -> bool | None:
    """Whether the session's answer before held reasoning; None where there is none."""
    rows = RequestRow.objects.filter(
        tenant_id=request.tenant_id,
        session_id=request.session_id,
        number__lt=request.number,
        status="answered",
    )
    return rows.order_by("-number").values_list("verdict__reasoned", flat=True).first()


def keep_receipt(session: SessionRow, request: RequestRow, receipt: Receipt) -> dict[str, Any]:
    """Let a receipt teach the model's factor and the cache's entries; gives what changes on the request's row.

    Call inside the transaction that takes the response.
    """
    usage, verdict = receipt.usage, receipt.verdict
    changes: dict[str, Any] = {
        "usage": usage_json(usage) if usage is not None else {},
        "verdict": verdict_json(verdict, reasoned=receipt.reasoned),
    }
    if receipt.leg is not None:
        leg = receipt.leg
        changes |= answered_by(request, leg)
        changes["verdict"] |= {
            "leg": leg.place,
            "own_provider": request.provider,
            "own_model": request.model,
        }
        if usage is not None and usage.calibrates:
            key = ModelKey(session.tenant_id, leg.provider, leg.model)
            learn_receipt(key, leg.tokens, usage)
        return changes
    if usage is None or request.reconstructed:
        return changes
    if usage.calibrates:
        key = ModelKey(session.tenant_id, session.provider, session.model)
        learn_receipt(key, request.total_tokens, usage)
        changes["cache"] = measured_entries(
            request, usage, verdict, at=receipt.at, withheld=receipt.withheld
        )
    return changes


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
    """The buckets as a row keeps them: the first four add up to the prompt, the extra ones were billed beside it.

    A bucket of the cache that the provider said nothing about is null, which is not nought: what it may have read then stands
    under `fresh`.
    """
    writes = usage.tells_writes
    return {
        "fresh": usage.fresh,
        "cache_read": usage.cache_read if usage.tells_reads else None,
        "cache_write_5m": usage.cache_write_5m if writes else None,
        "cache_write_1h": usage.cache_write_1h if writes else None,
        "output": usage.output,
        "prompt_total": usage.prompt_total,
        "extra_input": usage.extra_input,
        "extra_output": usage.extra_output,
        "problems": list(usage.problems),
    }
