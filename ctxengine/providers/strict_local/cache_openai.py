"""OpenAI's two prefix caches: by breakpoints (GPT-5.6 and later), and automatic in steps (providers.md 1.1, 1.3).

At breakpoints: implicit mode writes at the end of the latest message that may carry one, and at the latest three
explicit ones; explicit mode at the latest four, and with none marked at nothing. Older breakpoints are forgotten in
silence. A read looks at the first two and the latest fifty breakpoints and at the ends of the latest twenty messages,
which is the smaller of the two depths that the vendor states.

Automatic: the longest prefix in common with an earlier prompt, rounded down to whole steps above the minimum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.providers.strict_local.segments import Chain

MINIMUM = 1_024
_LIVES = {"30m": 1_800.0, "12h": 43_200.0}
_MOST_WRITES = 4
_FIRST, _LATEST, _ENDS = 2, 50, 20
_KEPT_PROMPTS = 64
_IDLE = {"in_memory": 600.0, "24h": 86_400.0}
_OLDEST_IN_MEMORY = 3_600.0


class CacheUsage(NamedTuple):
    """Tokens read and written; both are parts of the prompt's total."""

    read: int
    written_30m: int = 0
    written_12h: int = 0

    @property
    def written(self) -> int:
        """Tokens written, whatever their life."""
        return self.written_30m + self.written_12h


class Asked(NamedTuple):
    """What a request says about caching."""

    scope: str
    """Model and cache key: entries are found within one scope."""
    explicit: bool
    life: str
    """`30m` or `12h`."""
    implicit_at: int | None
    """Index of the segment with the automatic breakpoint."""


@dataclass(slots=True)
class _Entry:
    life: float
    expires: float


class BreakpointCache:
    """Entries at breakpoints."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[tuple[str, str], _Entry] = {}

    def serve(self, chain: Chain, asked: Asked, now: float) -> CacheUsage:
        """Read the longest entry and write what is missing."""
        written_at = sorted(_written(chain, asked))
        if asked.explicit and not written_at:
            return CacheUsage(0)
        read = self._read(chain, asked, now)
        done, written = read, 0
        for index in written_at:
            total = chain.totals[index]
            if total < MINIMUM:
                continue
            self._write(asked, chain.digests[index], now)
            if total > done:
                written += total - done
                done = total
        long = asked.life == "12h"
        return CacheUsage(read, 0 if long else written, written if long else 0)

    def _read(self, chain: Chain, asked: Asked, now: float) -> int:
        for index in sorted(_looked_at(chain, asked), reverse=True):
            entry = self._entries.get((asked.scope, chain.digests[index]))
            if entry is not None and entry.expires > now:
                entry.expires = now + entry.life
                return chain.totals[index]
        return 0

    def _write(self, asked: Asked, key: str, now: float) -> None:
        life = _LIVES[asked.life]
        entry = self._entries.get((asked.scope, key))
        if entry is None or entry.expires <= now:
            self._entries[asked.scope, key] = _Entry(life, now + life)
        else:
            entry.life = max(entry.life, life)
            entry.expires = now + entry.life


def _written(chain: Chain, asked: Asked) -> set[int]:
    marks = chain.marked()
    if asked.explicit:
        return set(marks[-_MOST_WRITES:])
    kept = set(marks[-(_MOST_WRITES - 1) :])
    return kept if asked.implicit_at is None else kept | {asked.implicit_at}


def _looked_at(chain: Chain, asked: Asked) -> set[int]:
    marks = chain.marked()
    ends = [index for index, segment in enumerate(chain.segments) if segment.ends_message]
    seen = {*marks[:_FIRST], *marks[-_LATEST:], *ends[-_ENDS:]}
    return seen if asked.implicit_at is None else seen | {asked.implicit_at}


@dataclass(slots=True)
class _Prompt:
    chain: Chain
    made: float
    used: float
    retention: str


class AutomaticCache:
    """Prompts seen, for models before GPT-5.6."""

    def __init__(self) -> None:
        """Start empty."""
        self._seen: dict[str, deque[_Prompt]] = {}

    def serve(
        self, chain: Chain, scope: str, *, step: int, retention: str, now: float
    ) -> CacheUsage:
        """Read the longest common prefix in whole steps, and remember this prompt."""
        prompts = self._seen.setdefault(scope, deque(maxlen=_KEPT_PROMPTS))
        best, source = 0, None
        for prompt in _living(prompts, now):
            shared = _shared_tokens(prompt.chain, chain)
            if shared > best:
                best, source = shared, prompt
        if source is not None:
            source.used = now
        if chain.tokens >= MINIMUM:
            prompts.append(_Prompt(chain, now, now, retention))
        if best < MINIMUM:
            return CacheUsage(0)
        return CacheUsage(MINIMUM + (best - MINIMUM) // step * step)


def _living(prompts: deque[_Prompt], now: float) -> Iterator[_Prompt]:
    for prompt in prompts:
        idle = now - prompt.used < _IDLE[prompt.retention]
        if idle and (prompt.retention != "in_memory" or now - prompt.made < _OLDEST_IN_MEMORY):
            yield prompt


def _shared_tokens(old: Chain, new: Chain) -> int:
    if old.seeds != new.seeds:
        return 0
    for index, (one, other) in enumerate(zip(old.segments, new.segments, strict=False)):
        if one.data != other.data:
            before = new.totals[index - 1] if index else 0
            same = _shared_chars(one.data, other.data)
            return before + other.tokens * same // max(1, len(other.data))
    shorter = old if old.tokens < new.tokens else new
    return shorter.tokens


def _shared_chars(one: str, other: str) -> int:
    """Length of the common beginning, found by halving: a comparison of slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
