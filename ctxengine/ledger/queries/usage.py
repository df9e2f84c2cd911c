"""Usage figures in disjoint buckets, where "not reported" is not the same as nought (ui 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call by bucket; None where the provider said nothing."""

    fresh: int | None = None
    read: int | None = None
    write: int | None = None
    output: int | None = None

    @property
    def prompt(self) -> int | None:
        """All prompt tokens billed, cache tiers included; None when nothing was reported."""
        parts = [part for part in (self.fresh, self.read, self.write) if part is not None]
        return sum(parts) if parts else None

    @property
    def reported(self) -> bool:
        """Whether any prompt figure is known."""
        return self.prompt is not None


def usage_of(stored: Mapping[str, Any] | None) -> Usage:
    """Read the stored form; unknown or malformed figures count as not reported."""
    if not stored:
        return Usage()

    def figure(name: str) -> int | None:
        value = stored.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    lives = [figure("cache_write_5m"), figure("cache_write_1h")]
    written = [tokens for tokens in lives if tokens is not None]
    return Usage(
        fresh=figure("fresh"),
        read=figure("cache_read"),
        write=sum(written) if written else None,
        output=figure("output"),
    )
