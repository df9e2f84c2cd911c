"""The provider's clock: real or injected time that can be moved on, so that lifetimes are tested without waiting."""

from __future__ import annotations

import time
from collections.abc import Callable


class AdvancingClock:
    """Seconds since 1970 from any source, plus what it was moved on by."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        """Take time from `source`."""
        self._source = source
        self._advanced = 0.0

    def now(self) -> float:
        """The present, in seconds."""
        return self._source() + self._advanced

    def advance(self, seconds: float) -> None:
        """Move the clock on.

        Raises:
            ValueError: backwards, which no cache could make sense of.
        """
        if seconds < 0:
            raise ValueError(f"The clock cannot go back by {-seconds} seconds.")
        self._advanced += seconds
