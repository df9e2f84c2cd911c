"""Closed turns that stand as they were sent: so the next run's first request begins with all of the last one's (design 7.8).

A turn keeps its bytes where nothing of them has to leave with its run, until a pass gives every turn its closed form at once.
What was promoted for it stays in front of it. Reasoning, recalled lines and skills leave with the run; a turn that had any of
them is closed at its end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.events import EventType
from ctxengine.engine.history.left_out import event_of
from ctxengine.engine.history.sent_record import AsSent, turns_as_sent
from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.history.working_set import SMALL_ROOM
from ctxengine.engine.history.working_set_record import (
    PlannedSet,
    PlanReason,
    planned_at,
    planned_of,
)
from ctxengine.engine.inputs import StepInputs
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.closed import ClosedTurns, closed_turns

SENT_TURNS, SENT_ROOM = 3, 4 * SMALL_ROOM
"""Turns stand as sent where the room (tokens) holds so many of the size seen lately, and at least so much: in a smaller one
their results would push too many turns onto cards."""
LATELY = 16
"""Newest turns whose size is looked at."""
_LOOKED_AT = 64
"""Newest plans, and fresh blocks of one run, that are looked at."""
_STAYING = frozenset({"thread", "intent", "runtime", "state"})
"""Parts of fresh rows that may stay behind: a later block of the same kind takes their place. Recall is not carried (design
7.16), and skills are given again by each run."""
_NAMED = re.compile(r"(?m)^- turn (\d+), earlier")
"""How a thread names a turn."""
_OF_THE_TURN = frozenset({PlanReason.PRESSURE.value})
_OF_ONE_RUN = frozenset({PlanReason.PRESSURE.value, PlanReason.LEG.value})
"""Reasons whose plans end with their run."""
_FEW = 4
"""Newest plans that are looked at first."""
GROWN = 1.25
"""A request that may take so many times what it could when the forms were chosen has them chosen anew."""


class SentTurns(NamedTuple):
    """Turns that stand as sent, and the turns whose directives they name in their threads."""

    turns: tuple[AsSent, ...] = ()
    by_turn: Mapping[int, frozenset[int]] = {}
    """What each of them names."""

    @property
    def named(self) -> frozenset[int]:
        """All that they name."""
        return frozenset().union(*(self.by_turn[turn.number] for turn in self.turns))

    def without_naming(self, shown: Collection[int]) -> SentTurns:
        """Those that name none of the turns that are shown whole: a directive stands once."""
        wanted = set(shown)
        kept = tuple(turn for turn in self.turns if not self.by_turn[turn.number] & wanted)
        return self._replace(turns=kept)


def plan_to_continue(
    log: SessionLog,
    *,
    reason: PlanReason,
    provider: str,
    model: str,
    handoff: int | None,
    usable: int,
) -> EventRecord | None:
    """The event of the newest plan whose forms a plan for this model may go on from.

    What an open turn or a run's legs made necessary belongs to that run: a plan at a run's start goes on from what stood
    before, and one for legs from the newest that was made for as much.

    Args:
        reason: why there is to be a plan.
        handoff: event of the reset in force.
        usable: what a request may take now (tokens).
    """
    own: list[EventRecord] = []
    found = None
    for limit in (1, _FEW, _LOOKED_AT):
        own = [event for event in _newest(log, limit) if _is_for(event, provider, model)]
        found = _of_kind(own, reason, usable)
        if found is not None:
            break
    if found is None and reason is PlanReason.LEG:
        found = next((event for event in own if _reason(event) not in _OF_THE_TURN), None)
    if found is None:
        return None
    told = found.payload
    if told.get("handoff") != handoff or usable > told["room"]["usable"] * GROWN:
        return None
    return found


def pressed_last(log: SessionLog, start: EventRecord | None) -> EventRecord | None:
    """The newest plan, where the open turn of the run that `start` began made it necessary."""
    newest = log.newest(EventType.WORKING_SET_PLANNED)
    if start is None or newest is None or _reason(newest) != PlanReason.PRESSURE.value:
        return None
    return newest if newest.run == start.run else None


def _newest(log: SessionLog, limit: int) -> Sequence[EventRecord]:
    if limit == 1:
        newest = log.newest(EventType.WORKING_SET_PLANNED)
        return () if newest is None else (newest,)
    return log.latest({EventType.WORKING_SET_PLANNED}, limit=limit)


def _of_kind(events: Sequence[EventRecord], reason: PlanReason, usable: int) -> EventRecord | None:
    """The newest of these plans that one made for such a reason goes on from."""
    if reason is PlanReason.START:
        return next((e for e in events if _reason(e) not in _OF_ONE_RUN), None)
    if reason is not PlanReason.LEG:
        return next(iter(events), None)
    return next(
        (
            event
            for event in events
            if _reason(event) not in _OF_THE_TURN
            and _alike(event.payload["room"]["usable"], usable)
        ),
        None,
    )


def _reason(event: EventRecord) -> str:
    return str(event.payload["reason"])


def _alike(one: int, other: int) -> bool:
    return one <= other * GROWN and other <= one * GROWN


def _is_for(event: EventRecord, provider: str, model: str) -> bool:
    profile = event.payload["profile"]
    return bool((profile["provider"], profile["model"]) == (provider, model))


def holds_sent_turns(room_tokens: int, costs: Sequence[TurnCost]) -> bool:
    """Whether a room is large enough for turns to stand in it as they were sent."""
    sizes = [turn.open for turn in costs[-LATELY:]]
    if room_tokens < SENT_ROOM or not sizes:
        return False
    return room_tokens * len(sizes) >= SENT_TURNS * sum(sizes)


def sent_turns(
    log: SessionLog, closed: ClosedTurns, before: EventRecord, *, take: bool
) -> SentTurns:
    """The turns that stand as sent: those of the plan before, and those of its own run.

    Args:
        before: the plan that forms go on from.
        take: whether turns that closed since are taken up.
    """
    record = planned_of(before.payload)
    found = list(turns_as_sent(log, record, closed))
    if take and before.run is not None:
        own = [e for e in closed.events[record.turns :] if e.run == before.run]
        found += _of_run(log, own, before.run, record)
    return _still_sound(log, found)


def tokens_as_sent(turn: AsSent, closed: ClosedTurns, *, line_tokens: int) -> int:
    """What a turn takes that stands as sent, with its blocks and what stands in front of it (raw count).

    Args:
        line_tokens: what the line in front of promoted turns takes.
    """
    own = closed.events[turn.number - 1].payload["tokens_open"]
    brought = sum(closed.events[t.number - 1].payload["tokens_full"] for t in turn.promoted)
    blocks = sum(block.payload["tokens"] for block in turn.blocks)
    return int(own + blocks + brought + (line_tokens if turn.promoted else 0))


def _of_run(
    log: SessionLog, turns: Sequence[EventRecord], run: str, record: PlannedSet
) -> list[AsSent]:
    if not turns or not _left_nothing(log, run, turns[0]):
        return []
    newest = log.latest({EventType.FRESH_SENT}, limit=_LOOKED_AT)
    blocks = [event for event in reversed(newest) if event.run == run]
    if len(blocks) == _LOOKED_AT or any(not _parts(event) <= _STAYING for event in blocks):
        return []
    found: list[AsSent] = []
    brought = record.promoted
    for event in turns:
        told = event.payload
        if told["outcome"] != "completed" or told.get("bare"):
            return found
        first, last = told["first"], told["last"]
        own = tuple(block for block in blocks if first < block.sequence <= last)
        found.append(AsSent(told["number"], first, last, own, brought))
        brought = ()
    return found


def _left_nothing(log: SessionLog, run: str | None, first: EventRecord) -> bool:
    """Whether a run is over, dropped no reasoning, and shortened none of its results."""
    ended = next((e for e in log.latest({EventType.RUN_ENDED}, limit=4) if e.run == run), None)
    if ended is None or ended.payload["opaque_dropped"]:
        return False
    shortened = log.newest(EventType.YIELD_APPLIED)
    return shortened is None or shortened.sequence < first.payload["first"]


def _parts(event: EventRecord) -> set[str]:
    return {name for name, digest in event.payload["rows"].items() if digest}


def _still_sound(log: SessionLog, found: Sequence[AsSent]) -> SentTurns:
    """Those whose blocks can still be shown. What they say of the state and no longer holds, each request takes back."""
    bodies = {b.body.id for turn in found for b in turn.blocks if b.body is not None}
    texts = log.texts(bodies) if bodies else {}
    sound, named = [], {}
    for turn in found:
        own = [(block, texts.get(block.body.id) if block.body else None) for block in turn.blocks]
        if any(text is None for _, text in own):
            continue
        sound.append(turn)
        threads = [text for block, text in own if "thread" in _parts(block)]
        named[turn.number] = frozenset(number for text in threads for number in _named(text))
    return SentTurns(tuple(sound), named)


def as_sent_in(log: SessionLog, inputs: StepInputs) -> list[tuple[int, int]]:
    """Stretches of a recorded request's history that stand as they were sent, by first and last event."""
    if inputs.engine != "working_set" or inputs.projection is None:
        return []
    record = planned_at(log, inputs.projection)
    return [(turn.first, turn.last) for turn in turns_as_sent(log, record)]


def cards_twice_in(log: SessionLog, inputs: StepInputs, units: Collection[int]) -> Collection[int]:
    """Those of these units of which a recorded request shows the closed form with cards that stood before once more.

    Under the plans of earlier days these are all; else those that an operator's act has left without the first showing.
    """
    if inputs.engine != "working_set" or inputs.projection is None:
        return ()
    if not planned_at(log, inputs.projection).cards_once:
        return units
    return frozenset(units) & repeats_apart(closed_turns(log), inputs.marks)


def repeats_apart(closed: ClosedTurns, marks: Marks) -> frozenset[int]:
    """Units whose fences stay though they show a card again, for an act of an operator may have taken its first showing away.

    Such acts fold a unit or leave an item out; whatever else takes a unit from sight takes its whole turn. Of several units
    that repeat one card the first in sight keeps it. Events alone decide, so that erased content changes nothing.
    """
    hidden = sorted({*marks.folded, *map(event_of, marks.excluded)})
    if not hidden:
        return frozenset()
    return frozenset(
        unit
        for event in closed.events
        if (repeats := event.payload.get("repeats"))
        for unit in _apart({int(u): set(d) for u, d in repeats.items()}, event, hidden)
    )


def _apart(
    repeats: Mapping[int, set[str]], event: EventRecord, hidden: Sequence[int]
) -> Iterator[int]:
    seen: set[str] = set()
    in_sight: set[str] = set()
    for unit, cards in sorted(repeats.items()):
        if not any(event.payload["first"] <= place < unit for place in hidden):
            in_sight |= cards - seen
        seen |= cards
        if cards <= in_sight:
            continue
        yield unit
        if unit not in hidden:
            in_sight |= cards


def _named(text: str | None) -> set[int]:
    return {int(number) for number in _NAMED.findall(text or "")}
