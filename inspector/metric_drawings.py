"""The trends of the metrics page: what each one reads, and the table behind it."""

from __future__ import annotations

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.service.metrics.figures import Figures
from inspector.figures import number, percent
from inspector.metric_cells import count, money, ratio, total_cost
from inspector.metric_charts import Drawing, Series
from inspector.metric_links import Links
from inspector.metric_views import Column, Datum

CACHED_TARGET = 0.90
EPOCHS_TARGET = 1.0
_MILLION = 1_000_000


def _cached(f: Figures, links: Links) -> tuple[Datum, ...]:
    told = links.requests(usage="reported")
    return (
        ratio(f.cached_of_preceding, told),
        ratio(f.cached_prefix, told),
        ratio(f.cached_share, told),
    )


def _tokens(f: Figures, links: Links) -> tuple[Datum, ...]:
    told = links.requests(usage="reported")
    sums = (f.read, f.write, f.fresh, f.extra_input, f.output, f.extra_output)
    return (count(f.billed_input, told), *(count(tokens) for tokens in sums))


def _cost(f: Figures, links: Links) -> tuple[Datum, ...]:
    told = links.requests(usage="reported")
    amounts = (f.cost.amount(name) for name in ("read", "write", "fresh", "output"))
    return (
        total_cost(f.cost, told if f.reported else ""),
        *(money(amount) for amount in amounts),
        money(f.cost.saved),
    )


def _requests(f: Figures, links: Links) -> tuple[Datum, ...]:
    return (
        count(f.requests, links.requests()),
        count(f.answered, links.requests(status="answered")),
        count(f.waiting, links.requests(status="built")),
        count(f.failed, links.requests(status="failed"), "bad"),
        count(f.unreported, links.requests(usage="unreported")),
        count(f.unusable, links.requests(usage="unusable"), "warn"),
        count(f.cache_unreported, links.requests(usage="no_cache_figures")),
    )


def _epochs(f: Figures, links: Links) -> tuple[Datum, ...]:
    return (
        ratio(f.epochs_per_session, form="plain"),
        count(f.rotations, links.sessions(has="rotation")),
        count(f.recached),
    )


def _compactions(f: Figures, links: Links) -> tuple[Datum, ...]:
    return (
        ratio(f.compactions_per_turn, links.sessions(has="compaction"), form="mille"),
        ratio(f.deep_share),
        count(f.compacted_tokens),
        count(f.compactions_refused, links.sessions(has="refused_compaction")),
        count(f.turns, links.sessions(has="turn")),
    )


def _pressure(f: Figures, links: Links) -> tuple[Datum, ...]:
    return (
        ratio(f.pressure_share, links.requests(yielded="any")),
        count(f.exceeded, links.sessions(has="exceeded"), "bad"),
    )


def _estimates(f: Figures, links: Links) -> tuple[Datum, ...]:
    told = links.requests(usage="reported")
    return ratio(f.estimator_error, told, form="signed"), count(f.reported, told)


DRAWINGS: tuple[Drawing, ...] = (
    Drawing(
        "cached",
        "Cached input",
        "of the preceding call's whole input; a stable prefix alone does not prove that history was reused",
        (
            Column("of_preceding", "Of the preceding call", ratio=True),
            Column("prefix", "Of the prefix", ratio=True),
            Column("of_billed", "Of billed input", ratio=True),
        ),
        _cached,
        lambda value: f"{100 * value:.0f} %",
        lines=(
            Series("l-ok", "of the preceding call", lambda f: f.cached_of_preceding.value),
            Series("l-plain", "of billed input", lambda f: f.cached_share.value),
        ),
        most=1.0,
        target=CACHED_TARGET,
        filters=(("usage", "reported"),),
    ),
    Drawing(
        "tokens",
        "Input tokens billed",
        "disjoint buckets as providers reported them; “beside” is what a provider's own iterations took, as its compaction",
        (
            Column("input", "Input"),
            Column("read", "Read"),
            Column("written", "Written"),
            Column("fresh", "Fresh"),
            Column("extra_input", "Beside"),
            Column("output", "Output"),
            Column("extra_output", "Output beside"),
        ),
        _tokens,
        number,
        counts=True,
        bars=(
            Series("f-ok", "read", lambda f: f.read),
            Series("f-written", "written", lambda f: f.write),
            Series("f-fresh", "fresh", lambda f: f.fresh),
            Series("f-output", "beside", lambda f: f.extra_input),
        ),
        filters=(("usage", "reported"),),
    ),
    Drawing(
        "cost",
        "Cost",
        "by bucket, US dollars at the list prices of each request's day; unknown prices are left out and counted",
        (
            Column("usd", "All"),
            Column("read", "Read"),
            Column("written", "Written"),
            Column("fresh", "Fresh"),
            Column("output", "Output"),
            Column("saved", "Saved"),
        ),
        _cost,
        lambda value: f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}".rstrip("0"),
        bars=(
            Series("f-ok", "read", lambda f: float(f.cost.read) / _MILLION),
            Series("f-written", "written", lambda f: float(f.cost.write) / _MILLION),
            Series("f-fresh", "fresh", lambda f: float(f.cost.fresh) / _MILLION),
            Series("f-output", "output", lambda f: float(f.cost.output) / _MILLION),
        ),
        filters=(("usage", "reported"),),
    ),
    Drawing(
        "requests",
        "Requests",
        "built in the range, by how they ended",
        (
            Column("requests", "All"),
            Column("answered", "Answered"),
            Column("waiting", "Not answered"),
            Column("failed", "Failed"),
            Column("unreported", "No usage reported"),
            Column("unusable", "Unusable reports"),
            Column("cache_unreported", "Cache not reported"),
        ),
        _requests,
        number,
        counts=True,
        bars=(
            Series("f-user", "answered", lambda f: f.answered),
            Series("f-fresh", "not answered", lambda f: f.waiting),
            Series("f-bad", "failed", lambda f: f.failed),
        ),
    ),
    Drawing(
        "epochs",
        "Epochs per session",
        "one for each session with a request, and one more for each rotation",
        (
            Column("per_session", "Per session", ratio=True),
            Column("rotations", "Rotations"),
            Column("recached", "Tokens re-cached"),
        ),
        _epochs,
        lambda value: f"{value:.2f}",
        lines=(Series("l-config", "epochs per session", lambda f: f.epochs_per_session.value),),
        least=0.0,
        target=EPOCHS_TARGET,
    ),
    Drawing(
        "compactions",
        "Compactions per 1,000 turns",
        "rising depth means that work should have gone to a child run",
        (
            Column("per_turn", "Per 1,000 turns", ratio=True),
            Column("deep", "At depth 2", ratio=True),
            Column("given_up", "Tokens given up"),
            Column("refused", "Refused"),
            Column("turns", "Turns"),
        ),
        _compactions,
        lambda value: f"{value:,.0f}",
        bars=(
            Series("f-model", "depth 1", lambda f: _per_mille(f.compactions - f.deep, f.turns)),
            Series("f-bad", "depth 2", lambda f: _per_mille(f.deep, f.turns)),
        ),
    ),
    Drawing(
        "pressure",
        "Budget pressure",
        "requests before which something had to yield; “exceeded” are steps that did not fit at all",
        (
            Column("pressed", "Under pressure", ratio=True),
            Column("exceeded", "Exceeded"),
        ),
        _pressure,
        number,
        counts=True,
        bars=(
            Series("f-warn", "pressure", lambda f: f.pressure),
            Series("f-bad", "exceeded", lambda f: f.exceeded),
        ),
        filters=(("yielded", "any"),),
    ),
    Drawing(
        "estimator",
        "Estimator error",
        "counted against billed, signed: below nought, we counted too little, and the safety margin is the limit",
        (
            Column("error", "Error", ratio=True),
            Column("samples", "Requests"),
        ),
        _estimates,
        percent,
        lines=(Series("l-plain", "counted against billed", lambda f: f.estimator_error.value),),
        mirrored=True,
        target=-DEFAULT_POLICY.margin,
        target_word="limit",
        filters=(("usage", "reported"),),
    ),
)


def _per_mille(part: int, whole: int) -> float:
    return 1000 * part / whole if whole else 0.0
