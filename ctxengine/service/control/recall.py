"""`recall`: reading back what a request does not show, under the trust it always had (design 6; capacity spec 3 and 10)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.control.recall import (
    MAX_CHARS,
    Recallable,
    RecallWish,
    Room,
    WishFault,
    read_recall,
    room_for,
    within,
)
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.run_input import fixed_frame
from ctxengine.engine.trust.levels import lowest
from ctxengine.engine.turns.presentation import PresentationRecord, records_of
from ctxengine.engine.turns.reopened import record_text
from ctxengine.engine.turns.turn import Turn
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.queries.turns import turn_spans
from ctxengine.service.control.answers import ControlAnswer, ControlCall
from ctxengine.service.left_out import LeftOut
from ctxengine.service.wiring import counter_of

__all__ = ["MAX_CHARS", "answer_recall", "recalled"]

NO_SUCH_ID = "Nothing of this session has that id."
LEFT_OUT = "This was left out by an operator; go on without it."


def answer_recall(call: ControlCall) -> ControlAnswer:
    """Answer one recall. What it quotes keeps its trust; what cannot be found is said plainly."""
    room = room_of(call.plan, call.run.settings.get("factor_millionths", 1_000_000))
    return recalled(call.log, call.arguments, below=EventSeq(call.response_sequence), room=room)


def room_of(plan: Plan, factor_millionths: int) -> Room:
    """What a request of this plan has for an answer."""
    counter = counter_of(plan.provider, plan.model)
    return room_for(fixed_frame(plan, factor_millionths), counter)


def recalled(log: PostgresLog, arguments: str, *, below: EventSeq, room: Room) -> ControlAnswer:
    """What a call with these arguments gets of everything before `below`."""
    try:
        wish = read_recall(arguments)
    except WishFault as fault:
        return _refused(str(fault))
    return _read(log, wish, below, room)


def _read(log: PostgresLog, wish: RecallWish, below: EventSeq, room: Room) -> ControlAnswer:
    if wish.what is Recallable.TURN:
        return _turn(log, wish, below, room)
    sequence, ordinal = _place(wish.name)
    if sequence is None:
        return _refused("Give an item id such as 12.0 or an event number such as 12.")
    if not 1 <= sequence < below:
        return _refused(NO_SUCH_ID)
    if wish.what is Recallable.PRESENTATION:
        return _presentation(log, wish, sequence, room)
    items = _items(log, sequence, ordinal)
    if not items:
        return _presentation(log, wish, sequence, room)
    return _answer(items, wish, LeftOut(log), room)


def _place(name: str) -> tuple[int | None, int | None]:
    head, dot, tail = name.partition(".")
    if not head.isdecimal() or (dot and not tail.isdecimal()) or len(name) > 20:
        return None, None
    return int(head), int(tail) if dot else None


def _items(log: PostgresLog, sequence: int, ordinal: int | None) -> list[Item]:
    unit = log.unit_of_item(EventSeq(sequence))
    if unit is None:
        return []
    return [
        item
        for item in unit.items
        if item.id.sequence == sequence and ordinal in {None, item.id.ordinal}
    ]


def _answer(
    items: Sequence[Item], wish: RecallWish, left_out: LeftOut, room: Room
) -> ControlAnswer:
    if left_out.any_of(str(item.id) for item in items):
        return _refused(LEFT_OUT)
    first = items[0]
    return ControlAnswer(
        text=within(room, "\n".join(text_of_item(item) for item in items), wish),
        trust=lowest(item.trust for item in items),
        source=f"recall:{first.source or first.kind.value}",
    )


def _turn(log: PostgresLog, wish: RecallWish, below: EventSeq, room: Room) -> ControlAnswer:
    spans = turn_spans(log.tenant, log.session)
    number = int(wish.name) if wish.name.isdecimal() and len(wish.name) < 10 else 0
    if not 1 <= number <= len(spans) or spans[number - 1].first >= below:
        return _refused(f"There is no turn {wish.name}; turns are numbered from 1 to {len(spans)}.")
    span = spans[number - 1]
    units = log.units(EventSeq(span.first), min(EventSeq(span.last + 1), below))
    turn = Turn(number, tuple(units))
    return ControlAnswer(
        text=within(room, record_text(turn, left_out=LeftOut(log).items), wish),
        trust=lowest(item.trust for item in turn.items),
        source="recall:turn",
    )


def _presentation(log: PostgresLog, wish: RecallWish, sequence: int, room: Room) -> ControlAnswer:
    events = [
        event
        for event in log.events(after=EventSeq(sequence - 1), limit=1)
        if event.type is EventType.PRESENTATION_EMITTED
    ]
    shown: PresentationRecord | None = next(iter(records_of(log, events)), None)
    if shown is None:
        return _refused(NO_SUCH_ID)
    if shown.payload is None:
        return _refused("This presentation was erased.")
    if LeftOut(log).bars(shown):
        return _refused(LEFT_OUT)
    return ControlAnswer(
        text=within(room, shown.payload, wish), trust=shown.trust, source="recall:presentation"
    )


def _refused(text: str) -> ControlAnswer:
    return ControlAnswer(text=text, is_error=True)
