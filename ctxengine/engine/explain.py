"""First divergence of two requests and the class of its cause (design 8; ui complaints 4 and 5).

Requests are compared as ordered sections: prefix rows, then segments. A request that only grew at its end did not change; one
that lost its end was shortened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Manifest, Reason, Span
from ctxengine.engine.plan.plan import Plan, row_texts
from ctxengine.engine.request import ModelRequest, Segment


class Cause(StrEnum):
    """Why two requests differ where they first differ."""

    SAME = "same"
    APPENDED = "appended"
    """The second continues the first: only fresh rows and what lies behind them moved."""
    SHORTENED = "shortened"
    MODEL = "model"
    SYSTEM = "system"
    PERSONA = "persona"
    TOOLS = "tools"
    SNAPSHOT = "snapshot"
    TRUNCATION = "truncation"
    """Tool results became pointers."""
    HISTORY_CUT = "history_cut"
    CHECKPOINT = "checkpoint"
    """Another checkpoint stands for the settled history, or none any more."""
    RUN_BOUNDARY = "run_boundary"
    """A run ended: its reasoning left."""
    FRESH_ROWS = "fresh_rows"
    OTHER_HISTORY = "other_history"


_ROW_CAUSE = {
    1: Cause.SYSTEM,
    2: Cause.SYSTEM,
    3: Cause.SYSTEM,
    4: Cause.PERSONA,
    8: Cause.SNAPSHOT,
}
_FRESH_ROWS = frozenset({11, 12, 13, 14})
CHECKPOINTS = frozenset({Reason.IN_NATIVE_WINDOW, Reason.IN_NOTE})
"""Reasons of what a checkpoint stands for."""


@dataclass(frozen=True, slots=True)
class Change:
    """Where and why `after` parts from `before`."""

    cause: Cause
    detail: str
    row: int | None = None
    row_name: str = ""
    item: str | None = None
    event_sequence: EventSeq | None = None
    same_tokens: int = 0
    """Tokens in front of the first change, by stored counts."""


def compare(before: ModelRequest, after: ModelRequest) -> Change:
    """Compare two requests in wire order."""
    prefix = _compare_plans(before.plan, after.plan, before.nonce_key, after.nonce_key)
    if prefix is not None:
        return prefix
    old, new = before.segments, after.segments
    same = 0
    while same < min(len(old), len(new)) and old[same].digest == new[same].digest:
        same += 1
    tokens = after.plan.prefix_tokens + sum(
        after.unit_tokens.get(segment.unit, 0) for segment in new[:same] if segment.unit
    )
    if same == len(old) == len(new):
        return Change(Cause.SAME, "The requests are equal.", same_tokens=tokens)
    moved = _checkpoint_change(before, after, old[same:], new[same:], tokens)
    return moved or _segment_change(old, new, same, tokens)


def _checkpoint_change(
    before: ModelRequest,
    after: ModelRequest,
    old: tuple[Segment, ...],
    new: tuple[Segment, ...],
    tokens: int,
) -> Change | None:
    """The change as a checkpoint's doing: where row 9 differs first, and another one stands there, or none any more."""
    was, now = checkpoint_span(before.manifest), checkpoint_span(after.manifest)
    event = now.numbers.get("event") if now else None
    gone = was.numbers.get("event") if was else None
    if event == gone or not any(side and side[0].row == 9 for side in (old, new)):
        return None
    if now is None or (gone is not None and event is not None and event < gone):
        stands = "the whole history stands" if now is None else f"checkpoint {event} stands again"
        detail, sequence = f"Checkpoint {gone} no longer stands: {stands}.", gone
    else:
        what = "native window" if now.reason is Reason.IN_NATIVE_WINDOW else "portable note"
        through = (now.to_item or "").partition(".")[0]
        detail, sequence = f"A new checkpoint, a {what}, stands for events 1 to {through}.", event
    return Change(
        Cause.CHECKPOINT,
        detail,
        9,
        ROWS[8].title,
        event_sequence=EventSeq(sequence) if sequence else None,
        same_tokens=tokens,
    )


def checkpoint_span(manifest: Manifest) -> Span | None:
    """The span of the checkpoint that a request stands on; None where it stands on none."""
    told = (span for span in manifest.spans if span.row == 9 and span.reason in CHECKPOINTS)
    return next(told, None)


def _segment_change(
    old: tuple[Segment, ...], new: tuple[Segment, ...], same: int, tokens: int
) -> Change:
    if same == len(new):
        return _at(old[same], Cause.SHORTENED, "The second request ends earlier.", tokens)
    if same == len(old):
        return _at(new[same], Cause.APPENDED, "The second request continues the first.", tokens)
    left, right = old[same], new[same]
    if left.row in _FRESH_ROWS and right.row not in _FRESH_ROWS:
        # Fresh rows always stand behind what is completed: whatever is new pushes them back.
        return _at(right, Cause.APPENDED, "New items stand where the fresh rows were.", tokens)
    if left.row in _FRESH_ROWS and right.row in _FRESH_ROWS:
        return _at(right, Cause.FRESH_ROWS, "The fresh rows differ.", tokens)
    if right.row == 9 or left.row == 9 or left.unit != right.unit:
        earlier = left.unit is not None and right.unit is not None and left.unit < right.unit
        if right.row == 9 or earlier:
            return _at(right, Cause.HISTORY_CUT, "The history cut moved.", tokens)
        return _at(right, Cause.OTHER_HISTORY, "Another stretch of history is shown.", tokens)
    if left.form != right.form:
        return _at(right, Cause.TRUNCATION, "Tool results became pointers.", tokens)
    return _at(right, Cause.RUN_BOUNDARY, "The unit's reasoning left with its run.", tokens)


def _at(segment: Segment, cause: Cause, detail: str, tokens: int) -> Change:
    row = ROWS[segment.row - 1]
    return Change(
        cause=cause,
        detail=detail,
        row=row.number,
        row_name=row.title,
        item=f"{segment.unit}.0" if segment.unit else None,
        event_sequence=segment.unit,
        same_tokens=tokens,
    )


def _compare_plans(before: Plan, after: Plan, before_key: bytes, after_key: bytes) -> Change | None:
    if (before.provider, before.model) != (after.provider, after.model):
        return _plan_change(Cause.MODEL, 5, "The model changed; nothing can be reused.", 0)
    if [tool.model_dump() for tool in before.defined] != [t.model_dump() for t in after.defined]:
        return _plan_change(Cause.TOOLS, 5, "Tool definitions differ.", 0)
    old, new = row_texts(before, before_key), row_texts(after, after_key)
    tokens = sum(tool.tokens for tool in after.defined)
    for row in sorted(set(old) | set(new)):
        if old.get(row) != new.get(row):
            return _plan_change(_ROW_CAUSE[row], row, f"{ROWS[row - 1].title} differs.", tokens)
        tokens += after.row_counts.get(str(row), (0, 0))[0]
    return None


def _plan_change(cause: Cause, row: int, detail: str, tokens: int) -> Change:
    return Change(cause, detail, row, ROWS[row - 1].title, same_tokens=tokens)


def common_prefix_bytes(a: bytes, b: bytes) -> int:
    """How many bytes two bodies share from the start; by halving, so that long bodies are compared by the machine."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
