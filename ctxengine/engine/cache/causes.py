"""Why less was read from a cache than was left in it: one table, for events, pages and reports (design 8)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Cause(StrEnum):
    """What we know of that explains a shorter read."""

    NONE = ""
    FIRST = "first_request"
    BELOW_MINIMUM = "below_minimum"
    LOOKBACK = "lookback_exceeded"
    EXPIRED = "ttl_gap"
    EXPIRED_ON_THE_WAY = "ttl_gap_before_sending"
    LIFE_UNKNOWN = "life_not_known"
    MODEL = "model_changed"
    EPOCH = "epoch_rotated"
    COMPACTED = "compacted"
    YIELDED = "yielded"
    PRESENTATION = "presentation_changed"
    ERASED = "erased"
    RUN_BOUNDARY = "run_boundary"
    IMAGES = "images_changed"
    THINKING = "thinking_changed"
    REWRITTEN = "history_rewritten"
    UNEXPLAINED = "unexplained"


class CauseRule(NamedTuple):
    """One cause in words, and the reasons of a provider that say the same."""

    cause: Cause
    words: str
    agrees_with: frozenset[str] = frozenset()
    """Provider reasons that name this cause; any other one that names a change contradicts it."""


_MESSAGES = frozenset({"messages_changed", "input_changed"})
_PREFIX = frozenset({"tools_changed", "system_changed", "model_changed"})

CAUSE_RULES: tuple[CauseRule, ...] = (
    CauseRule(Cause.NONE, "nothing was lost"),
    CauseRule(Cause.FIRST, "nothing of this session was cached yet"),
    CauseRule(Cause.BELOW_MINIMUM, "the prompt is below the model's minimum for caching"),
    CauseRule(Cause.LOOKBACK, "the entry lies further back than a marker looks"),
    CauseRule(Cause.EXPIRED, "the gap since the request before was longer than the entry lives"),
    CauseRule(
        Cause.EXPIRED_ON_THE_WAY,
        "the request was sent late: the entry ran out between building and answering",
    ),
    CauseRule(
        Cause.LIFE_UNKNOWN,
        "a long pause came before it, and how long this provider keeps a prefix is not known",
    ),
    CauseRule(Cause.MODEL, "another model answered, or was asked", frozenset({"model_changed"})),
    CauseRule(Cause.EPOCH, "the epoch rotated: the prefix is another one", _PREFIX | _MESSAGES),
    CauseRule(
        Cause.COMPACTED,
        "a compaction replaced history",
        _MESSAGES | {"context_compacted"},
    ),
    CauseRule(Cause.YIELDED, "a yield or the history cut took earlier bytes away", _MESSAGES),
    CauseRule(Cause.PRESENTATION, "an operator pinned, folded or excluded something", _MESSAGES),
    CauseRule(Cause.ERASED, "somebody's content was erased", _MESSAGES),
    CauseRule(Cause.RUN_BOUNDARY, "a run ended: its reasoning and fresh rows left", _MESSAGES),
    CauseRule(Cause.IMAGES, "the first picture came, or the last one left", _MESSAGES),
    CauseRule(
        Cause.THINKING,
        "thinking was switched on or off by the runtime",
        _MESSAGES | {"reasoning_effort_changed", "system_changed", "tools_changed"},
    ),
    CauseRule(Cause.REWRITTEN, "earlier content stands in another form", _MESSAGES),
    CauseRule(Cause.UNEXPLAINED, "nothing on our side explains it: the provider's own doing"),
)
RULE_OF_CAUSE = {rule.cause: rule for rule in CAUSE_RULES}

SAYS_NOTHING = frozenset(
    {
        "",
        "cache_hit",
        "unavailable",
        "previous_message_not_found",
        "comparison_response_not_found",
    }
)
"""Provider reasons that name no change."""


OF_BYTES = frozenset(
    {
        Cause.MODEL,
        Cause.EPOCH,
        Cause.COMPACTED,
        Cause.YIELDED,
        Cause.PRESENTATION,
        Cause.ERASED,
        Cause.RUN_BOUNDARY,
        Cause.IMAGES,
        Cause.REWRITTEN,
    }
)
"""Causes that a digest tells: what is sent is no longer what was sent."""


def contradicts(cause: Cause, reason: str) -> bool:
    """Whether a provider's own reason says something else than our cause."""
    if reason in SAYS_NOTHING or cause is Cause.NONE:
        return False
    return reason not in RULE_OF_CAUSE[cause].agrees_with
