"""P1: the overview."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.ledger.queries import overview as read
from ctxengine.ledger.queries.console import firing
from ctxengine.ledger.queries.overview import Counts
from ctxengine.ledger.queries.promises import Breach, Promise, promises
from ctxengine.service.metrics.period import USUAL, WINDOWS
from ctxengine.service.metrics.report import Metrics, MetricsSpec, metrics
from inspector import metric_tiles as tiles
from inspector.access import Viewer, member
from inspector.contexts import OverviewPage, Shell, Tile
from inspector.figures import number, percent
from inspector.filters import one_of
from inspector.job_contexts import jobs_tile
from inspector.live import list_news
from inspector.metric_links import Links
from inspector.render import Twin, show

ASKS = {"w": one_of(*WINDOWS)}


@require_safe
@member(asks=ASKS)
def overview(request: HttpRequest, viewer: Viewer, twin: Twin = Twin.HTML) -> HttpResponse:
    """Counts, health, broken promises and the sessions that deserve a look."""
    window = request.GET.get("w") or USUAL
    now = timezone.now()
    since = now - WINDOWS[window]
    found = metrics(actor=viewer.actor, spec=MetricsSpec(since=since, until=now))
    counts = read.counts(viewer.tenant_id, since)
    kept = (*promises(viewer.tenant_id, since), _underestimates(found))
    page = OverviewPage(
        shell=Shell(
            viewer,
            "Overview",
            "overview",
            news=list_news(request, viewer, "overview-news", None, now),
        ),
        window=window,
        windows=tuple(WINDOWS),
        since=since,
        tiles=_tiles(viewer.slug, counts, found),
        jobs=jobs_tile(viewer.tenant_id),
        counts=counts,
        bill=read.fleet_bill(viewer.tenant_id, since),
        promises=tuple(sorted(kept, key=lambda promise: not promise.breaches)),
        broken=sum(len(promise.breaches) for promise in kept),
        firing=firing(viewer.tenant_id),
        worst=read.worst_sessions(viewer.tenant_id, since),
    )
    return show(request, "overview.html", page, twin)


def _tiles(slug: str, counts: Counts, found: Metrics) -> tuple[Tile, ...]:
    links = Links(slug, found.where)
    return (
        _sessions(slug, counts, found),
        tiles.requests_tile(found, links),
        tiles.cached_tile(found, links),
        tiles.cost_tile(found, links),
        tiles.epochs_tile(found, links),
        tiles.estimator_tile(found, links),
        tiles.pressure_tile(found, links),
        tiles.opens_tile(found, links),
    )


def _sessions(slug: str, counts: Counts, found: Metrics) -> Tile:
    address = reverse("inspector:sessions", args=[slug, Twin.HTML])
    files = "1 file" if counts.imports == 1 else f"{number(counts.imports)} files"
    return Tile(
        "Active sessions",
        number(counts.sessions),
        f"{number(counts.imported)} imported",
        "plain",
        f"{number(counts.runs_open)} run{'' if counts.runs_open == 1 else 's'} open now",
        f"{number(found.totals.sessions)} sent a request; {files} imported",
        address,
    )


def _underestimates(found: Metrics) -> Promise:
    """Models whose counts were too low by more than the safety margin absorbs."""
    margin = DEFAULT_POLICY.margin
    off = [row for row in found.estimates if (row.error.value or 0) < -margin]
    return Promise(
        "Counts below the bill by more than the safety margin",
        f"every model with reported usage in the window, against {percent(-margin)}",
        tuple(
            Breach(
                None,
                f"{row.provider}/{row.model}",
                f"{percent(row.error.value or 0)} over {number(row.reported)} requests",
            )
            for row in off
        ),
    )
