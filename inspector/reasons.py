"""The manifest's reasons and the yield ladder in words. Pages say nothing that is not in a manifest."""

from __future__ import annotations

from ctxengine.engine.budget.classes import RULE_OF, BudgetClass
from ctxengine.engine.explain import CHECKPOINTS, checkpoint_span
from ctxengine.engine.layout import ROWS, Row
from ctxengine.engine.manifest import Cut, Form, Manifest, Reason, Span, YieldStep
from inspector.figures import number

WORDS: dict[Reason, str] = {
    Reason.PINNED: "pinned in this epoch's plan",
    Reason.NOTHING_PINNED: "the plan pins nothing here",
    Reason.NOTHING_THIS_STEP: "nothing for this step",
    Reason.FITS: "within the largest suffix that fits",
    Reason.ACTIVE_RUN: "part of the open run, which is never cut",
    Reason.SENT_EARLIER: "stays where it was sent",
    Reason.NEVER_YIELDS: "never yields",
    Reason.BELOW_CUT: "before the history cut",
    Reason.BELOW_POINTER_FLOOR: "results older than the pointer floor",
    Reason.ACTIVE_TOO_LARGE: "shortened, since the open run alone does not fit",
    Reason.OMISSION: "says what the cut left out",
    Reason.OVER_CAP: "dropped or trimmed by its class cap",
    Reason.YIELDED: "gave up its tokens under pressure",
    Reason.SUMMARISED: "covered by a summary",
    Reason.PINNED_BY_HAND: "pinned whole by an operator",
    Reason.FOLDED_BY_HAND: "folded by an operator",
    Reason.EXCLUDED_BY_HAND: "excluded by an operator",
    Reason.CLOSED_TURN: "a closed turn, whole, its results as digests",
    Reason.PROMOTED: "brought back whole, since the directive is about it",
    Reason.AS_CARD: "its card stands for the turn",
    Reason.IN_PACKET: "covered by the packet",
    Reason.BEHIND_RESET: "before the reset with handoff; recall alone reaches it",
    Reason.AFTER_BOUNDARY: "after the checkpoint's boundary",
    Reason.IN_NATIVE_WINDOW: "covered by the provider's own window",
    Reason.IN_NOTE: "covered by the continuation note",
    Reason.RECOVERED: "selected from the archive",
    Reason.LEFT_IN_ARCHIVE: "left in the archive, not summarised",
    Reason.RETAINED: "marked to be retained",
}

FORM_WORDS: dict[Form, str] = {
    Form.WHOLE: "whole",
    Form.EXCERPT: "excerpt",
    Form.WINDOW: "window",
    Form.DIGEST: "digest",
    Form.CARD: "card",
    Form.PACKET: "packet",
    Form.POINTER: "pointer",
    Form.OUT: "left out",
    Form.EMPTY: "empty",
}

STAND_INS: dict[Reason, str] = {
    Reason.IN_NATIVE_WINDOW: "the provider's own window",
    Reason.IN_NOTE: "a continuation note",
    Reason.SUMMARISED: "a summary",
    Reason.IN_PACKET: "a packet",
    Reason.AS_CARD: "cards of turns",
    Reason.OMISSION: "one line",
}
"""What stands in row 9 for a range of events, by the reason of its span."""

_FIGURE_WORDS = {"packet": "packet tokens"}
"""Figures that are called otherwise than their key: a packet by its number would be taken for its event."""

OUTCOME_WORDS = {
    "ran": "ran",
    "not_needed": "not needed",
    "nothing_to_give": "nothing to give",
}

_ROW = {row.number: row for row in ROWS}


def row_of(row_number: int) -> Row:
    """The row of that number."""
    return _ROW[row_number]


def class_title(name: str) -> str:
    """A budget class in words."""
    try:
        return RULE_OF[BudgetClass(name)].title
    except ValueError:
        return name.replace("_", " ").capitalize()


def figures_of(span: Span) -> str:
    """The figures a reason rests on, as `room 76,944 · suffix 75,100`; a checkpoint by its event."""
    if span.reason in CHECKPOINTS:
        return f"checkpoint {number(span.numbers['event'])}" if "event" in span.numbers else ""
    return " · ".join(
        f"{_FIGURE_WORDS.get(name, name.replace('_', ' '))} {number(value)}"
        for name, value in span.numbers.items()
        # Older records know no event for a summary that their own request made.
        if (name, value) != ("event", 0)
    )


def why(span: Span, cut: Cut | None = None) -> str:
    """Why a span has its form, with its figures; what was cut names the cut's where it has none."""
    words = WORDS[span.reason]
    told = figures_of(span)
    if not told and cut is not None and span.reason is Reason.BELOW_CUT:
        told = f"room {number(cut.room)} · suffix {number(cut.suffix)}"
    if span.reason is Reason.BELOW_CUT and told:
        return f"{words}; it lost to: {told}"
    return f"{words} ({told})" if told else words


def history_in_words(manifest: Manifest) -> str:
    """What stands for history, and where it starts."""
    point = checkpoint_span(manifest)
    return cut_in_words(manifest.cut) if point is None else _checkpoint_in_words(point, manifest)


def _checkpoint_in_words(point: Span, manifest: Manifest) -> str:
    cut = manifest.cut
    again = [span for span in manifest.spans if span.reason is Reason.RETAINED]
    what = "native window" if point.reason is Reason.IN_NATIVE_WINDOW else "portable note"
    through = (point.to_item or "").partition(".")[0]
    words = (
        f"Checkpoint {number(point.numbers.get('event'))}, a {what} of {number(point.tokens)} tokens, stands for events 1 to"
        f" {number(int(through))}: {number(cut.left_out_units)} {_some('unit', cut.left_out_units)} of"
        f" ≈ {number(cut.left_out_tokens)} tokens are in it and not shown."
    )
    if again:
        tokens = sum(span.tokens for span in again)
        words += f" Shown again behind it: {number(len(again))} {_some('unit', len(again))}, {number(tokens)} tokens."
    return words + f" From event {number(cut.at_sequence)} on everything stands whole."


def _some(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def cut_in_words(cut: Cut) -> str:
    """Where history starts and by which number."""
    if not cut.left_out_units:
        words = f"Nothing is cut: history takes {number(cut.suffix)} of the room of {number(cut.room)} tokens."
        if cut.uncut > cut.suffix:
            words += f" With every result whole it would take {number(cut.uncut)}."
        return words
    turns = "turn" if cut.left_out_turns == 1 else "turns"
    units = "unit" if cut.left_out_units == 1 else "units"
    return (
        f"Cut at event {number(cut.at_sequence)}: the suffix from there takes {number(cut.suffix)} of the"
        f" room of {number(cut.room)} tokens. {number(cut.left_out_units)} {units} in"
        f" {number(cut.left_out_turns)} {turns} are left out: {number(cut.left_out_tokens)} tokens with every result whole."
    )


def yield_in_words(step: YieldStep) -> str:
    """What one step of the ladder did."""
    if step.outcome != "ran":
        return OUTCOME_WORDS.get(step.outcome, step.outcome)
    items = "item" if step.items == 1 else "items"
    return (
        f"{number(step.tokens_before)} → {number(step.tokens_after)},"
        f" {number(step.items)} {items} touched"
    )
