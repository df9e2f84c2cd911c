"""When each step of a replay happens: the transcript's own gaps, assumed ones, or a "what if" (design 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.service.replay.source import Beat

ASSUMED_STEP_GAP_S = 12.0
ASSUMED_TURN_GAP_S = 60.0
"""Gaps where a transcript states no times: what agents and people were seen to need (targets.md)."""
_BEGINNING = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where a transcript has no times at all."""


class Clock(NamedTuple):
    """Times of all steps, and where they come from."""

    times: tuple[float, ...]
    """Seconds since the epoch, one per step beat."""
    source: str
    """`recorded`, `partly recorded`, `assumed` or `what if`."""


def clock_of(beats: Sequence[Beat], *, turn_gap: float | None = None) -> Clock:
    """The time of each step.

    Args:
        turn_gap: seconds between the end of one turn and the next, instead of the transcript's own; gaps inside a turn stay.
    """
    now = before = _told(beats)
    first, opened = True, False
    stated = asked = 0
    times: list[float] = []
    latest: float | None = None
    for beat in beats:
        opened = opened or beat.opens_run
        if beat.at is not None:
            latest = beat.at
        if beat.kind != "step":
            continue
        asked += 1
        gap = ASSUMED_TURN_GAP_S if opened else ASSUMED_STEP_GAP_S
        if latest is not None:
            stated += 1
            gap, before = max(0.0, latest - before), max(latest, before)
        if opened and turn_gap is not None:
            gap = turn_gap
        now += 0.0 if first else gap
        times.append(now)
        first, opened, latest = False, False, None
    source = "recorded" if stated == asked else "partly recorded" if stated else "assumed"
    return Clock(tuple(times), "what if" if turn_gap is not None else source)


def _told(beats: Sequence[Beat]) -> float:
    return next((beat.at for beat in beats if beat.at is not None), _BEGINNING)
