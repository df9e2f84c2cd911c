"""The metrics page's table of groups: the same figures for each provider, model, agent or engine."""

from __future__ import annotations

from ctxengine.service.metrics.figures import Figures
from ctxengine.service.metrics.report import Metrics
from inspector.metric_cells import count, money, ratio, text, total_cost
from inspector.metric_links import Links
from inspector.metric_views import Column, Datum, TableView
from inspector.visible import one_line

_GROUP_COLUMNS = (
    Column("requests", "Requests"),
    Column("failed", "Failed"),
    Column("cached_of_preceding", "Cached of preceding", ratio=True),
    Column("cached_share", "Cached of billed", ratio=True),
    Column("epochs_per_session", "Epochs / session", ratio=True),
    Column("compactions", "Compactions / 1,000 turns", ratio=True),
    Column("pressure", "Pressure", ratio=True),
    Column("estimator_error", "Estimator error", ratio=True),
    Column("usd", "Cost"),
    Column("saved", "Saved"),
)


def groups_table(found: Metrics, links: Links) -> TableView | None:
    """One line for each group; None where nothing is grouped."""
    by = found.group_by
    if by is None:
        return None
    rows = tuple(_group(key, figures, links.of(by, key)) for key, figures in found.groups)
    whole = _group("all", found.totals, links)
    return TableView(
        "groups",
        f"By {by.value}",
        "sums of each group; rotations, turns, compactions and pressure go by what their session is bound to now",
        (Column(by.value, by.value.capitalize(), False), *_GROUP_COLUMNS),
        (*rows, whole) if rows else (),
        "Nothing in this range.",
    )


def _group(key: str, f: Figures, links: Links) -> tuple[Datum, ...]:
    told = links.requests(usage="reported")
    return (
        text(one_line(key), links.requests() if f.requests else ""),
        count(f.requests, links.requests()),
        count(f.failed, links.requests(status="failed"), "bad"),
        ratio(f.cached_of_preceding, told),
        ratio(f.cached_share, told),
        ratio(f.epochs_per_session, links.sessions(has="rotation") if f.rotations else "", form="plain"),
        ratio(f.compactions_per_turn, links.sessions(has="compaction") if f.compactions else "", form="mille"),
        ratio(f.pressure_share, links.requests(yielded="any") if f.pressure else ""),
        ratio(f.estimator_error, told, form="signed"),
        total_cost(f.cost),
        money(f.cost.saved),
    )  # fmt: skip
