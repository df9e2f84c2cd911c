"""What a runtime can do about a failure that it reported: one sentence for each code, as the console says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctxengine.engine.boundary.failures import FAILURE_OF

_REMEDIES: Final[Mapping[str, str]] = {
    "over_length": "Assemble again: the next request of this run is made smaller. A second such refusal fails it.",
    "context_length_exceeded": "End the run, compact by hand, or choose a larger window. Nothing was clipped.",
    "rate_limited": "Wait as long as the provider asks, then assemble again.",
    "transient": "Wait a moment, then assemble again.",
    "auth": "Call with a key that may use this model, of an account that is not used up.",
    "invalid_request": "Read the provider's own message; where it is about what was assembled, report it as a defect.",
    "too_large": "Leave large attachments out.",
}

_TWICE: Final = (
    "The provider found it too long twice: end the run, or route the session to a larger model."
)


def remedy_of(code: str | None, *, over: bool) -> str | None:
    """The remedy of a reported failure; None where there is no failure.

    Args:
        code: of `providers.failures`, or of the table of compaction failures.
        over: whether the run does not go on by itself.
    """
    if code is None:
        return None
    if code == "over_length" and over:
        return _TWICE
    if code in _REMEDIES:
        return _REMEDIES[code]
    kind = FAILURE_OF.get(code)
    return kind.remedy if kind is not None else None
