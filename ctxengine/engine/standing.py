"""What stands in a session's requests beside its messages: working state, summaries, an operator's acts (design 2, 6 and 8).

Read from the log twice: as it is now, for a new step, and as a recorded step saw it, for its replay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ctxengine.engine.compaction.acts import (
    ACT_TYPES,
    HistoryActs,
    Marks,
    acts_of,
    packets_from,
)
from ctxengine.engine.compaction.packet import CompactionResult, Packet
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.working_state.state import EMPTY, WorkingState
from ctxengine.engine.working_state.transitions import (
    KEYFRAME_WITHIN,
    Recorded,
    TransitionBody,
    replay,
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything of that kind, for one step."""

    state: WorkingState = EMPTY
    """As the log gives it; a run sees it carried over."""
    state_event: int | None = None
    """Newest transition it was read up to; None when there is none."""
    packets: tuple[Packet, ...] = ()
    """Summaries that count for the plan, oldest first."""
    results: Mapping[int, CompactionResult] = field(default_factory=dict)
    """What their events hold, by sequence; erased ones are missing."""
    marks: Marks = field(default_factory=Marks)
    undone: Collection[int] = frozenset()
    """Sequences of undone compactions and of the yields that came with them."""
    erased_rows: frozenset[int] = frozenset()
    """Rows that quote a body which was erased since."""


NOTHING_STANDING = Standing()


def standing_of(
    log: SessionLog, *, plan_total: int, known: dict[str, CompactionResult] | None = None
) -> Standing:
    """The session as it stands now.

    Args:
        plan_total: total tokens of the plan; summaries made for smaller plans do not count (design 6).
        known: what bodies of compaction events hold, by body id, as far as it is known and not erased. The rest is read; what
            stands now is left in it.
    """
    acts = history_acts(log)
    state, newest, erased = working_state_of(log)
    packets, results = _packets(log, acts.standing(plan_total), known)
    return Standing(
        state=state,
        state_event=newest,
        packets=packets,
        results=results,
        marks=acts.marks,
        undone=acts.undone,
        erased_rows=frozenset({14}) if erased else frozenset(),
    )


def recorded_standing(
    log: SessionLog,
    *,
    state_event: int | None,
    packets: Sequence[int],
    marks: Marks,
) -> Standing:
    """The same as a recorded step saw it."""
    state, newest, state_erased = (
        working_state_of(log, through=state_event) if state_event else (EMPTY, None, False)
    )
    events = [event for sequence in packets for event in _event(log, sequence)]
    shown, results = _packets(log, events)
    erased = {14} if state_erased else set()
    if len(results) < len(events):
        erased.add(9)
    return Standing(
        state=state,
        state_event=newest,
        packets=shown,
        results=results,
        marks=marks,
        erased_rows=frozenset(erased),
    )


def history_acts(log: SessionLog) -> HistoryActs:
    """All acts on the session's history so far."""
    return acts_of(reversed(log.latest(ACT_TYPES)))


def working_state_of(
    log: SessionLog, *, through: int | None = None
) -> tuple[WorkingState, int | None, bool]:
    """The state after the newest transition (or the one at `through`), that event, and whether texts of it were erased."""
    kind = {EventType.WORKING_STATE_UPDATED}
    events = log.latest(kind, limit=KEYFRAME_WITHIN)
    if through is not None and events and events[0].sequence > through:
        events = [event for event in log.latest(kind) if event.sequence <= through]
        events = events[:KEYFRAME_WITHIN]
    if not events:
        return EMPTY, None, False
    keyframe = next(
        (place for place, event in enumerate(events) if event.payload["keyframe"]), len(events) - 1
    )
    needed = list(reversed(events[: keyframe + 1]))
    texts = log.texts([event.body.id for event in needed if event.body is not None])
    recorded, erased = [], False
    for event in needed:
        text = texts.get(event.body.id) if event.body is not None else None
        if text is None:
            erased = True
            continue
        body = TransitionBody.model_validate_json(text)
        recorded.append(Recorded(event.sequence, event.run, body.transition, body.state))
    return replay(recorded), events[0].sequence, erased


def since_keyframe(log: SessionLog) -> int:
    """How many transitions stand behind the newest one that carries the whole state."""
    events = log.latest({EventType.WORKING_STATE_UPDATED}, limit=KEYFRAME_WITHIN)
    return next(
        (place for place, event in enumerate(events) if event.payload["keyframe"]), len(events)
    )


def _packets(
    log: SessionLog,
    events: Sequence[EventRecord],
    known: dict[str, CompactionResult] | None = None,
) -> tuple[tuple[Packet, ...], dict[int, CompactionResult]]:
    known = {} if known is None else known
    bodies = {event.body.id: event.sequence for event in events if event.body is not None}
    unread = [body for body in bodies if body not in known]
    texts = log.texts(unread) if unread else {}
    for body, text in texts.items():
        if text is not None:
            known[body] = CompactionResult.model_validate_json(text)
    for body in set(known) - set(bodies):
        del known[body]
    results: dict[int, CompactionResult] = {
        sequence: known[body] for body, sequence in bodies.items() if body in known
    }
    packets = packets_from(events, results)
    return tuple(sorted(packets, key=lambda packet: packet.first)), results


def _event(log: SessionLog, sequence: int) -> Sequence[EventRecord]:
    return log.events(after=EventSeq(sequence - 1), limit=1)
