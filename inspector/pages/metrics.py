"""P12: metrics over a range, with the requests and sessions behind every figure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.metrics import ENGINES, GroupBy
from ctxengine.service.metrics.document import metrics_document
from ctxengine.service.metrics.period import USUAL, WINDOWS
from ctxengine.service.metrics.report import Metrics, MetricsSpec, metrics
from ctxengine.service.specs import ServiceError
from inspector import metric_tiles as tiles
from inspector.access import Viewer, member
from inspector.contexts import Shell
from inspector.filters import AskError, free, moment, one_of, read_moment
from inspector.metric_charts import chart
from inspector.metric_drawings import DRAWINGS
from inspector.metric_groups import groups_table
from inspector.metric_links import Links
from inspector.metric_tables import breakdowns
from inspector.metric_views import MetricsPage, TableView
from inspector.metric_worst import worst_tables
from inspector.render import Twin, csv_stream, show

_NARROWING = ("provider", "model", "agent", "engine")
ASKS = {
    "w": one_of(*WINDOWS),
    "from": moment,
    "to": moment,
    "provider": free,
    "model": free,
    "agent": free,
    "engine": one_of(*ENGINES),
    "imported": one_of("1", "0"),
    "by": one_of(*(by.value for by in GroupBy)),
    "table": free,
}


@require_safe
@member(asks=ASKS)
def metrics_page(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The whole range at once; `?table=` gives one table as CSV or JSON."""
    spec = _spec(request, timezone.now())
    found = metrics(actor=viewer.actor, spec=spec)
    page = _page(request, viewer, found)
    wanted = request.GET.get("table", "")
    if twin is Twin.HTML:
        if wanted:
            raise AskError("The filter table goes with the .csv and .json addresses alone.")
        return show(request, "metrics.html", page)
    if twin is Twin.JSON and not wanted:
        return JsonResponse(metrics_document(found))
    table = _table(page, wanted or "requests")
    if twin is Twin.JSON:
        header, *rows = _lines(table)
        data = [dict(zip(header, row, strict=True)) for row in rows]
        return JsonResponse(data, safe=False)
    header, *rows = _lines(table)
    return csv_stream(f"metrics-{table.name}", [str(name) for name in header], rows)


def _spec(request: HttpRequest, now: datetime) -> MetricsSpec:
    asked = request.GET
    since, until = (read_moment(asked.get(name, "")) for name in ("from", "to"))
    if asked.get("w"):
        if since or until:
            raise AskError(
                "The filter w names a range that ends now; from and to name another. Keep one."
            )
        since, until = now - WINDOWS[asked["w"]], now
    by = asked.get("by", "")
    return MetricsSpec(
        since=since,
        until=until,
        provider=asked.get("provider", ""),
        model=asked.get("model", ""),
        agent=asked.get("agent", ""),
        engine=asked.get("engine", ""),
        imported=asked.get("imported") == "1",
        group_by=GroupBy(by) if by else None,
    )


def _page(request: HttpRequest, viewer: Viewer, found: Metrics) -> MetricsPage:
    links = Links(viewer.slug, found.where)
    asked = request.GET
    ranged = bool(asked.get("from") or asked.get("to"))
    chosen = {name: asked.get(name, "") for name in (*_NARROWING, "from", "to", "by", "imported")}
    return MetricsPage(
        shell=Shell(viewer, "Metrics", "metrics"),
        where=found.where,
        window="" if ranged else asked.get("w") or USUAL,
        windows=tuple(WINDOWS),
        chosen=chosen,
        facets=_facets(found, chosen),
        groupings=tuple(GroupBy),
        tiles=tuple(
            tile(found, links)
            for tile in (
                tiles.cached_tile,
                tiles.prefix_tile,
                tiles.share_tile,
                tiles.cost_tile,
                tiles.epochs_tile,
                tiles.compactions_tile,
                tiles.pressure_tile,
                tiles.estimator_tile,
            )
        ),
        charts=tuple(chart(drawing, found.trend, found.totals, links) for drawing in DRAWINGS),
        groups=groups_table(found, links),
        tables=breakdowns(found, links),
        worst=worst_tables(found, links),
        found=found,
        address=request.GET.urlencode(),
        narrowed=any(chosen.values()),
    )


def _facets(found: Metrics, chosen: dict[str, str]) -> dict[str, tuple[str, ...]]:
    values = {
        "provider": [entry.provider for entry in found.combinations],
        "model": [f"{entry.provider}/{entry.model}" for entry in found.combinations],
        "agent": [entry.agent for entry in found.combinations],
        "engine": [entry.engine for entry in found.combinations],
    }
    return {
        name: tuple(
            dict.fromkeys([*sorted(set(listed)), *([chosen[name]] if chosen[name] else [])])
        )
        for name, listed in values.items()
    }


def _table(page: MetricsPage, name: str) -> TableView:
    tables = [view.table for view in page.charts]
    tables += [*page.tables, *page.worst, *([page.groups] if page.groups else [])]
    for table in tables:
        if table.name == name:
            return table
    raise ServiceError(
        "invalid_filter",
        400,
        f"There is no table of that name. There are: {', '.join(table.name for table in tables)}.",
    )


def _lines(table: TableView) -> Iterator[list[object]]:
    """Header and rows; a ratio brings its numerator and denominator."""
    header: list[object] = []
    for column in table.columns:
        header.append(column.name)
        if column.ratio:
            header += [f"{column.name}_numerator", f"{column.name}_denominator"]
    yield header
    for row in table.rows:
        line: list[object] = []
        for column, datum in zip(table.columns, row, strict=True):
            line.append(datum.value)
            if column.ratio:
                line += datum.parts or (None, None)
        yield line
