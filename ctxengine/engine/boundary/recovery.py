"""Archive recovery: a bounded view of a history that no longer fits, with its exact ranges (boundary spec).

Required content comes first, then the newest whole turns as far as they fit. What is not selected stays in the archive: it is
neither shown nor summarised, and the view says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxengine.engine.boundary.capability import window_keeps_user_messages
from ctxengine.engine.boundary.checkpoint import Ranges
from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.settled import turn_starts
from ctxengine.engine.boundary.work import Work
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit

LOCAL_MARGIN = 0.9
"""Share of the allowance that a view may take by our own count; the provider's count has the last word."""
_NOTICE_TOKENS = 600


@dataclass(frozen=True, slots=True)
class View:
    """What a provider reads of the covered units."""

    units: tuple[Unit, ...]
    ranges: Ranges = ()
    left_out: Ranges = ()
    recovered: bool = False


def selected(work: Work) -> View:
    """The largest view that fits by our own count, the current tail reserved first.

    Raises:
        CompactionError: `recovery_oversized` where what is required does not fit.
    """
    factor = work.factor
    beside = work.prefix_tokens + _sum(work.retained) + _sum(work.tail) + _sum(work.active)
    window = work.session.plan.policy.native_compaction_max_output_tokens
    if beside + (window + _NOTICE_TOKENS) / factor > work.usable:
        raise CompactionError("recovery_oversized")
    room = int(work.allowance * LOCAL_MARGIN / factor) - work.prefix_tokens - _NOTICE_TOKENS
    said = room
    if window_keeps_user_messages(work.renderer.api):
        # These windows keep every message of the user: more of them than this and the next request would be due again.
        trigger = int(work.usable * work.session.plan.policy.summarize_trigger * LOCAL_MARGIN)
        said = trigger - beside - _NOTICE_TOKENS
    before = work.covered.base.tokens if work.covered.base else 0
    return _view(work, room - before, said - before)


def narrowed(work: Work, view: View, *, over: int) -> View:
    """A smaller view after the provider counted `over` tokens, more than it takes.

    Raises:
        CompactionError: `recovery_oversized` where nothing is left to leave out.
    """
    share = work.allowance / over * LOCAL_MARGIN
    room = int(_sum(view.units) * share)
    smaller = _view(work, room, room)
    if len(smaller.units) >= len(view.units):
        raise CompactionError("recovery_oversized")
    return smaller


def _view(work: Work, room: int, said: int) -> View:
    """Required units, then the newest whole turns, within `room` tokens, `said` of them messages of the user."""
    units = work.covered.units
    required = {unit.sequence for unit in units if unit.sequence in set(work.covered.shown)}
    taken = sum(unit.tokens for unit in units if unit.sequence in required)
    if taken > room:
        raise CompactionError("recovery_oversized")
    begin = len(units)
    spoken = sum(unit.user_tokens for unit in units if unit.sequence in required)
    for start in reversed(turn_starts(units)):
        added = [unit for unit in units[start:begin] if unit.sequence not in required]
        more, words = _sum(added), sum(unit.user_tokens for unit in added)
        if taken + more > room or spoken + words > said:
            break
        taken, spoken, begin = taken + more, spoken + words, start
    kept = [unit for place, unit in enumerate(units) if place >= begin or unit.sequence in required]
    chosen = {unit.sequence for unit in kept}
    return View(
        tuple(kept),
        ranges=_ranges(units, chosen),
        left_out=_ranges(units, {unit.sequence for unit in units} - chosen),
        recovered=True,
    )


def _ranges(units: Sequence[Unit], chosen: set[EventSeq]) -> Ranges:
    """First and last event of each unbroken run of chosen units, oldest first; acts between two of them are inside."""
    found: list[tuple[int, int]] = []
    joins = False
    for unit in units:
        if unit.sequence not in chosen:
            joins = False
        elif joins:
            found[-1] = (found[-1][0], max(found[-1][1], unit.last_sequence))
        else:
            found.append((unit.sequence, unit.last_sequence))
            joins = True
    return tuple(found)


def _sum(units: Iterable[Unit]) -> int:
    return sum(unit.tokens for unit in units)
