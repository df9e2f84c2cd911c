"""The tables of the metrics page that say where its totals come from."""

from __future__ import annotations

from ctxengine.service.metrics.figures import Cost, Ratio
from ctxengine.service.metrics.report import Metrics, ModelEstimate
from inspector.figures import number, percent
from inspector.metric_cells import count, money, ratio, text, total_cost, words
from inspector.metric_links import Links
from inspector.metric_views import Column, Datum, TableView
from inspector.reasons import class_title
from inspector.visible import one_line

_NOTHING = "Nothing in this range."


def breakdowns(found: Metrics, links: Links) -> tuple[TableView, ...]:
    """Where the totals come from."""
    return (
        _buckets(found, links),
        _predictions(found, links),
        _misses(found, links),
        _endings(found, links),
        _reasons(found, links),
        _compactions(found, links),
        _yields(found, links),
        _failed_opens(found),
        _estimator(found, links),
        _side_calls(found),
    )


def _buckets(found: Metrics, links: Links) -> TableView:
    f = found.totals
    rows = []
    for name, title, tokens in (
        ("read", "Read from cache", f.read),
        ("write", "Written to cache", f.write),
        ("fresh", "Fresh, not cached", f.fresh + f.extra_input),
        ("output", "Output", f.billed_output),
    ):
        beside = f.extra_input if name == "fresh" else f.extra_output if name == "output" else 0
        note = f"{number(beside)} of them in the provider's own iterations" if beside else ""
        part = ratio(Ratio(tokens, f.billed_input)) if name != "output" else Datum(None, "–")
        rows.append((text(title, note=note), count(tokens), part, money(f.cost.amount(name))))
    told = links.requests(usage="reported")
    rows.append(
        (
            Datum("all", "All", f"{number(f.reported)} requests", told if f.reported else ""),
            count(f.billed_input + f.billed_output),
            Datum(None, "–"),
            total_cost(f.cost),
        )
    )
    rows.append(
        (
            text("Input with no cache at all"),
            count(f.billed_input),
            Datum(None, "–"),
            money(f.cost.without_cache if f.cost.known else None),
        )
    )
    rows.append(
        (text("Saved by the cache"), Datum(None, "–"), Datum(None, "–"), money(f.cost.saved))
    )
    return TableView(
        "buckets",
        "Tokens and cost by bucket",
        _price_note(found, f.cost),
        (
            Column("bucket", "Bucket", False),
            Column("tokens", "Tokens"),
            Column("share", "Share of input", ratio=True),
            Column("usd", "US dollars"),
        ),
        tuple(rows) if f.reported else (),
        f"No provider reported usage for the {number(f.requests)} requests of this range."
        if f.requests
        else _NOTHING,
    )


def _price_note(found: Metrics, cost: Cost) -> str:
    note = f"prices of {found.price_source}, each request at those of its day"
    if cost.unpriced:
        names = ", ".join(one_line(name) for name in found.unpriced_models[:5])
        note += f"; {number(cost.unpriced)} requests have no known price ({names})"
    return note


def _predictions(found: Metrics, links: Links) -> TableView:
    held = found.predictions
    rows = [
        (
            text(name, note=_VERDICTS.get(name, "")),
            count(many, links.requests(verdict=name), "warn" if name == "shortfall" else ""),
            ratio(Ratio(read, expected)) if expected else Datum(None, "–"),
        )
        for name, many, expected, read in held.classes
    ]
    if held.unknown:
        rows.append(
            (
                text("unknown", note="answered before verdicts were kept, or without usage"),
                count(held.unknown, links.requests(verdict="none")),
                Datum(None, "–"),
            )
        )
    if held.disagreements:
        rows.append(
            (
                text("disagreements", note="the provider names another reason than we do"),
                count(held.disagreements, links.requests(disagreement="1"), "bad"),
                Datum(None, "–"),
            )
        )
    return TableView(
        "predictions",
        "Predicted cache reads",
        "each answer held against what was predicted",
        (
            Column("verdict", "Verdict", False),
            Column("requests", "Requests"),
            Column("read", "Read of expected", ratio=True),
        ),
        tuple(rows),
        _NOTHING,
    )


_VERDICTS = {
    "agrees": "read as predicted",
    "shortfall": "read less than predicted",
    "surplus": "read more than predicted",
    "unpredicted": "nothing was predicted",
    "unreported": "the provider said nothing of its cache",
}


def _misses(found: Metrics, links: Links) -> TableView:
    return TableView(
        "misses",
        "Cache losses by cause",
        "a loss that was expected is no shortfall",
        (
            Column("cause", "Cause", False),
            Column("requests", "Requests"),
            Column("shortfalls", "Shortfalls"),
            Column("tokens_not_read", "Tokens not read"),
        ),
        tuple(
            (
                text(words(cause)),
                count(many, links.requests(cause=cause)),
                count(short, links.requests(cause=cause, verdict="shortfall"), "warn"),
                count(lost),
            )
            for cause, many, short, lost in found.predictions.misses
        ),
        "No loss has a cause in this range.",
    )


def _endings(found: Metrics, links: Links) -> TableView:
    f = found.totals
    rows = [
        (text("answered"), count(f.answered, links.requests(status="answered"))),
        (text("not answered"), count(f.waiting, links.requests(status="built"))),
    ]
    rows += [
        (
            text(f"failed: {words(code)}"),
            count(many, links.requests(status="failed", code=code), "bad"),
        )
        for code, many in found.failures
    ]
    return TableView(
        "endings",
        "Requests by how they ended",
        "failures by the code they were reported with",
        (Column("ending", "Ending", False), Column("requests", "Requests")),
        tuple(rows) if f.requests else (),
        _NOTHING,
    )


def _reasons(found: Metrics, links: Links) -> TableView:
    return TableView(
        "rotations",
        "Rotations by reason",
        "one rotation may have several reasons",
        (
            Column("reason", "Reason", False),
            Column("rotations", "Rotations"),
            Column("recached", "Tokens re-cached"),
        ),
        tuple(
            (
                text(words(row.reason)),
                count(row.rotations, links.sessions(has="rotation")),
                count(row.tokens),
            )
            for row in found.reasons
        ),
        "No session rotated in this range.",
    )


def _compactions(found: Metrics, links: Links) -> TableView:
    rows = [
        (text(f"depth {depth}"), count(many, links.sessions(has="compaction")))
        for depth, many in found.depths
    ]
    rows += [
        (
            text(f"refused: {words(reason)}"),
            count(many, links.sessions(has="refused_compaction"), "warn"),
        )
        for reason, many in found.refused_compactions
    ]
    if found.totals.compactions_undone:
        undone = count(found.totals.compactions_undone, links.sessions(has="undone"))
        rows.append((text("undone"), undone))
    return TableView(
        "compaction_depths",
        "Compactions by depth",
        f"in {number(found.totals.turns)} turn{'' if found.totals.turns == 1 else 's'}",
        (Column("kind", "Kind", False), Column("compactions", "Compactions")),
        tuple(rows),
        "Nothing was compacted in this range.",
    )


def _yields(found: Metrics, links: Links) -> TableView:
    rows = [
        (
            text(class_title(row.budget_class)),
            count(row.steps, links.requests(yielded=row.budget_class)),
            count(row.tokens),
            count(row.items),
        )
        for row in found.yields
    ]
    rows += [
        (
            text(f"Exceeded: {class_title(name)}"),
            count(many, links.sessions(has="exceeded"), "bad"),
            Datum(None, "–"),
            Datum(None, "–"),
        )
        for name, many in found.exceeded
    ]
    return TableView(
        "yields",
        "Yields by class",
        f"before {number(found.totals.pressure)} of {number(found.totals.requests)} requests",
        (
            Column("class", "Class", False),
            Column("requests", "Requests"),
            Column("tokens", "Tokens given up"),
            Column("items", "Items"),
        ),
        tuple(rows),
        "No request was under pressure in this range.",
    )


def _failed_opens(found: Metrics) -> TableView:
    return TableView(
        "failed_opens",
        "Refused at open, by class",
        "no session was opened, so nothing can be listed; rotations are refused the same way",
        (
            Column("class", "Class", False),
            Column("code", "Code", False),
            Column("opens", "Opens"),
            Column("rotations", "Rotations"),
            Column("needed_most", "Most tokens asked for"),
        ),
        tuple(
            (
                text(class_title(row.budget_class)),
                text(row.code),
                count(row.opens, tone="bad"),
                count(row.rotations, tone="bad"),
                count(row.needed_most),
            )
            for row in found.refused_opens
        ),
        "Every session that was asked for was opened.",
    )


def _estimator(found: Metrics, links: Links) -> TableView:
    return TableView(
        "estimator",
        "Estimator error by model",
        "counted against billed, signed: below nought, we counted too little. Factor, samples and latest error, which the"
        " factor has part in, are as of now",
        (
            Column("model", "Model", False),
            Column("error", "Error", ratio=True),
            Column("samples", "Requests"),
            Column("factor", "Factor learnt"),
            Column("last_error", "Latest error"),
        ),
        tuple(_estimate(row, links) for row in found.estimates if row.reported),
        "No usage was reported in this range.",
    )


def _estimate(row: ModelEstimate, links: Links) -> tuple[Datum, ...]:
    told = links.requests(model=row.model, provider=row.provider, usage="reported")
    learnt = row.learnt
    counted = "counted by " + ", ".join(row.counters)
    return (
        text(one_line(f"{row.provider}/{row.model}"), told, counted),
        ratio(row.error, form="signed"),
        count(row.reported, told),
        Datum(learnt.factor, f"{learnt.factor:.3f}", f"{number(learnt.samples)} calls")
        if learnt
        else Datum(None, "–"),
        Datum(learnt.last_error, percent(learnt.last_error)) if learnt else Datum(None, "–"),
    )


def _side_calls(found: Metrics) -> TableView:
    return TableView(
        "side_calls",
        "Our own calls",
        "summaries, probes and counts; not among the requests above, and of no agent or engine",
        (
            Column("purpose", "Purpose", False),
            Column("calls", "Calls"),
            Column("failed", "Failed"),
            Column("usd", "Cost"),
        ),
        tuple(
            (
                text(row.purpose),
                count(row.calls),
                count(row.failed, tone="bad"),
                money(row.cost_microdollars, unpriced=row.unpriced),
            )
            for row in found.side_calls
        ),
        "None in this range.",
    )
