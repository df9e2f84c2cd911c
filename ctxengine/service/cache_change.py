"""Which digest changed, where a request no longer repeats the one before it (capacity spec 10, Cache mechanics).

A request keeps the ends of its newest segments, each with the chained digest of everything up to there: equal digests mean
equal bytes, and behind the last one in common two requests part. Nothing is rebuilt for it, and nothing is named that the kept
ends do not tell: behind a gap in them, the place is a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ctxengine.engine.cache.causes import OF_BYTES, Cause
from ctxengine.engine.cache.trail import Trail
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.service.left_before import Answered

_DIGITS = 16
_NEWEST = 64
"""Ends kept of what stands behind the prefix: a row is as large in an old session as in a young one."""


class _End(NamedTuple):
    fragments: int
    """Wire fragments up to here."""
    digest: str


def segment_ends(trail: Trail) -> dict[str, Any]:
    """The ends of a request's segments, as its row keeps them for the next one."""
    first, ends = trail.prefix + 1, _ends_of(trail)
    kept = [*ends[:first], *ends[first:][-_NEWEST:]]
    return {"prefix": trail.prefix, "ends": " ".join(f"{at}.{digest}" for at, digest in kept)}


def changed_bytes(
    session: SessionRow, built: ModelRequest, before: Answered | None, trail: Trail, cause: Cause
) -> dict[str, Any] | None:
    """What changed since the newest answered request; None where no bytes did. One query where some did.

    Returns:
        `part`, the first that differs (`model`, `tools`, `system` or `messages`), both prefix digests before and after, and of
        messages the segment: its first wire fragment, whether that very one differs (else one behind it), and the digest up to
        its end before and after.
    """
    if before is None or cause not in OF_BYTES:
        return None
    rows = RequestRow.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, id=before.id
    )
    found = rows.values_list("prefix_sha256", "cache__segments").first()
    if found is None:
        return None
    prefix, kept = found
    change: dict[str, Any] = {
        "part": "model",
        "prefix_sha256": _sides(prefix, built.plan.prefix_sha256),
        "wire_prefix_sha256": _sides(before.prefix, built.plan.wire_prefix_sha256),
        "segment": None,
    }
    if cause is Cause.MODEL or not kept:
        # A request of an older version kept no ends: its prefix alone can be told apart.
        same = before.prefix == built.plan.wire_prefix_sha256
        part = "messages" if same else "prefix"
        return change if cause is Cause.MODEL else change | {"part": part}
    # A picture that comes or leaves changes what every end behind the prefix is called, and none of the bytes in front of it.
    named_alike = before.images == trail.images
    return change | _parted(kept, trail, named_alike=named_alike)


def _parted(kept: dict[str, Any], trail: Trail, *, named_alike: bool) -> dict[str, Any]:
    """Where two requests part: behind the last end that both have."""
    old, new = _read(kept["ends"]), _ends_of(trail)
    known = {end.digest for end in old}
    last = max((place for place, end in enumerate(new) if end.digest in known), default=None)
    if last is None:
        return {"part": "tools" if kept["prefix"] or trail.prefix else "system"}
    if last < trail.prefix:
        return {"part": "system"}
    common = new[last]
    sides = _behind(old, common), _behind(new, common)
    # Of a segment of several parts, or of one whose ends were not kept, nobody can say which part it is.
    one_part = all(side is None or side.fragments == common.fragments + 1 for side in sides)
    digests = ["" if side is None else side.digest for side in sides]
    segment = {"fragment": common.fragments, "exact": named_alike and one_part, **_sides(*digests)}
    return {"part": "messages", "segment": segment}


def _behind(ends: Sequence[_End], common: _End) -> _End | None:
    """The end that follows a place; None where the request ends there."""
    return next((b for a, b in pairwise(ends) if a.digest == common.digest), None)


def _ends_of(trail: Trail) -> list[_End]:
    return [_End(spot.fragments, spot.digest[:_DIGITS]) for spot in trail.places]


def _read(ends: str) -> list[_End]:
    parts = (end.split(".") for end in ends.split())
    return [_End(int(fragments), digest) for fragments, digest in parts]


def _sides(before: str, after: str) -> dict[str, str]:
    return {"before": before, "after": after}
