"""`metrics`: what sessions cost, reuse and give up over a range of time."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.openapi import (
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    UUID_TEXT,
    WHOLE,
    listed,
    nullable,
    record,
)
from api.reads.metrics import metrics_of
from api.schema import Component, Operation, Operations, Parameters
from api.shapes.base import Schema
from api.views import ReadView
from ctxengine.ledger.queries.metrics import ENGINES, GroupBy

RATIO = Component(
    "Ratio",
    record(
        {"numerator": WHOLE, "denominator": WHOLE, "value": nullable(NUMBER)},
        note="Sums over sums; `value` is null where there is nothing to divide by.",
    ),
)
_USD: Schema = {
    **nullable(TEXT),
    "description": "US dollars as decimal text; null where unknown.",
}
_FIGURES: dict[str, Schema] = {
    "requests": record(
        dict.fromkeys(
            (
                "total",
                "answered",
                "failed",
                "waiting",
                "reported",
                "unreported",
                "unusable",
                "cache_unreported",  # reported, without a word about the cache
            ),
            WHOLE,
        )
    ),
    "tokens": record(
        dict.fromkeys(
            (
                "fresh",
                "read",
                "write",
                "prompt",
                "output",
                "extra_input",
                "extra_output",
                "billed_input",
                "billed_output",
            ),
            WHOLE,
        )
    ),
    "cached_of_preceding": RATIO.ref,
    "cached_prefix": RATIO.ref,
    "cached_share": RATIO.ref,
    "estimator_error": RATIO.ref,  # negative: counted too little
    "epochs_per_session": RATIO.ref,
    "rotations": record({"count": WHOLE, "recached_tokens": WHOLE}),
    "turns": WHOLE,
    "compactions_per_1000_turns": RATIO.ref,
    "deep_compactions": RATIO.ref,
    "compactions": record({"tokens_given_up": WHOLE, "undone": WHOLE, "refused": WHOLE}),
    "pressure": RATIO.ref,
    "exceeded": WHOLE,
    "cost": record(
        {
            **dict.fromkeys(
                ("usd", "fresh", "read", "write", "output", "without_cache", "saved"), _USD
            ),
            "priced_requests": WHOLE,
            "unpriced_requests": WHOLE,
        }
    ),
}
FIGURES = Component("MetricFigures", record(_FIGURES), (RATIO,))
_LEARNT = record({"factor": NUMBER, "samples": WHOLE, "last_error": NUMBER})
_SESSION = record(
    {
        "session": UUID_TEXT,
        "title": TEXT,
        "agent": TEXT,
        "requests": WHOLE,
        "usd": _USD,
        "unpriced_requests": WHOLE,
        "cached_of_preceding": RATIO.ref,
        "cached_share": RATIO.ref,
    }
)


def _rows(*texts: str, **counts: Schema) -> Schema:
    return listed(record({**dict.fromkeys(texts, TEXT), **counts}))


METRICS = Component(
    "Metrics",
    record(
        {
            "range": record({"from": TIME, "to": TIME, "step": TEXT}),
            "filters": record(
                {
                    **dict.fromkeys(("provider", "model", "agent", "engine"), TEXT),
                    "imported": FLAG,
                }
            ),
            "group_by": nullable(TEXT),
            "totals": FIGURES.ref,
            "groups": listed(record({"key": TEXT, **_FIGURES})),
            "trend": listed(record({"at": TIME, **_FIGURES})),
            "rotations_by_reason": _rows("reason", rotations=WHOLE, tokens=WHOLE),
            "compactions_by_depth": _rows(depth=WHOLE, compactions=WHOLE),
            "compactions_refused": _rows("reason", compactions=WHOLE),
            "yields": _rows("budget_class", steps=WHOLE, tokens=WHOLE, items=WHOLE),
            "exceeded": _rows("budget_class", steps=WHOLE),
            "failed_opens": _rows(
                "budget_class", "code", opens=WHOLE, rotations=WHOLE, needed_most=WHOLE
            ),
            "estimator": _rows(
                "provider",
                "model",
                counters=listed(TEXT),
                samples_in_range=WHOLE,
                error=RATIO.ref,
                learnt=nullable(_LEARNT),
            ),
            "failures": _rows("code", requests=WHOLE),
            "cache_predictions": record(
                {
                    "classes": _rows(
                        "class", requests=WHOLE, expected_read=WHOLE, reported_read=WHOLE
                    ),
                    "misses": _rows(
                        "cause", requests=WHOLE, shortfalls=WHOLE, tokens_not_read=WHOLE
                    ),
                    "disagreements": WHOLE,
                    "unknown": WHOLE,
                }
            ),
            "side_calls": _rows(
                "purpose", calls=WHOLE, failed=WHOLE, usd=_USD, unpriced_calls=WHOLE
            ),
            "worst": record(
                {
                    "cost": listed(_SESSION),
                    "cached_of_preceding": listed(_SESSION),
                    "rotations": listed(
                        record(
                            {
                                "session": UUID_TEXT,
                                "title": TEXT,
                                "agent": TEXT,
                                "epoch": WHOLE,
                                "rotations": WHOLE,
                                "reasons": listed(TEXT),
                            }
                        )
                    ),
                }
            ),
            "prices": record({"source": TEXT, "unknown_models": listed(TEXT)}),
        }
    ),
    (FIGURES, RATIO),
)


class MetricsView(ReadView):
    """The metrics of a tenant."""

    parameters: ClassVar[Parameters] = {
        "from": pagination.moment("Start; left out: seven days before the end."),
        "to": pagination.moment("End, exclusive; left out: now. A range is 400 days at most."),
        "provider": pagination.word("Only this provider."),
        "model": pagination.word("Only this model, by name or as `provider/name`."),
        "agent": pagination.word("Only this agent, by name or as `name@version`."),
        "engine": pagination.word("Only this engine.", *ENGINES),
        "imported": pagination.flag("With what was made from imported transcripts."),
        "group_by": pagination.word("Figures for each value too.", *(by.value for by in GroupBy)),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="read_metrics",
            summary="Read the metrics of a range",
            tag="metrics",
            answer=METRICS,
            answer_note="Each ratio with its numerator and denominator. The trend has a step for each day, or for each"
            " hour of a range of up to two days.",
            parameters=parameters,
            problems=("invalid_parameter",),
        )
    }

    def get(self, request: Request) -> HttpResponse:
        """The whole report."""
        return json_response(to_json(metrics_of(self.actor(), self.query())))
