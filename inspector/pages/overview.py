"""P1: the overview."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from ctxengine.engine.events import EventType
from ctxengine.ledger.queries import overview as read
from ctxengine.ledger.queries.overview import Counts, EstimatorError
from ctxengine.ledger.queries.sums import Bill
from inspector.access import Viewer, member
from inspector.contexts import OverviewPage, Shell, Tile
from inspector.figures import number, percent, share
from inspector.render import Twin, show

WINDOWS = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}
CACHED_TARGET = 0.90
ESTIMATOR_LIMIT = 0.05


@require_safe
@member()
def overview(request: HttpRequest, viewer: Viewer, twin: Twin = Twin.HTML) -> HttpResponse:
    """Counts, health, broken promises and the sessions that deserve a look."""
    window = request.GET.get("w", "7d")
    if window not in WINDOWS:
        window = "7d"
    since = timezone.now() - WINDOWS[window]
    counts = read.counts(viewer.tenant_id, since)
    bill = read.fleet_bill(viewer.tenant_id, since)
    estimator = read.worst_estimator(viewer.tenant_id)
    promises = read.promises(viewer.tenant_id, since)
    page = OverviewPage(
        shell=Shell(viewer, "Overview", "overview"),
        window=window,
        windows=tuple(WINDOWS),
        since=since,
        tiles=_tiles(viewer.slug, counts, bill, estimator),
        counts=counts,
        bill=bill,
        estimator=estimator,
        promises=promises,
        broken=sum(len(promise.breaches) for promise in promises),
        worst=read.worst_sessions(viewer.tenant_id, since),
    )
    return show(request, "overview.html", page, twin)


def _tiles(
    slug: str, counts: Counts, bill: Bill, estimator: EstimatorError | None
) -> tuple[Tile, ...]:
    sessions = reverse("inspector:sessions", args=[slug, Twin.HTML])
    requests = reverse("inspector:requests", args=[slug, Twin.HTML])
    return (
        Tile(
            "Sessions",
            number(counts.sessions),
            f"{number(counts.imported)} imported",
            "plain",
            f"{number(counts.sessions_active)} active in the window",
            f"{number(counts.runs_open)} runs open, {number(counts.imports)} files imported",
            sessions,
        ),
        Tile(
            "Requests",
            number(counts.requests),
            f"{number(counts.reconstructed)} reconstructed",
            "bad" if counts.failed else "ok" if counts.requests else "plain",
            f"{number(counts.failed)} failed" if counts.failed else "none failed",
            "built in the window; reconstructed ones come from imported transcripts",
            f"{requests}?status=failed" if counts.failed else requests,
        ),
        _cached(bill),
        _epochs(counts, sessions),
        _estimator(estimator),
        _pressure(counts, requests),
    )


def _cached(bill: Bill) -> Tile:
    if not bill.reported:
        return Tile(
            "Cached-prefix ratio",
            "–",
            f"target ≥ {CACHED_TARGET:.3f}",
            "plain",
            "nothing reported yet",
            f"{number(bill.unreported)} live requests without usage in the window",
        )
    ratio = bill.read / bill.prompt if bill.prompt else 0.0
    good = ratio >= CACHED_TARGET
    return Tile(
        "Cached-prefix ratio",
        f"{ratio:.3f}",
        f"target ≥ {CACHED_TARGET:.3f}",
        "ok" if good else "warn",
        "on target" if good else "below the target",
        f"{number(bill.read)} of {number(bill.prompt)} prompt tokens read;"
        f" {number(bill.unreported)} requests reported nothing",
    )


def _epochs(counts: Counts, sessions: str) -> Tile:
    rotations = counts.events.get(EventType.EPOCH_ROTATED, 0)
    ratio = counts.epochs / counts.sessions_active if counts.sessions_active else None
    steady = ratio is None or ratio <= 1.1
    return Tile(
        "Epochs per session",
        f"{ratio:.2f}" if ratio is not None else "–",
        "target 1.00",
        "plain" if ratio is None else "ok" if steady else "warn",
        f"{number(rotations)} rotations in the window",
        f"{number(counts.epochs)} epochs in {number(counts.sessions_active)} active sessions",
        f"{sessions}?q=epoch%3A%3E1",
    )


def _estimator(estimator: EstimatorError | None) -> Tile:
    limit = f"limit ± {share(ESTIMATOR_LIMIT, 1)}"
    if estimator is None:
        return Tile(
            "Estimator error, worst model",
            "–",
            limit,
            "plain",
            "nothing measured yet",
            "it is measured when a runtime reports usage",
        )
    near = abs(estimator.last_error) > ESTIMATOR_LIMIT
    return Tile(
        "Estimator error, worst model",
        percent(estimator.last_error),
        limit,
        "warn" if near else "ok",
        estimator.model,
        f"factor {estimator.factor:.3f} after {number(estimator.samples)} calls",
    )


def _pressure(counts: Counts, requests: str) -> Tile:
    pressure = counts.events.get(EventType.BUDGET_PRESSURE, 0)
    exceeded = counts.events.get(EventType.BUDGET_EXCEEDED, 0)
    yields = counts.events.get(EventType.YIELD_APPLIED, 0)
    return Tile(
        "Budget pressure",
        number(pressure),
        f"of {number(counts.requests)} requests",
        "bad" if exceeded else "warn" if pressure else "ok",
        f"exceeded: {number(exceeded)}" if exceeded else "never exceeded",
        f"{number(yields)} yields written to the ledger, down to the low-water mark",
        f"{requests}?yielded=any",
    )
