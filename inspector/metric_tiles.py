"""The figures at the head of the metrics page and of the overview, each with its verdict in words."""

from __future__ import annotations

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.service.metrics.figures import Figures, Ratio
from ctxengine.service.metrics.report import Metrics
from inspector.contexts import Tile
from inspector.figures import NONE, dollars, number, percent
from inspector.metric_cells import share_text
from inspector.metric_drawings import CACHED_TARGET
from inspector.metric_links import Links
from inspector.reasons import class_title
from inspector.visible import one_line

STEADY = 1.1
"""Epochs per session up to which a fleet counts as steady."""


def cached_tile(found: Metrics, links: Links) -> Tile:
    """Cached input against the preceding call's whole input."""
    f = found.totals
    told = links.requests(usage="reported")
    return _cached(
        "Cached of the preceding call", f.cached_of_preceding, f"{number(f.follows)} calls", f, told
    )


def prefix_tile(found: Metrics, links: Links) -> Tile:
    """Prefix tokens served from the cache after the first request of a session."""
    f = found.totals
    told = links.requests(usage="reported")
    return _cached("Cached of the prefix", f.cached_prefix, "after first requests", f, told)


def share_tile(found: Metrics, links: Links) -> Tile:
    """Cached tokens of what was billed."""
    f = found.totals
    return Tile(
        "Cached of billed input",
        share_text(f.cached_share.value),
        f"of {number(f.cache_prompt)} tokens",
        "plain",
        f"{number(f.read)} read, {number(f.write)} written, {number(f.fresh)} fresh"
        + (f"; {number(f.extra_input)} more beside the prompts" if f.extra_input else ""),
        _told(f),
        links.requests(usage="reported") if f.reported else "",
    )


def epochs_tile(found: Metrics, links: Links) -> Tile:
    """Epochs per session."""
    f = found.totals
    value = f.epochs_per_session.value
    named = ", ".join(
        f"{row.rotations} {row.reason.replace('_', ' ')}" for row in found.reasons[:2]
    )
    return Tile(
        "Epochs per session",
        NONE if value is None else f"{value:.2f}",
        "target 1.00",
        "plain" if value is None else "ok" if value <= STEADY else "warn",
        f"{number(f.rotations)} rotation{'' if f.rotations == 1 else 's'}"
        + (f": {one_line(named)}" if named else ""),
        f"{number(f.epochs_per_session.part)} epochs in {number(f.sessions)} sessions with requests",
        links.sessions(has="rotation") if f.rotations else "",
    )


def compactions_tile(found: Metrics, links: Links) -> Tile:
    """Compactions per 1,000 turns and their depth."""
    f = found.totals
    value = f.compactions_per_turn.value
    return Tile(
        "Compactions per 1,000 turns",
        NONE if value is None else f"{1000 * value:,.1f}",
        f"{number(f.compactions)} in {number(f.turns)} turn{'' if f.turns == 1 else 's'}",
        "warn" if f.deep else "plain",
        f"{number(f.deep)} at depth 2" if f.deep else "none at depth 2",
        "rising depth means that work should have gone to a child run",
        links.sessions(has="compaction") if f.compactions else "",
    )


def estimator_tile(found: Metrics, links: Links) -> Tile:
    """The model that was undercounted most: only that side can make a request too long."""
    margin = DEFAULT_POLICY.margin
    limit = f"limit {percent(-margin)}"
    worst = next((row for row in found.estimates if row.reported), None)
    if worst is None or worst.error.value is None:
        return Tile(
            "Estimator error, worst model",
            NONE,
            limit,
            "plain",
            "nothing measured in this range",
            "it is measured when a runtime reports usage",
        )
    learnt = f"; factor {worst.learnt.factor:.3f}" if worst.learnt else ""
    return Tile(
        "Estimator error, worst model",
        percent(worst.error.value),
        limit,
        "warn" if worst.error.value < -margin else "ok",
        one_line(f"{worst.provider}/{worst.model}"),
        f"{number(abs(worst.error.part))} tokens {'too few' if worst.error.part < 0 else 'too many'} for"
        f" {number(worst.error.whole)} billed in {number(worst.reported)} calls{learnt}",
        links.requests(model=worst.model, provider=worst.provider, usage="reported"),
    )


def cost_tile(found: Metrics, links: Links) -> Tile:
    """What the range cost, and what the cache saved."""
    f = found.totals
    document = f.cost.as_json()
    if f.cost.saved is None:
        unknown = f"{number(f.cost.unpriced)} requests without a known price"
        return Tile(
            "Cost",
            "unknown" if f.cost.unpriced else NONE,
            "",
            "plain",
            unknown if f.cost.unpriced else "nothing reported in this range",
            f"prices of {found.price_source}",
        )
    gained = f.cost.saved >= 0
    saved = dollars(f"{abs(f.cost.saved) / 1_000_000:.6f}")
    missing = f"; {number(f.cost.unpriced)} requests have no known price" if f.cost.unpriced else ""
    return Tile(
        "Cost",
        dollars(document["usd"]),
        "at each day's list prices",
        "ok" if gained else "warn",
        f"{saved} {'saved by' if gained else 'lost to'} the cache",
        f"all input without a cache: {dollars(document['without_cache'])}; {number(f.cost.priced)} requests,"
        f" {found.price_source}{missing}",
        links.requests(usage="reported") if f.reported else "",
    )


def pressure_tile(found: Metrics, links: Links) -> Tile:
    """How often something had to yield, and whether it was enough."""
    f = found.totals
    given = sum(row.tokens for row in found.yields)
    if f.exceeded:
        classes = ", ".join(class_title(name) for name, _ in found.exceeded[:2])
        verdict = f"{number(f.exceeded)} steps did not fit: {classes}"
    elif f.pressure:
        verdict = "yielding was always enough"
    else:
        verdict = "nothing had to yield"
    return Tile(
        "Budget pressure",
        number(f.pressure),
        f"of {number(f.requests)} requests",
        "bad" if f.exceeded else "ok",
        verdict,
        f"{number(given)} tokens given up" if given else "every request fitted whole",
        links.sessions(has="exceeded")
        if f.exceeded
        else links.requests(yielded="any")
        if f.pressure
        else "",
    )


def opens_tile(found: Metrics, links: Links) -> Tile:
    """Sessions and rotations that were refused because a class did not fit."""
    refused = found.refused_opens
    many = sum(row.opens + row.rotations for row in refused)
    classes = ", ".join(dict.fromkeys(class_title(row.budget_class) for row in refused[:3]))
    return Tile(
        "Refused at open",
        number(many),
        "sessions and rotations",
        "bad" if many else "ok",
        classes or "every plan fitted",
        "by the budget class that did not fit; the metrics list them all",
    )


def requests_tile(found: Metrics, links: Links) -> Tile:
    """Requests and failures."""
    f = found.totals
    codes = ", ".join(
        f"{number(many)} {code.replace('_', ' ')}" for code, many in found.failures[:2]
    )
    return Tile(
        "Requests",
        number(f.requests),
        f"{number(f.sessions)} sessions",
        "bad" if f.failed else "ok" if f.requests else "plain",
        f"{number(f.failed)} failed: {one_line(codes)}"
        if f.failed
        else "none failed"
        if f.requests
        else "none in this range",
        f"{number(f.answered)} answered, {number(f.waiting)} not answered",
        links.requests(status="failed") if f.failed else links.requests() if f.requests else "",
    )


def _cached(title: str, found: Ratio, of: str, f: Figures, told: str) -> Tile:
    target = f"target ≥ {CACHED_TARGET:.0%}".replace("%", " %")
    value = found.value
    if value is None:
        return Tile(title, NONE, target, "plain", "nothing to compare yet", _told(f))
    good = value >= CACHED_TARGET
    return Tile(
        title,
        share_text(value),
        target,
        "ok" if good else "warn",
        "on target" if good else "below the target",
        f"{number(found.part)} of {number(found.whole)} tokens, {of}",
        told,
    )


def _told(f: Figures) -> str:
    unusable = f", {number(f.unusable)} unusably" if f.unusable else ""
    silent = f", {number(f.cache_unreported)} without the cache" if f.cache_unreported else ""
    return f"{number(f.reported)} requests reported usage{silent}, {number(f.unreported)} did not{unusable}"
