"""Figures as cells: what is unknown is a dash or a word, never nought."""

from __future__ import annotations

from decimal import Decimal

from ctxengine.service.metrics.figures import Cost, Ratio, usd
from inspector.figures import NONE, dollars, number, percent
from inspector.metric_views import Datum
from inspector.visible import one_line


def text(value: str, href: str = "", note: str = "") -> Datum:
    """A word."""
    return Datum(value, value, note, href)


def count(value: int, href: str = "", tone: str = "") -> Datum:
    """A whole number; nought is no link, since nothing is listed there."""
    return Datum(value, number(value), href=href if value else "", tone=tone if value else "")


def share_text(value: float | None) -> str:
    """A ratio in percent; only a true whole is 100 %."""
    if value is None:
        return NONE
    rounded = f"{100 * value:.1f}"
    return f"{'99.9' if rounded == '100.0' and value < 1 else rounded} %"


def ratio(found: Ratio, href: str = "", tone: str = "", *, form: str = "share") -> Datum:
    """A ratio with its parts; `form` is `share`, `signed`, `plain` or `mille`."""
    value = found.value
    if form == "share":
        shown = share_text(value)
    elif value is None:
        shown = NONE
    elif form == "signed":
        shown = percent(value)
    else:
        shown = f"{value:.2f}" if form == "plain" else f"{value * 1000:,.1f}"
    parts = f"{number(found.part)} of {number(found.whole)}" if found.whole else ""
    return Datum(
        None if value is None else round(value, 6),
        shown,
        parts,
        href if found.whole else "",
        tone,
        (found.part, found.whole),
    )


def money(microdollars: Decimal | int | None, href: str = "", unpriced: int = 0) -> Datum:
    """An amount; unknown where no price is known, and marked where one is missing."""
    known = usd(microdollars)
    note = f"{number(unpriced)} without a price" if unpriced else ""
    if known is None:
        return Datum(None, "unknown" if unpriced else NONE, "", href)
    return Datum(known, dollars(known), note, href)


def total_cost(cost: Cost, href: str = "") -> Datum:
    """What some requests cost in all."""
    return money(cost.total, href, cost.unpriced)


def words(code: str) -> str:
    """A code in words."""
    return one_line(code.replace("_", " "))
