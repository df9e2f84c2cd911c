"""Where asked-for cache markers may really stand (design 7.18; providers.md 1.2, 1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctxengine.engine.errors import WireInvalid
from ctxengine.engine.wire.base import Fragment, Marker

MAX_MARKERS = 4
"""Both vendors accept four; one fails above it, the other forgets the oldest."""

Ttl = Literal["5m", "1h"]


@dataclass(slots=True)
class Places:
    """Markers by the place they take."""

    tools: Ttl | None = None
    system: Ttl | None = None
    fragments: dict[int, Ttl] = field(default_factory=dict)


def place(
    markers: Sequence[Marker],
    fragments: Sequence[Fragment],
    *,
    tools: bool,
    system: bool,
) -> Places:
    """Settle each marker on the last markable block at or before its place.

    A marker with nothing markable at or before it is dropped; two that settle on one place become
    one, of the longer life. `tools` and `system` say whether these parts exist and may be marked.

    Raises:
        WireInvalid: more places than an API allows, a place outside the fragments, or an unknown
        name.
    """
    places = Places()
    for marker in markers:
        if marker.after_fragment is not None:
            index = _step_back(marker.after_fragment, fragments)
            if index is not None:
                places.fragments[index] = _longer(places.fragments.get(index), marker.ttl)
        elif marker.name == "after_system" and system:
            places.system = _longer(places.system, marker.ttl)
        elif marker.name in ("after_tools", "after_system"):
            places.tools = _longer(places.tools, marker.ttl) if tools else None
        else:
            raise WireInvalid(
                f"The marker {marker.name!r} names no fragment; only prefix markers may."
            )
    taken = len(places.fragments) + (places.tools is not None) + (places.system is not None)
    if taken > MAX_MARKERS:
        raise WireInvalid(
            f"{taken} cache markers were asked for; the API allows {MAX_MARKERS}. Give up "
            "after_tools or an intermediate one."
        )
    return places


def refuse_growing_ttl(places: Places) -> None:
    """Check that no longer life follows a shorter one, in wire order.

    Raises:
        WireInvalid: a `1h` marker stands behind a `5m` one.
    """
    ordered = [places.tools, places.system, *(ttl for _, ttl in sorted(places.fragments.items()))]
    lives = [ttl for ttl in ordered if ttl is not None]
    if sorted(lives) != lives:
        raise WireInvalid(
            f"Cache lives in wire order are {', '.join(lives)}; every 1h must come before every 5m."
        )


def _step_back(index: int, fragments: Sequence[Fragment]) -> int | None:
    if not 0 <= index < len(fragments):
        raise WireInvalid(
            f"A cache marker stands after fragment {index}; there are {len(fragments)} fragments."
        )
    while index >= 0 and not fragments[index].markable:
        index -= 1
    return index if index >= 0 else None


def _longer(current: Ttl | None, asked: Ttl) -> Ttl:
    return "1h" if "1h" in (current, asked) else "5m"
