"""What a request will read from the provider's cache, and what it will write (design 8).

A request is a trail of places: after the prefix and after each segment, with a chained digest and the tokens so far. Two
requests that share a place share every byte before it. Entries are what earlier requests of the session wrote and what is
still alive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.request import ModelRequest

_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Place:
    """The end of the prefix or of a segment."""

    digest: str
    """Chained: equal places mean equal requests up to here."""
    tokens: int
    positions: int
    """Cache positions (blocks) up to here."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something an earlier request left in the cache."""

    digest: str
    tokens: int
    life: int
    """Seconds it lives from its last use."""
    used_at: float
    """Seconds since the epoch."""

    def alive(self, now: float) -> bool:
        """Whether it can still be read."""
        return now < self.used_at + self.life


@dataclass(frozen=True, slots=True)
class Prediction:
    """Disjoint token buckets of one request's prompt, expected."""

    read: int
    write: int
    fresh: int
    entries: tuple[Entry, ...]
    """What is in the cache after this request, as far as this session knows."""
    why: str
    """`hit`, `first`, `expired`, `changed`, `lookback`, `below_minimum` or `no_cache`."""


def trail_of(request: ModelRequest) -> tuple[Place, ...]:
    """The places of a built request, in wire order."""
    plan = request.plan
    chain = hashlib.sha256(f"{plan.provider}/{plan.model}/{plan.wire_prefix_sha256}".encode())
    tokens = plan.prefix_tokens
    positions = len(plan.defined) + len(request.prefix.system)
    places = [Place(chain.hexdigest()[:_DIGITS], tokens, positions)]
    rows = {row.row: row.tokens for row in request.manifest.rows}
    for segment in request.segments:
        chain.update(segment.digest.encode())
        own = request.unit_tokens.get(segment.unit) if segment.unit is not None else None
        tokens += own if own is not None else rows.get(segment.row, 0)
        positions += sum(
            fragment.positions for fragment in request.fragments[segment.first : segment.end]
        )
        places.append(Place(chain.hexdigest()[:_DIGITS], tokens, positions))
    return tuple(places)


def marked_places(request: ModelRequest, trail: Sequence[Place]) -> tuple[tuple[Place, int], ...]:
    """The places that carry a marker, each with the life asked for (seconds), in wire order."""
    ends = {segment.end: index + 1 for index, segment in enumerate(request.segments)}
    lives = {"5m": 300, "1h": 3600}
    found: dict[int, int] = {}
    for marker in request.markers:
        at = 0 if marker.after_fragment is None else ends.get(marker.after_fragment + 1)
        if at is not None:
            found[at] = max(found.get(at, 0), lives[marker.ttl])
    return tuple((trail[at], found[at]) for at in sorted(found))


def predict(
    trail: Sequence[Place],
    marks: Sequence[tuple[Place, int]],
    entries: Sequence[Entry],
    *,
    rules: CacheRules,
    now: float,
) -> Prediction:
    """Predict one request.

    Args:
        trail: its places, from `trail_of`.
        marks: its marked places, from `marked_places`; for `prefix` caches every place counts.
        entries: what earlier requests left, alive or not.
        now: seconds since the epoch, as recorded for the request.
    """
    total = trail[-1].tokens
    if rules.kind == "none":
        return Prediction(0, 0, total, (), "no_cache")
    known = {entry.digest: entry for entry in entries}
    if rules.kind == "prefix":
        return _prefix(trail, known, rules, now)
    hit, why = _marked_hit(trail, marks, known, rules, now)
    read = hit.tokens if hit is not None else 0
    kept = {entry.digest: entry for entry in entries if entry.alive(now)}
    if hit is not None:
        kept[hit.digest] = Entry(hit.digest, hit.tokens, known[hit.digest].life, now)
    written = read
    for place, life in marks:
        if place.tokens >= rules.minimum:
            written = max(written, place.tokens)
            kept.setdefault(place.digest, Entry(place.digest, place.tokens, life, now))
    if not any(place.tokens >= rules.minimum for place, _ in marks):
        why = "below_minimum"
    return Prediction(read, written - read, total - written, tuple(kept.values()), why)


def _marked_hit(
    trail: Sequence[Place],
    marks: Sequence[tuple[Place, int]],
    known: dict[str, Entry],
    rules: CacheRules,
    now: float,
) -> tuple[Place | None, str]:
    """The longest live entry any marker can find, and the reason where there is none."""
    best: Place | None = None
    beyond = expired = False
    for place, _ in marks:
        for candidate in reversed(trail):
            entry = known.get(candidate.digest)
            if candidate.positions > place.positions or entry is None:
                continue
            if rules.lookback and place.positions - candidate.positions >= rules.lookback:
                beyond = True
                break
            if not entry.alive(now):
                expired = True
                continue
            if best is None or candidate.tokens > best.tokens:
                best = candidate
            break
    if best is not None:
        return best, "hit"
    if not known:
        return None, "first"
    return None, "expired" if expired else ("lookback" if beyond else "changed")


def _prefix(
    trail: Sequence[Place], known: dict[str, Entry], rules: CacheRules, now: float
) -> Prediction:
    total = trail[-1].tokens
    shared = next((p for p in reversed(trail) if p.digest in known), None)
    live = next(
        (p for p in reversed(trail) if p.digest in known and known[p.digest].alive(now)), None
    )
    tokens = live.tokens if live is not None else 0
    read = 0
    if tokens >= rules.minimum:
        read = rules.minimum + (tokens - rules.minimum) // rules.step * rules.step
    why = "hit" if read else ("first" if not known else "expired" if shared else "changed")
    if total < rules.minimum:
        why = "below_minimum"
    entries = tuple(Entry(place.digest, place.tokens, rules.short_life, now) for place in trail)
    return Prediction(read, 0, total - read, entries, why)
