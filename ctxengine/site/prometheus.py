"""`/metrics` for Prometheus: the last 24 hours of every tenant, behind a token; without one there is no such address.

Labels are a tenant's slug, provider, model and engine, and words of ours. Nothing that a person or a model wrote is among them.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from decimal import Decimal

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from ctxengine.service.metrics.figures import Figures
from ctxengine.service.metrics.fleet import TenantDay, last_day

_DAY = "in the last 24 hours"
_LABELS = ("tenant", "provider", "model", "engine")

Reading = Callable[[Figures], int | Decimal | None]
"""A figure; None where it is unknown, and then no sample is given."""

_FAMILIES: tuple[tuple[str, str, str, dict[str, Reading]], ...] = (
    (
        "requests",
        f"Requests built {_DAY}, by how they ended.",
        "status",
        {
            "answered": lambda f: f.answered,
            "failed": lambda f: f.failed,
            "built": lambda f: f.waiting,
        },
    ),
    (
        "billed_tokens",
        f"Tokens reported by providers {_DAY}, in disjoint buckets; the extra ones stand beside prompt and answer.",
        "bucket",
        {
            "fresh": lambda f: f.fresh,
            "read": lambda f: f.read,
            "write": lambda f: f.write,
            "output": lambda f: f.output,
            "extra_input": lambda f: f.extra_input,
            "extra_output": lambda f: f.extra_output,
        },
    ),
    (
        "cost_usd",
        f"US dollars {_DAY} by bucket, at the list prices of the day; no sample where the price is unknown.",
        "bucket",
        {
            name: (lambda f, name=name: _dollars(f.cost.amount(name)))  # type: ignore[misc]
            for name in ("fresh", "read", "write", "output")
        },
    ),
    (
        "compactions",
        f"Compactions installed {_DAY}, by depth.",
        "depth",
        {"1": lambda f: f.compactions - f.deep, "2": lambda f: f.deep},
    ),
)
_SINGLE: tuple[tuple[str, str, Reading], ...] = (
    ("reported_requests", f"Requests with reported usage {_DAY}.", lambda f: f.reported),
    ("cache_reported_requests", "Of these, requests with a reported cache read.", lambda f: f.cache_reported),
    ("cache_reported_prompt_tokens", "Prompts of those requests.", lambda f: f.cache_prompt),
    ("unpriced_requests", "Of these, requests without a known price.", lambda f: f.cost.unpriced),
    ("following_read_tokens", "Cached input of calls that follow another.", lambda f: f.follows_read),
    ("preceding_input_tokens", "Whole input of the calls right before those.", lambda f: f.preceding),
    ("prefix_read_tokens", "Pinned prefix read from the cache after first requests.", lambda f: f.prefix_read),
    ("prefix_tokens", "Pinned prefix of those requests.", lambda f: f.prefix),
    ("estimated_tokens", "Our own counts of the requests with reported usage.", lambda f: f.estimated),
    ("rotations", f"Epoch rotations {_DAY}.", lambda f: f.rotations),
    ("turns", f"User messages {_DAY}.", lambda f: f.turns),
    ("pressure", f"Requests before which something yielded {_DAY}.", lambda f: f.pressure),
    ("budget_exceeded", f"Steps that did not fit {_DAY}.", lambda f: f.exceeded),
)  # fmt: skip


@never_cache
@require_safe
def prometheus(request: HttpRequest) -> HttpResponse:
    """The exposition for a bearer of `CTX_METRICS_TOKEN`; 404 where no token is set, 401 for any other bearer."""
    token: str | None = settings.CTX_METRICS_TOKEN
    if not token:
        raise Http404("There is no such address.")
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return HttpResponse(
            "Send Authorization: Bearer and the metrics token.\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )
    registry = CollectorRegistry()
    registry.register(_LastDay(tuple(last_day())))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _LastDay(Collector):
    """The tenants' figures as gauges: they are sums over a moving day, so they also fall."""

    def __init__(self, days: tuple[TenantDay, ...]) -> None:
        self._days = days

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """One family for each figure."""
        for name, note, label, readings in _FAMILIES:
            yield self._family(name, note, readings, label)
        for name, note, reading in _SINGLE:
            yield self._family(name, note, {"": reading})
        sessions = _gauge("sessions", f"Sessions with a request {_DAY}.", ("tenant",))
        refused = _gauge(
            "failed_opens", f"Opens and rotations refused {_DAY}.", ("tenant", "class")
        )
        for day in self._days:
            sessions.add_metric((day.slug,), day.sessions)
            for budget_class, many in sorted(day.failed_opens.items()):
                refused.add_metric((day.slug, budget_class), many)
        yield sessions
        yield refused

    def _family(
        self, name: str, note: str, readings: dict[str, Reading], label: str = ""
    ) -> GaugeMetricFamily:
        family = _gauge(name, note, (*_LABELS, *([label] if label else ())))
        for day in self._days:
            for labels, figures in sorted(day.figures.items()):
                for word, reading in readings.items():
                    value = reading(figures)
                    if value is not None:
                        more = (word,) if label else ()
                        family.add_metric((day.slug, *labels, *more), float(value))
        return family


def _gauge(name: str, note: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ctxengine_day_{name}", note, labels=labels)


def _dollars(microdollars: Decimal | None) -> Decimal | None:
    return None if microdollars is None else microdollars / 1_000_000
