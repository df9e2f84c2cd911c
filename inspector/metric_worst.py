"""The sessions that stand out in a range: dearest, cached least, rotated most."""

from __future__ import annotations

from ctxengine.ledger.queries.metrics_events import RotatedSession
from ctxengine.ledger.queries.metrics_outcomes import SessionSum
from ctxengine.service.metrics.figures import Ratio
from ctxengine.service.metrics.report import Metrics
from inspector.metric_cells import count, money, ratio, text, words
from inspector.metric_links import Links
from inspector.metric_views import Column, Datum, TableView
from inspector.visible import one_line


def worst_tables(found: Metrics, links: Links) -> tuple[TableView, ...]:
    """The three lists of the worst ten."""
    sums = (
        Column("session", "Session", False),
        Column("requests", "Requests"),
        Column("usd", "Cost"),
        Column("cached_of_preceding", "Cached of preceding", ratio=True),
        Column("not_read", "Not read back"),
    )
    turned = (
        Column("session", "Session", False),
        Column("rotations", "Rotations"),
        Column("epoch", "Epoch now"),
        Column("reasons", "Reasons", False),
    )
    worst = found.worst
    return (
        TableView(
            "worst_cost",
            "Cost most",
            "the ten dearest sessions of the range",
            sums,
            tuple(_session(row, links) for row in worst.cost),
            "No session has reported usage in this range.",
        ),
        TableView(
            "worst_cached",
            "Cached least",
            "of the preceding call's input, among sessions with two reported calls in a row",
            sums,
            tuple(_session(row, links) for row in worst.cached),
            "No session has two reported calls in a row in this range.",
        ),
        TableView(
            "worst_rotated",
            "Rotated most",
            "by rotations in the range",
            turned,
            tuple(_rotated(row, links) for row in worst.rotated),
            "No session rotated in this range.",
        ),
    )


def _session(row: SessionSum, links: Links) -> tuple[Datum, ...]:
    return (
        Datum(
            str(row.session_id),
            _title(row.title, row.session_id),
            one_line(row.agent),
            href=links.session(row.session_id),
        ),
        count(row.requests),
        money(row.cost_microdollars, unpriced=row.unpriced),
        ratio(Ratio(row.follows_read, row.preceding)),
        count(max(0, row.preceding - row.follows_read)),
    )


def _rotated(row: RotatedSession, links: Links) -> tuple[Datum, ...]:
    return (
        Datum(
            str(row.session_id),
            _title(row.title, row.session_id),
            one_line(row.agent),
            href=links.session(row.session_id),
        ),
        count(row.rotations),
        count(row.epoch),
        text(", ".join(words(reason) for reason in row.reasons)),
    )


def _title(title: str, session_id: object) -> str:
    return one_line(title) or f"Session {str(session_id)[:8]}"
