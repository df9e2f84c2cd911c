"""What a request is expected to read from the provider's cache, and the warnings that follow (design 8)."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from itertools import pairwise
from operator import attrgetter
from typing import Any

from ctxengine.engine.cache.causes import Cause
from ctxengine.engine.cache.predict import NOT_KNOWN, Entry, Prediction, marked_places, predict
from ctxengine.engine.cache.trail import Place, Trail
from ctxengine.engine.cache.ttl import advise_ttl, asked_life
from ctxengine.engine.cache.warnings import cache_warnings
from ctxengine.engine.events import EventType
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.base import Marker
from ctxengine.ledger.models import Event, RunRow, SessionRow
from ctxengine.service.cache_behaviour import rules_of_run
from ctxengine.service.cache_change import changed_bytes, segment_ends
from ctxengine.service.left_before import Answered, LeftBefore

_ENTRY = tuple(field.name for field in fields(Entry))
_entry_values = attrgetter(*_ENTRY)
_KEPT_INSIDE = frozenset(
    {
        "entries",
        "reach",
        "deepest",
        "at",
        "measured",
        "slack",
        "images",
        "step",
        "segments",
        "implicit",
    }
)
"""What only the next request and the verdict need."""

_PREDICTED_CAUSE = {
    "first": Cause.FIRST,
    "below_minimum": Cause.BELOW_MINIMUM,
    "expired": Cause.EXPIRED,
    NOT_KNOWN: Cause.LIFE_UNKNOWN,
    "lookback": Cause.LOOKBACK,
}
_CAUSE_OF_EVENT = {
    EventType.COMPACTED.value: Cause.COMPACTED,
    EventType.COMPACTION_UNDONE.value: Cause.COMPACTED,
    EventType.PRESENTATION_SET.value: Cause.PRESENTATION,
    EventType.PERSON_ERASED.value: Cause.ERASED,
    EventType.CONTENT_EXPIRED.value: Cause.ERASED,
    EventType.YIELD_APPLIED.value: Cause.YIELDED,
}
"""Events that take earlier bytes away, the most telling first."""


def cache_of(
    session: SessionRow,
    built: ModelRequest,
    at: datetime,
    run: RunRow,
    left: LeftBefore,
    trail: Trail,
) -> dict[str, Any]:
    """Markers, prediction and warnings of a request about to be recorded.

    Args:
        run: by what was pinned at its start, whatever was learnt since.
        left: what the session's requests left before it.
        trail: the request's own places.
    """
    rules = rules_of_run(run, built.plan)
    times, before = left.times, left.answered
    now = at.timestamp()
    marks = marked_places(built, trail, rules)
    expected = predict(
        trail,
        marks,
        before.entries if before else (),
        rules=rules,
        now=now,
        factor=built.budget.factor,
        reach=before.reach if before else "",
    )
    gaps = [later - earlier for later, earlier in pairwise(times)]
    gap = now - times[0] if times else None
    warnings = cache_warnings(
        expected,
        rules=rules,
        advice=advise_ttl([*([gap] if gap else []), *gaps], rules),
        gap=gap,
        life=asked_life(built.markers),
    )
    data = cache_json(built, trail, expected, warnings)
    if data["predicted"] is not None:
        cause = _cause(session, built, before, expected, trail, run)
        data["predicted"]["cause"] = cause.value
        if rules.kind != "unknown":
            data["predicted"]["by"] = rules.by
            data["segments"] = segment_ends(trail)
        data["changed"] = changed_bytes(session, built, before, trail, cause)
        data["step"] = max(rules.step, rules.coarse)
        data["minimum"] = rules.minimum
        if not rules.life_known:
            data["implicit"] = {
                "tells": rules.tells,
                "behind": expected.behind,
                "back": expected.back,
            }
        if marks:
            place, life = marks[-1]
            data["deepest"] = _stored(Entry(place.digest, place.tokens, life, now, bare=place.bare))
    return data


def cache_json(
    built: ModelRequest,
    trail: Trail | None = None,
    expected: Prediction | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """The cache part of a request, for its row and for REST; what only the next request needs is kept inside."""
    places = trail.places if trail is not None else ()
    data: dict[str, Any] = {
        "session_key": built.params.session_key,
        "markers": [
            {
                "name": marker.name,
                "ttl": marker.ttl,
                "after_fragment": marker.after_fragment,
                "tokens": _tokens_at(places, marker),
            }
            for marker in built.markers
        ],
        "predicted": None,
        "warnings": warnings or [],
    }
    if expected is not None and trail is not None:
        data["predicted"] = {
            "read": expected.read,
            "write": expected.write,
            "fresh": expected.fresh,
            "why": expected.why,
            "lost": expected.lost,
        }
        data |= {
            "entries": [_stored(entry) for entry in expected.entries],
            "reach": trail.places[trail.stable].digest,
            "images": trail.images,
            "at": expected.at,
            "measured": expected.measured,
            "slack": expected.slack,
        }
    return data


def _stored(entry: Entry) -> dict[str, Any]:
    return dict(zip(_ENTRY, _entry_values(entry), strict=True))


def _tokens_at(places: tuple[Place, ...], marker: Marker) -> int | None:
    """Raw count up to a marker; None where nothing was predicted."""
    if marker.name == "after_tools":
        # Tools and system both end before the first fragment; where there are tools, theirs is the first place.
        return places[0].tokens if places else None
    wanted = 0 if marker.after_fragment is None else marker.after_fragment + 1
    known = [place.tokens for place in places if place.fragments <= wanted]
    return known[-1] if known else None


def _cause(
    session: SessionRow,
    built: ModelRequest,
    before: Answered | None,
    expected: Prediction,
    trail: Trail,
    run: RunRow,
) -> Cause:
    """Why less is read than the request before left."""
    known = _PREDICTED_CAUSE.get(expected.why) or _PREDICTED_CAUSE.get(expected.lost_to)
    if known is not None:
        return known
    if before is None or (not expected.lost and expected.why != "changed"):
        return Cause.NONE
    if before.model != built.plan.model:
        return Cause.MODEL
    # A rotation that leaves the prefix's bytes alone costs no entry: what follows says what did.
    if before.prefix != built.plan.wire_prefix_sha256:
        return Cause.EPOCH
    if before.images != trail.images:
        return Cause.IMAGES
    types = _types_since(session, before)
    for kind, cause in _CAUSE_OF_EVENT.items():
        if kind in types:
            return cause
    return Cause.RUN_BOUNDARY if before.run_id != run.id else Cause.REWRITTEN


def _types_since(session: SessionRow, before: Answered) -> set[str]:
    """Types of what rewrote history after the events that came with the request before."""
    started = EventType.REQUEST_STARTED.value
    events = Event.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        sequence__gt=before.head,
        type__in=[started, *_CAUSE_OF_EVENT],
    ).order_by("sequence")
    types: set[str] = set()
    for kind, payload in events.values_list("type", "payload"):
        if kind != started:
            types.add(kind)
        elif payload.get("request") == str(before.id):
            types.clear()
    return types


def public_cache(stored: dict[str, Any]) -> dict[str, Any]:
    """The cache part of a row without what only the next request and the verdict need."""
    return {name: value for name, value in stored.items() if name not in _KEPT_INSIDE}
