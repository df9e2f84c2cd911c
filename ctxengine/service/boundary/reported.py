"""What a provider's refusal of a request means in a `boundary` session: nothing is clipped (design 6)."""

from __future__ import annotations

import re

from ctxengine.engine.boundary.failures import FAILURE_OF
from ctxengine.providers.failures import Failure

_CODE = re.compile(r"compaction_[a-z_]{3,40}")
_MOST_CHARS = 20_000


def as_boundary_says(failure: Failure, body: str) -> Failure:
    """The failure with this engine's code, and with what may follow.

    A request that was too long fails with `context_length_exceeded`; a refused window keeps the provider's own code, whose
    remedy is in the table of failures.
    """
    if failure.code == "over_length":
        return failure._replace(code="context_length_exceeded", next="fail")
    named = next((code for code in _CODE.findall(body[:_MOST_CHARS]) if code in FAILURE_OF), None)
    if named is None:
        return failure
    again = FAILURE_OF[named].retryable
    return failure._replace(code=named, next="reassemble" if again else "fail")
