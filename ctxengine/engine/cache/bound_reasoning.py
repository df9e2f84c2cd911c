"""Models whose signed reasoning is bound to every byte before it, and what breaks the bond (providers.md 0, 2.2; design 7.12).

As data with its date: a vendor changes such things from month to month.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctxengine.engine.wire.base import WireApi

if TYPE_CHECKING:
    from ctxengine.engine.inputs import StepInputs

BINDING_DATE = "2026-11-29"

_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d{1,2})(?!\d))?")
_SINCE = {
    "fable": (5, 1),
    "mythos": (5, 1),
    "opus": (5, 5),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
"""First version of each line that binds its reasoning; later ones do as well."""

_REASONS_ON_RESPONSES = re.compile(r"gpt-(?:[5-9]|\d\d)|gpt-oss|(?:^|/)o\d")

_BEFORE_REASONING = (
    "epoch",
    "cut",
    "pointer",
    "active_pointer",
    "pinned",
    "folded",
    "excluded",
    "projection",
)
"""Recorded inputs that decide what stands before a run's reasoning; whatever is appended stands behind it."""


def binds_reasoning(model: str) -> bool:
    """Whether the model refuses its own reasoning once anything before it has changed."""
    match = _NAME.search(model.lower())
    if match is None:
        return False
    return (int(match[2]), int(match[3] or 0)) >= _SINCE[match[1]]


def loses_reasoning(api: WireApi, model: str) -> bool:
    """Whether changed bytes cost the model its reasoning: refused where it is bound, withheld without a word on Responses."""
    if api is WireApi.OPENAI_RESPONSES:
        return _REASONS_ON_RESPONSES.search(model.lower()) is not None
    return binds_reasoning(model)


def rewrites_before(earlier: StepInputs, now: StepInputs) -> bool:
    """Whether a step of the same run changes bytes that its reasoning stands behind."""
    same = all(getattr(earlier, name) == getattr(now, name) for name in _BEFORE_REASONING)
    return not same or earlier.boundary != now.boundary
