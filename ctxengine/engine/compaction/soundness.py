"""What makes a summary fit to be installed (design 7.9; field note 8). Anything else changes nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ctxengine.engine.compaction.net_cost import is_progress


class Refusal(StrEnum):
    """Why no summary was installed."""

    NOTHING_TO_COMPACT = "nothing_to_compact"
    DEPTH_EXCEEDED = "depth_exceeded"
    NO_PROGRESS = "no_progress"
    NO_ROOM = "no_room"
    ABNORMAL_STOP = "abnormal_stop"
    EMPTY = "empty_summary"
    HOLDS_TOOL_CALL = "holds_tool_call"
    SOURCE_CHANGED = "source_changed"
    DOES_NOT_PAY = "does_not_pay"
    OVER_BUDGET = "summary_over_budget"
    NO_SUMMARISER = "no_summariser"
    SUMMARISER_FAILED = "summariser_failed"


REMEDY = {
    Refusal.NOTHING_TO_COMPACT: "append something first",
    Refusal.DEPTH_EXCEEDED: "child_run",
    Refusal.NO_PROGRESS: "child_run",
    Refusal.NO_ROOM: "route the session to a larger model",
    Refusal.ABNORMAL_STOP: "retry",
    Refusal.EMPTY: "retry",
    Refusal.HOLDS_TOOL_CALL: "retry",
    Refusal.SOURCE_CHANGED: "retry",
    Refusal.DOES_NOT_PAY: "wait or force",
    Refusal.OVER_BUDGET: "retry",
    Refusal.NO_SUMMARISER: "name a model that can be called, or choose deterministic",
    Refusal.SUMMARISER_FAILED: "retry",
}
"""What to do instead."""


class SummaryAnswer(NamedTuple):
    """What a summariser gives back."""

    text: str
    stop_reason: str = "stop"
    """`stop` when it came to its own end."""
    tool_calls: int = 0
    by_model: bool = False
    """Whether a model wrote it: then it is prose, to be completed with what must survive word for word."""
    over_budget: bool = False
    """Whether it stayed longer than it was allowed to be, even when asked again."""


def unsound(answer: SummaryAnswer) -> Refusal | None:
    """The first reason not to trust an answer; None for a sound one."""
    if answer.stop_reason != "stop":
        return Refusal.ABNORMAL_STOP
    if answer.tool_calls:
        return Refusal.HOLDS_TOOL_CALL
    if not answer.text.strip():
        return Refusal.EMPTY
    if answer.over_budget:
        return Refusal.OVER_BUDGET
    return None


def too_large(before: int, after: int) -> Refusal | None:
    """Refuses a summary that is not clearly smaller than what it replaces."""
    return None if is_progress(before, after) else Refusal.NO_PROGRESS
