"""Keeping what earlier requests wrote within reach of this one's markers (frozen-prefix spec, The history cache window; 7.18).

A provider looks for an entry only so far behind a marker. After a step that appended more than that, one more marker is put on
the very place where the newest entry ends: it is found there exactly, whatever was appended since.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.cache.markers import MAX_MARKERS
from ctxengine.engine.cache.predict import Entry, marked_places
from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.cache.trail import Place, Trail
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.base import Marker
from ctxengine.engine.wire.markers import Ttl

INTERMEDIATE = "intermediate"


def may_be_out_of_reach(request: ModelRequest, rules: CacheRules) -> bool:
    """Whether the request is long enough for an entry to lie too far back: cheap to ask, before anything is looked up."""
    limit = min((n for n in (rules.lookback, rules.ends) if n is not None), default=None)
    if limit is None or rules.kind != "markers" or not request.markers:
        return False
    return sum(fragment.positions for fragment in request.fragments) >= limit


def within_reach(
    request: ModelRequest,
    trail: Trail,
    entries: Sequence[Entry],
    *,
    rules: CacheRules,
    now: float,
) -> tuple[Marker, ...]:
    """The request's markers, with an intermediate one where without it the longest live entry would not be found.

    Where that would be one marker too many, `after_tools` or `after_cards` is given up: whatever is read behind it holds them
    as well.

    Args:
        entries: what earlier requests of the session left, alive or not.
        now: seconds since the epoch.
    """
    live = {entry.digest for entry in entries if entry.alive(now)}
    goal = next((spot for spot in reversed(trail.places) if spot.digest in live), None)
    if goal is None or goal.fragments == 0:
        return request.markers
    marks = [spot for spot, _ in marked_places(request, trail, rules)]
    if any(_sees(mark, goal, marks, trail, rules) for mark in marks):
        return request.markers
    last = max((mark.fragments for mark in marks), default=0)
    if goal.fragments > last:
        # It holds more than any later request could repeat: reading it is worth nothing to them.
        return request.markers
    ttl: Ttl = next(
        (marker.ttl for marker in request.markers if marker.after_fragment is not None), "5m"
    )
    wanted = Marker(INTERMEDIATE, goal.fragments - 1, ttl=ttl)
    kept = [marker for marker in request.markers if marker.name != INTERMEDIATE]
    if len(kept) >= MAX_MARKERS:
        kept = [marker for marker in kept if marker.name not in ("after_tools", "after_cards")]
    if len(kept) >= MAX_MARKERS:
        return request.markers
    return (*kept, wanted)


def _sees(
    mark: Place, goal: Place, marks: Sequence[Place], trail: Trail, rules: CacheRules
) -> bool:
    if goal.tokens > mark.tokens:
        return False
    if rules.lookback is not None and mark.positions - goal.positions >= rules.lookback:
        return False
    on_it = any(spot.digest == goal.digest for spot in marks)
    return on_it or rules.ends is None or trail.end.positions - goal.positions < rules.ends
