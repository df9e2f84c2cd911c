"""What a request is expected to read from the provider's cache, and the warnings that follow (design 8)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from itertools import pairwise
from typing import Any

from ctxengine.engine.cache.predict import (
    Entry,
    Place,
    Prediction,
    marked_places,
    predict,
    trail_of,
)
from ctxengine.engine.cache.rules import cache_rules
from ctxengine.engine.cache.ttl import advise_ttl
from ctxengine.engine.cache.warnings import cache_warnings
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.models import RequestRow, SessionRow

_GAPS = 20
"""Latest gaps between requests that the TTL advice looks at."""

_ENTRIES = 12
"""Newest cache entries carried from request to request; older ones are out of every marker's reach."""


def cache_of(session: SessionRow, built: ModelRequest, at: datetime) -> dict[str, Any]:
    """Markers, prediction and warnings of a request about to be recorded."""
    rules = cache_rules(built.renderer.api, built.plan.provider, built.plan.model)
    times, entries = _before(session)
    now = at.timestamp()
    trail = trail_of(built)
    marks = marked_places(built, trail)
    expected = predict(trail, marks, entries, rules=rules, now=now)
    gaps = [later - earlier for later, earlier in pairwise(times)]
    gap = now - times[0] if times else None
    warnings = cache_warnings(
        expected, rules=rules, advice=advise_ttl([*([gap] if gap else []), *gaps], rules), gap=gap
    )
    return cache_json(built, trail, expected, warnings)


def cache_json(
    built: ModelRequest,
    trail: tuple[Place, ...] = (),
    expected: Prediction | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """The cache part of a request, for its row and for REST; `entries` are kept for the next request alone."""
    tokens = {
        segment.end - 1: place.tokens
        for segment, place in zip(built.segments, trail[1:], strict=False)
    }
    data: dict[str, Any] = {
        "session_key": built.params.session_key,
        "markers": [
            {
                "name": marker.name,
                "ttl": marker.ttl,
                "after_fragment": marker.after_fragment,
                "tokens": trail[0].tokens
                if trail and marker.after_fragment is None
                else tokens.get(marker.after_fragment or 0),
            }
            for marker in built.markers
        ],
        "predicted": None,
        "warnings": warnings or [],
    }
    if expected is not None:
        data["predicted"] = {
            "read": expected.read,
            "write": expected.write,
            "fresh": expected.fresh,
            "why": expected.why,
        }
        newest = sorted(expected.entries, key=lambda entry: (entry.used_at, entry.tokens))
        data["entries"] = [asdict(entry) for entry in newest[-_ENTRIES:]]
    return data


def _before(session: SessionRow) -> tuple[list[float], list[Entry]]:
    """Times of the session's latest requests, newest first, and the cache entries they left."""
    rows = list(
        RequestRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
        .order_by("-number")
        .values_list("created_at", "cache__entries")[:_GAPS]
    )
    entries = [Entry(**entry) for entry in (rows[0][1] or ())] if rows else []
    return [row[0].timestamp() for row in rows], entries


def public_cache(stored: dict[str, Any]) -> dict[str, Any]:
    """The cache part of a row without what only the next request needs."""
    return {name: value for name, value in stored.items() if name != "entries"}
