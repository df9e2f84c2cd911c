"""What a request will read from the provider's cache, and what it will write (design 8).

Entries are what earlier requests of the session left in the cache and what is still alive. All figures are raw counts; what
the provider measured at an entry is kept beside it, so that the next report can be held against it exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.cache.trail import Place, Trail
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.markers import place

_HOUR = 3600
_KEPT = 12
"""Entries carried from request to request; older ones are out of every marker's reach."""
NOT_KNOWN = "not_known"
UNPREDICTED = frozenset({"no_cache", NOT_KNOWN})
"""Why nothing is predicted: the nought that then stands for a read is no expectation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something an earlier request left in the cache."""

    digest: str
    tokens: int
    life: int
    """Seconds it lives from its last use."""
    used_at: float
    """Seconds since the epoch; a life runs from the start of the request."""
    measured: int | None = None
    """The provider's own count up to here, once a report told it."""
    bare: str = ""
    """The place without reasoning; it becomes the digest when the provider says that it withheld some."""
    back: int | None = None
    """The provider's count up to here, counted back from the end of a request that it counted, where that is not far."""

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
    """`hit`, `first`, `expired`, `changed`, `lookback`, `below_minimum`; `not_cached` where the model was seen to keep nothing.
    `no_cache` and `not_known` predict nothing: of the provider's cache nothing is known, or not whether it keeps for so long.
    """
    at: str = ""
    """Digest of the entry that is read."""
    measured: int | None = None
    """The provider's own count of what is read."""
    lost: int = 0
    """Tokens that the request before left to be read and that this one does not find."""
    back: int | None = None
    """The same, counted back from a counted end."""
    slack: float | None = None
    """Seconds that the entry still lives when the request is built."""
    lost_to: str = ""
    """`expired`, `changed` or `lookback`, where something is lost."""
    behind: int = 0
    """Of a cache of prefixes: size of the segment behind what is read, of which it may hold the beginning."""


def marked_places(
    request: ModelRequest, trail: Trail, rules: CacheRules
) -> tuple[tuple[Place, int], ...]:
    """The places on which markers settle, each with the life it gets (seconds), in wire order."""
    if not request.markers or rules.kind != "markers":
        return ()
    # Only where the longer life is an hour can a marker ask for it by that name.
    long = rules.long_life if rules.long_life == _HOUR else rules.short_life
    lives = {"5m": rules.short_life, "1h": long}
    prefix = request.prefix
    settled = place(
        request.markers,
        request.fragments,
        tools=bool(prefix.tools) and trail.prefix > 0,
        system=bool(prefix.system),
    )
    found: dict[int, int] = {}
    if settled.tools is not None:
        found[0] = lives[settled.tools]
    if settled.system is not None:
        found[trail.prefix] = lives[settled.system]
    for index, ttl in settled.fragments.items():
        at = _place_at(trail, index + 1)
        found[at] = max(found.get(at, 0), lives[ttl])
    return tuple((trail.places[at], found[at]) for at in sorted(found))


def _place_at(trail: Trail, fragments: int) -> int:
    """The last place that ends at or before so many fragments."""
    at = len(trail.places) - 1
    while at > trail.prefix and trail.places[at].fragments > fragments:
        at -= 1
    return at


def predict(
    trail: Trail,
    marks: Sequence[tuple[Place, int]],
    entries: Sequence[Entry],
    *,
    rules: CacheRules,
    now: float,
    factor: float = 1.0,
    reach: str = "",
) -> Prediction:
    """Predict one request.

    Args:
        trail: its places, from `trail_of`.
        marks: its marked places, from `marked_places`; for `prefix` caches every place counts.
        entries: what earlier requests left, alive or not.
        now: when it was built, in seconds since the epoch.
        factor: real tokens per raw one; the provider's limits are divided by it.
        reach: digest of the place up to which the request before could be repeated.
    """
    total = trail.end.tokens
    known = _by_place(trail, entries)
    if rules.kind in ("none", "unknown"):
        why = "not_cached" if rules.kind == "none" else "no_cache"
        # Kept all the same: once a cache is seen, what this request may have left is predicted from at once.
        return Prediction(0, 0, total, _left_by(trail, known, rules, now), why)
    minimum = int(rules.minimum / factor)
    if rules.kind == "prefix":
        found = _automatic(trail, known, rules, now, factor)
    else:
        found = _at_markers(trail, marks, known, rules, now, minimum)
    if found.at:
        entry = known[found.at]
        found = replace(found, slack=entry.used_at + entry.life - now, back=entry.back)
    before = next((e for e in known.values() if reach in (e.digest, e.bare)), None)
    if before is None or found.why in {"first", "below_minimum", NOT_KNOWN}:
        return found
    at = known[found.at].tokens if found.at else 0
    if before.tokens <= at:
        return found
    # Where nobody knows how long an entry lives, other bytes are the one thing that is known.
    changed = before.alive(now) or not rules.life_known
    lost_to = found.lost_to or ("changed" if changed else "expired")
    return replace(found, lost=before.tokens - at, lost_to=lost_to)


def _by_place(trail: Trail, entries: Sequence[Entry]) -> dict[str, Entry]:
    """Entries by the digest of the place at which this request finds them, if it has one."""
    known = {entry.digest: entry for entry in entries}
    for spot in trail.places:
        if spot.bare and spot.bare in known:
            found = known.pop(spot.bare)
            known.setdefault(spot.digest, replace(found, digest=spot.digest, bare=spot.bare))
    return known


def _at_markers(
    trail: Trail,
    marks: Sequence[tuple[Place, int]],
    known: Mapping[str, Entry],
    rules: CacheRules,
    now: float,
    minimum: int,
) -> Prediction:
    seen = [_seen_from(mark, trail, marks, known, rules, now) for mark, _ in marks]
    hits = [hit for hit, _ in seen if hit is not None]
    missed = {why for _, why in seen if why}
    best = max(hits, key=lambda hit: hit.tokens, default=None)
    kept = {entry.digest: entry for entry in known.values() if entry.alive(now)}
    for hit in hits:
        kept[hit.digest] = replace(kept[hit.digest], used_at=now)
    read = best.tokens if best is not None else 0
    written = read
    for mark, life in marks:
        if mark.tokens < minimum:
            continue
        written = max(written, mark.tokens)
        old = kept.get(mark.digest)
        kept[mark.digest] = (
            Entry(mark.digest, mark.tokens, life, now, _told(known, mark.digest), mark.bare)
            if old is None
            else replace(old, life=max(old.life, life), used_at=now)
        )
    total = trail.end.tokens
    lost_to = next((why for why in ("lookback", "expired") if why in missed), "")
    why = "hit" if best is not None else "first" if not known else lost_to or "changed"
    if not any(mark.tokens >= minimum for mark, _ in marks):
        why = "below_minimum"
    return Prediction(
        read,
        written - read,
        total - written,
        _newest(kept.values()),
        why,
        at=best.digest if best is not None else "",
        measured=_told(known, best.digest) if best is not None else None,
        lost_to=lost_to,
    )


def _seen_from(
    mark: Place,
    trail: Trail,
    marks: Sequence[tuple[Place, int]],
    known: Mapping[str, Entry],
    rules: CacheRules,
    now: float,
) -> tuple[Place | None, str]:
    """The longest live entry that one marker finds, and why it does not find a longer one."""
    marked = {place.digest for place, _ in marks}
    missed = ""
    for candidate in reversed(trail.places):
        entry = known.get(candidate.digest)
        if entry is None or candidate.tokens > mark.tokens:
            continue
        far = rules.lookback is not None and mark.positions - candidate.positions >= rules.lookback
        if rules.ends is not None and candidate.digest not in marked:
            far = trail.end.positions - candidate.positions >= rules.ends
        if far:
            missed = missed or "lookback"
        elif not entry.alive(now):
            missed = missed or "expired"
        else:
            return candidate, missed
    return None, missed


def _automatic(
    trail: Trail, known: Mapping[str, Entry], rules: CacheRules, now: float, factor: float
) -> Prediction:
    """The longest place in common with an earlier request, in whole steps of the provider's own tokens."""
    # Where the provider does not say so, nobody knows whether a template puts tools in front of the system's text or behind.
    first = 0 if rules.by == "provider" else trail.prefix
    shared = [spot for spot in trail.places[first:] if spot.digest in known]
    live = [spot for spot in shared if known[spot.digest].alive(now)]
    total = trail.end.tokens
    read, reached = 0, live[-1].tokens if live else 0
    following = (spot.tokens for spot in trail.places[first:] if spot.tokens > reached)
    if live:
        tokens = live[-1].tokens
        own = _told(known, live[-1].digest) or int(tokens * factor)
        read = min(total, rules.stepped(own) * tokens // max(1, own))
    gone = "expired" if rules.life_known else NOT_KNOWN
    why = "hit" if read else "first" if not known else gone if shared != live else "changed"
    if total * factor < rules.minimum or (live and not read):
        why = "below_minimum"
    return Prediction(
        read,
        0,
        total - read,
        _left_by(trail, known, rules, now),
        why,
        at=live[-1].digest if live else "",
        measured=_told(known, live[-1].digest) if live else None,
        behind=next(following, reached) - reached if known else 0,
    )


def _left_by(
    trail: Trail, known: Mapping[str, Entry], rules: CacheRules, now: float
) -> tuple[Entry, ...]:
    """What a request leaves in a cache of prefixes.

    Its own prefix, its newest places, and the one that the next run goes back to when much of this one leaves.
    """
    kept = [
        Entry(spot.digest, spot.tokens, rules.short_life, now, _told(known, spot.digest), spot.bare)
        for spot in trail.places
    ]
    oldest = max(2, len(kept) - (_KEPT - 2))
    back = (kept[trail.lasting],) if 2 <= trail.lasting < oldest else ()
    return (*kept[:2], *back, *kept[oldest:])


def _told(known: Mapping[str, Entry], digest: str) -> int | None:
    """The provider's count at a place, where an earlier report told it; it holds however often the entry is written."""
    entry = known.get(digest)
    return None if entry is None else entry.measured


def _newest(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.used_at, entry.tokens))[-_KEPT:])
