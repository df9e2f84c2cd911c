"""How the providers fare: failures by code, silence, cache surprises, and calls of our own."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.providers import ProviderLine, provider_lines
from ctxengine.service.clock import utc_now
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.filters import one_of
from inspector.provider_contexts import ProvidersPage
from inspector.render import Twin, csv_stream, json_stream, show

WINDOWS = {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7)}
DEFAULT_WINDOW = "24h"
CSV_HEADER = (
    "provider", "model", "answered", "failed", "unanswered", "shortfalls", "disagreements",
    "side_calls", "side_failed", "failed_percent", "last_at",
)  # fmt: skip


@require_safe
@member(asks={"w": one_of(*WINDOWS)})
def providers(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """All models that anything was sent to in the window."""
    window = request.GET.get("w") or DEFAULT_WINDOW
    lines = provider_lines(viewer.tenant_id, utc_now() - WINDOWS[window])
    if twin is Twin.CSV:
        return csv_stream("providers", CSV_HEADER, (_row(line) for line in lines))
    if twin is Twin.JSON:
        return json_stream(lines)
    above = reverse("inspector:models", args=[viewer.slug, Twin.HTML])
    crumbs = (Crumb("Models", above), Crumb("Providers"))
    page = ProvidersPage(
        shell=Shell(viewer, "Providers", "models", crumbs),
        lines=lines,
        window=window,
        windows=tuple(WINDOWS),
    )
    return show(request, "providers.html", page)


def _row(line: ProviderLine) -> tuple[object, ...]:
    return tuple(getattr(line, name) for name in CSV_HEADER)
