"""Metrics as plain data: what REST answers and what the console's JSON twin holds."""

from __future__ import annotations

from typing import Any

from ctxengine.ledger.queries.metrics import MetricsFilter
from ctxengine.ledger.queries.metrics_outcomes import SessionSum
from ctxengine.service.metrics.figures import Ratio, usd
from ctxengine.service.metrics.report import Metrics, ModelEstimate


def metrics_document(found: Metrics) -> dict[str, Any]:
    """Everything of a report; amounts are decimal text in US dollars, null where no price is known."""
    return {
        "range": _range(found.where),
        "filters": _filters(found.where),
        "group_by": found.group_by.value if found.group_by else None,
        "totals": found.totals.as_json(),
        "groups": [{"key": key, **figures.as_json()} for key, figures in found.groups],
        "trend": [{"at": at.isoformat(), **figures.as_json()} for at, figures in found.trend],
        "rotations_by_reason": [row._asdict() for row in found.reasons],
        "compactions_by_depth": [
            {"depth": depth, "compactions": many} for depth, many in found.depths
        ],
        "compactions_refused": _counted("reason", "compactions", found.refused_compactions),
        "yields": [row._asdict() for row in found.yields],
        "exceeded": _counted("budget_class", "steps", found.exceeded),
        "failed_opens": [row._asdict() for row in found.refused_opens],
        "estimator": [_estimate(row) for row in found.estimates],
        "failures": _counted("code", "requests", found.failures),
        "cache_predictions": _predictions(found),
        "side_calls": [
            {
                "purpose": row.purpose,
                "calls": row.calls,
                "failed": row.failed,
                "usd": usd(row.cost_microdollars),
                "unpriced_calls": row.unpriced,
            }
            for row in found.side_calls
        ],
        "worst": {
            "cost": [_session(row) for row in found.worst.cost],
            "cached_of_preceding": [_session(row) for row in found.worst.cached],
            "rotations": [_named(row._asdict()) for row in found.worst.rotated],
        },
        "prices": {"source": found.price_source, "unknown_models": list(found.unpriced_models)},
    }


def _range(where: MetricsFilter) -> dict[str, Any]:
    return {
        "from": where.since.isoformat(),
        "to": where.until.isoformat(),
        "step": where.bucket.value,
    }


def _filters(where: MetricsFilter) -> dict[str, Any]:
    return {
        "provider": where.provider,
        "model": where.model,
        "agent": where.agent,
        "engine": where.engine,
        "imported": where.imported,
    }


def _counted(name: str, of: str, rows: tuple[tuple[str, int], ...]) -> list[dict[str, Any]]:
    return [{name: key, of: many} for key, many in rows]


def _estimate(row: ModelEstimate) -> dict[str, Any]:
    learnt = row.learnt
    return {
        "provider": row.provider,
        "model": row.model,
        "counters": list(row.counters),
        "samples_in_range": row.reported,
        "error": row.error.as_json(),
        "learnt": learnt
        and {
            "factor": learnt.factor,
            "samples": learnt.samples,
            "last_error": learnt.last_error,
        },
    }


def _predictions(found: Metrics) -> dict[str, Any]:
    held = found.predictions
    return {
        "classes": [
            {"class": name, "requests": many, "expected_read": expected, "reported_read": read}
            for name, many, expected, read in held.classes
        ],
        "misses": [
            {"cause": name, "requests": many, "shortfalls": short, "tokens_not_read": lost}
            for name, many, short, lost in held.misses
        ],
        "disagreements": held.disagreements,
        "unknown": held.unknown,
    }


def _session(row: SessionSum) -> dict[str, Any]:
    return {
        "session": str(row.session_id),
        "title": row.title,
        "agent": row.agent,
        "requests": row.requests,
        "usd": usd(row.cost_microdollars),
        "unpriced_requests": row.unpriced,
        "cached_of_preceding": Ratio(row.follows_read, row.preceding).as_json(),
        "cached_share": Ratio(row.read, row.cache_prompt).as_json(),
    }


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {"session": str(row.pop("session_id")), **row}
