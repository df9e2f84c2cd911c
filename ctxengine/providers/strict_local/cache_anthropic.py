"""Anthropic's prefix cache: written at markers, found by looking back from them (providers.md 1.1, 1.2).

A write happens at a marker whose prefix reaches the model's minimum. A read looks for an entry at the marker and at up
to nineteen positions before it. A life runs from the start of the request and starts again with every read. An entry
can be read once the first answer has begun, which is when `commit` is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.providers.strict_local.segments import Chain

LOOK_BACK = 20
"""Positions that a marker sees, its own included."""

LIVES = {"5m": 300.0, "1h": 3_600.0}
"""Seconds."""


class CacheUsage(NamedTuple):
    """Disjoint buckets of the prompt's tokens."""

    fresh: int
    read: int
    written_5m: int
    written_1h: int

    @property
    def written(self) -> int:
        """Tokens written, whatever their life."""
        return self.written_5m + self.written_1h


@dataclass(slots=True)
class _Entry:
    life: float
    expires: float


class Lookup(NamedTuple):
    """What a request reads, and what it will have written."""

    usage: CacheUsage
    started: float
    read: tuple[str, ...]
    writes: tuple[tuple[str, str], ...]
    """Digest and life of each entry to be made."""


class AnthropicCache:
    """The entries of one workspace."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[str, _Entry] = {}

    def look_up(self, chain: Chain, minimum: int, now: float) -> Lookup:
        """What a request finds. Nothing is written yet; what was found lives on."""
        marks = chain.marked()
        found = [self._find(chain, mark, now) for mark in marks]
        read_at = max((index for index in found if index is not None), default=None)
        read = 0 if read_at is None else chain.totals[read_at]
        done, sums, writes = read, {"5m": 0, "1h": 0}, []
        for mark in marks:
            total = chain.totals[mark]
            if total < minimum:
                continue
            life = chain.segments[mark].marker or "5m"
            writes.append((chain.digests[mark], life))
            if total > done:
                sums[life] += total - done
                done = total
        usage = CacheUsage(chain.tokens - done, read, sums["5m"], sums["1h"])
        seen = tuple(chain.digests[index] for index in found if index is not None)
        self._refresh(seen, now)
        return Lookup(usage, now, seen, tuple(writes))

    def commit(self, lookup: Lookup, now: float) -> None:
        """Make the entries readable: the answer has begun."""
        self._forget(now)
        for key, life in lookup.writes:
            entry = self._entries.get(key)
            if entry is None or entry.expires <= lookup.started:
                self._entries[key] = _Entry(LIVES[life], lookup.started + LIVES[life])
            else:
                # A longer life asked for later holds from then on; a shorter one changes nothing.
                entry.life = max(entry.life, LIVES[life])
                entry.expires = max(entry.expires, lookup.started + LIVES[life])

    def _find(self, chain: Chain, mark: int, now: float) -> int | None:
        least = chain.segments[mark].position - LOOK_BACK + 1
        for index in range(mark, -1, -1):
            if chain.segments[index].position < least:
                return None
            entry = self._entries.get(chain.digests[index])
            if entry is not None and entry.expires > now:
                return index
        return None

    def _refresh(self, keys: tuple[str, ...], now: float) -> None:
        for key in keys:
            self._entries[key].expires = now + self._entries[key].life

    def _forget(self, now: float) -> None:
        if len(self._entries) > 10_000:
            self._entries = {k: e for k, e in self._entries.items() if e.expires > now}
