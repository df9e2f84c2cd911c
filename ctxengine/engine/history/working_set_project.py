"""The recorded working set of a run applied to the log (design 6, 7.8 and 7.19).

Row 9 holds what stands for turns that are not whole: a handoff, the packet, a line for what it does not cover, the cards. Then
come the full turns, and behind them those that were promoted. Pure: the log, the plan event and an operator's acts decide.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import MutableMapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.compaction.packet import (
    SUMMARY_TRUST,
    Gap,
    Packet,
    gap_text,
    packet_text,
)
from ctxengine.engine.history.handoff import Handoff, handoff_at, handoff_text
from ctxengine.engine.history.left_out import any_within, left_out_since
from ctxengine.engine.history.opening import opening_line
from ctxengine.engine.history.projection import PROMOTED_TURNS_TEXT, Projection
from ctxengine.engine.history.sent_blocks import blocks_from
from ctxengine.engine.history.sent_record import AsSent, turns_as_sent
from ctxengine.engine.history.working_set_packets import packet_at
from ctxengine.engine.history.working_set_record import PlannedSet, Stretch, planned_at
from ctxengine.engine.history.working_set_sent import repeats_apart
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import SessionFacts, StepInputs
from ctxengine.engine.items import Unit
from ctxengine.engine.manifest import Form, Reason, Span
from ctxengine.engine.ports import SessionLog, TokenCounter, UnitIndex
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.card import TurnCard, cards_text
from ctxengine.engine.turns.closed import ClosedTurns, cards_of, closed_turns
from ctxengine.engine.turns.record import Repeats, closed_record
from ctxengine.engine.turns.reopened import LEFT_OUT

ClosedUnits = MutableMapping[EventSeq, tuple[Unit, Unit]]
"""Units as the log gives them with their closed form, by the event that opens each; may be dropped at any moment."""


class _Told(NamedTuple):
    """Row 9 with what the manifest says of it."""

    texts: list[str]
    spans: list[Span]
    erased: bool


def project_working_set(
    log: SessionLog,
    session: SessionFacts,
    inputs: StepInputs,
    counter: TokenCounter,
    known: ClosedUnits | None = None,
) -> Projection:
    """Everything before the run as its plan wants it; all closed turns whole where nothing was planned.

    Args:
        known: closed forms of earlier steps, taken where the unit is still the same; brought up to date.
    """
    boundary = EventSeq(inputs.boundary)
    planned = planned_at(log, inputs.projection) if inputs.projection is not None else None
    cut = EventSeq(min(planned.cut, boundary)) if planned else EventSeq(1)
    once = planned is None or planned.cards_once
    closed = closed_turns(log) if planned else None
    repeats = _repeats(planned, closed) if planned is not None and closed is not None else {}
    again = repeats_apart(closed, inputs.marks) if closed is not None else frozenset()
    closing = _Closing(inputs.marks, counter, known, once, repeats, again, closed)
    sent = turns_as_sent(log, planned) if planned else ()
    history = closing.history(log.units(cut, boundary), sent)
    blocks = blocks_from(log, [b for turn in sent for b in turn.blocks], excluded=inputs.excluded)
    kept = [(EventSeq(t.first), closing.turns(log, t.promoted)) for t in sent if t.promoted]
    promoted = closing.turns(log, planned.promoted if planned else ())
    closing.done()
    told = _row_nine(log, session, planned, closed, inputs, counter)
    line = opening_line(history, log, boundary)
    opening = told.texts or ([line] if line else [])
    text = "\n".join(opening)
    apart = opening if planned and planned.card_blocks else ()
    parts = tuple((block, counter.text(block)) for block in apart)
    before = log.at(cut)
    return Projection(
        cut=cut,
        history=history,
        form="digest",
        reason=Reason.CLOSED_TURN,
        as_sent=[(turn.first, turn.last) for turn in sent],
        blocks=blocks,
        kept=kept,
        promoted=promoted,
        promoted_line=PROMOTED_TURNS_TEXT,
        horizon=_horizon(planned) if planned else 0,
        row_nine=text,
        row_nine_parts=parts,
        row_nine_tokens=sum(tokens for _, tokens in parts) or (counter.text(text) if text else 0),
        row_nine_erased=told.erased,
        history_tokens=_tokens(history)
        + sum(block.tokens for block in blocks)
        + sum(counter.text(PROMOTED_TURNS_TEXT) + _tokens(units) for _, units in kept),
        promoted_tokens=sum(unit.tokens for unit in promoted)
        + (counter.text(PROMOTED_TURNS_TEXT) if promoted else 0),
        spans=tuple(told.spans),
        units_left_out=before.index,
        turns_left_out=before.turns,
        tokens_left_out=before.tokens,
    )


def _repeats(planned: PlannedSet, closed: ClosedTurns) -> Repeats:
    """What the whole turns of a plan show again in fences."""
    whole = range(planned.full_from, planned.turns + 1)
    brought = [turn.number for turn in (*planned.promoted, *planned.kept)]
    return closed.repeats([*brought, *whole])


def _tokens(units: Sequence[Unit]) -> int:
    return sum(unit.tokens for unit in units)


def _horizon(planned: PlannedSet) -> int:
    return planned.room.horizon * 1_000_000 // max(1, planned.room.factor_millionths)


class _Closing:
    """Closes units, each of them once as long as `known` is kept."""

    def __init__(
        self,
        marks: Marks,
        counter: TokenCounter,
        known: ClosedUnits | None,
        once: bool,
        repeats: Repeats,
        again: frozenset[int],
        closed: ClosedTurns | None,
    ) -> None:
        self._digests = None if closed is None else closed.digests_at
        self._repeats = repeats
        self._again = again
        """Units whose cards stand again, as an operator's act may have taken their first showing away."""
        self._marks = marks
        self._counter = counter
        self._known = known if once else None
        self._once = once
        self._used: dict[EventSeq, tuple[Unit, Unit]] = {}

    def turns(self, log: SessionLog, turns: Sequence[Stretch]) -> list[Unit]:
        """The closed forms of whole turns."""
        return [
            unit
            for turn in turns
            for unit in self.closed(log.units(EventSeq(turn.first), EventSeq(turn.last + 1)))
        ]

    def history(self, units: Sequence[Unit], sent: Sequence[AsSent]) -> list[Unit]:
        """The same, but for turns that stand as they were sent."""
        shown, begin = [], 0
        for turn in sent:
            first = bisect_left(units, turn.first, key=attrgetter("sequence"))
            end = bisect_right(units, turn.last, key=attrgetter("sequence"))
            shown += self.closed(units[begin:first])
            shown += present(units[first:end], self._marks, self._counter)
            begin = end
        return [*shown, *self.closed(units[begin:])]

    def closed(self, units: Sequence[Unit]) -> list[Unit]:
        """The closed forms, as an operator's acts show them."""
        return [self._one(unit) for unit in present(units, self._marks, self._counter)]

    def _one(self, unit: Unit) -> Unit:
        if unit.sequence in self._repeats:
            # Few: their form hangs on the turn's close as well, so it is not kept.
            return self._record(unit)
        kept = self._known.get(unit.sequence) if self._known is not None else None
        if kept is None or (kept[0] is not unit and kept[0] != unit):
            kept = (unit, self._record(unit))
        self._used[unit.sequence] = kept
        return kept[1]

    def _record(self, unit: Unit) -> Unit:
        once = self._once and unit.sequence not in self._again
        (record,) = closed_record(
            [unit], self._counter, once=once, repeats=self._repeats, digests=self._digests
        )
        return record

    def done(self) -> None:
        """Keep what was used and let go of the rest."""
        if self._known is not None:
            self._known.clear()
            self._known.update(self._used)


def _row_nine(
    log: SessionLog,
    session: SessionFacts,
    planned: PlannedSet | None,
    closed: ClosedTurns | None,
    inputs: StepInputs,
    counter: TokenCounter,
) -> _Told:
    told = _Told([], [], erased=False)
    if planned is None or closed is None:
        return told
    key, erased = session.nonce_key, False
    if planned.handoff is not None:
        handoff = _shown_handoff(log, handoff_at(log, planned.handoff), inputs, counter)
        erased |= handoff.erased
        told.texts.append(handoff_text(handoff, key))
        told.spans.extend(_handoff_spans(log, planned, handoff.tokens))
    if planned.packet is not None:
        packet = packet_at(log, planned.packet)
        if packet is not None:
            told.texts.append(packet_text(packet, key))
            told.spans.extend(_packet_spans(packet, planned))
        erased |= packet is None
    if planned.told_last > planned.packet_last:
        gap = _gap(log, planned)
        told.texts.append(gap_text(gap))
        told.spans.extend(_gap_spans(gap, planned))
    numbers = _card_turns(planned)
    cards = cards_of(log, numbers, closed=closed)
    if numbers:
        shown = [
            _card(number, card, closed, inputs.marks)
            for number, card in zip(numbers, cards, strict=True)
        ]
        gone = set(planned.gone)
        erased |= any(
            card is None and n not in gone for n, card in zip(numbers, cards, strict=True)
        )
        ends = [number - numbers[0] + 1 for number in planned.card_blocks] or [len(shown)]
        told.texts.extend(cards_text(shown[first:end], key) for first, end in pairwise([0, *ends]))
        told.spans.extend(_card_spans(log, closed, numbers, planned))
    told.spans.extend(_value_spans(closed, planned))
    return told._replace(erased=erased)


def _shown_handoff(
    log: SessionLog, handoff: Handoff, inputs: StepInputs, counter: TokenCounter
) -> Handoff:
    """The handoff as it may be shown: not where it was taken from turns of which an operator has left something out since."""
    marks = inputs.marks
    if (
        handoff.by != "ledger"
        or handoff.erased
        or not left_out_since(
            log,
            handoff.sequence,
            1,
            handoff.through,
            excluded=marks.excluded,
            acts=inputs.acts,
        )
    ):
        return handoff
    return handoff._replace(text=LEFT_OUT, tokens=counter.text(LEFT_OUT))


def _card_turns(planned: PlannedSet) -> range:
    return range(max(planned.behind, planned.packet_through) + 1, planned.full_from)


def _card(number: int, card: TurnCard | None, closed: ClosedTurns, marks: Marks) -> TurnCard:
    """The card as it may be shown: blank where its content was erased, or an operator left part of the turn out."""
    event = closed.event(number)
    if event is None:
        msg = f"Turn {number} has no event of its close."
        raise LookupError(msg)
    told = event.payload
    excluded = any_within(marks.excluded, told["first"], told["last"])
    if card is not None and not excluded:
        return card
    return TurnCard(
        number=number,
        first=told["first"],
        last=told["last"],
        asked="[excluded by an operator]" if excluded else "[erased]",
        asked_trust=Trust.MODEL,
        did=(),
        narration="",
        outcome=told["outcome"],
        tokens_full=told["tokens_full"],
    )


def _gap(log: UnitIndex, planned: PlannedSet) -> Gap:
    first, below = (
        EventSeq(max(planned.packet_last, planned.behind_through) + 1),
        EventSeq(planned.told_last + 1),
    )
    start, end = log.at(first), log.at(below)
    return Gap(
        first,
        EventSeq(planned.told_last),
        planned.packet_through - max(planned.packet_turn, planned.behind),
        end.index - start.index,
        end.tokens - start.tokens,
    )


def _out(log: UnitIndex, first: int, last: int, reason: Reason, numbers: dict[str, int]) -> Span:
    """A range that stands in a request in another way than its own words."""
    start, end = log.at(EventSeq(first)), log.at(EventSeq(last + 1))
    return Span(
        row=10,
        from_item=f"{first}.0",
        to_item=f"{last}.0",
        form=Form.OUT,
        reason=reason,
        items=0,
        units=end.index - start.index,
        tokens=end.tokens - start.tokens,
        numbers=numbers,
    )


def _handoff_spans(log: UnitIndex, planned: PlannedSet, tokens: int) -> list[Span]:
    numbers = {"turns": planned.behind, "event": planned.handoff or 0}
    return [
        _out(log, 1, planned.behind_through, Reason.BEHIND_RESET, numbers),
        Span(
            row=9,
            form=Form.WHOLE,
            reason=Reason.BEHIND_RESET,
            items=1,
            tokens=tokens,
            trust={SUMMARY_TRUST.value: tokens} if tokens else {},
            numbers=numbers,
        ),
    ]


def _packet_spans(packet: Packet, planned: PlannedSet) -> list[Span]:
    numbers = {
        "event": packet.sequence,
        "first_turn": planned.behind + 1,
        "last_turn": planned.packet_turn,
        "room": planned.room.tokens,
        "packet": planned.room.packet,
    }
    out = Span(
        row=10,
        from_item=f"{packet.first}.0",
        to_item=f"{packet.through}.0",
        form=Form.OUT,
        reason=Reason.IN_PACKET,
        items=0,
        units=packet.units,
        tokens=packet.tokens_before,
        numbers=numbers,
    )
    shown = Span(
        row=9,
        from_item=out.from_item,
        to_item=out.to_item,
        form=Form.PACKET,
        reason=Reason.IN_PACKET,
        items=1,
        tokens=packet.tokens,
        trust={SUMMARY_TRUST.value: packet.tokens},
    )
    return [out, shown]


def _gap_spans(gap: Gap, planned: PlannedSet) -> list[Span]:
    numbers = {"turns": gap.turns, "room": planned.room.tokens, "packet": planned.room.packet}
    return [
        Span(
            row=10,
            from_item=f"{gap.first}.0",
            to_item=f"{gap.through}.0",
            form=Form.OUT,
            reason=Reason.BELOW_CUT,
            items=0,
            units=gap.units,
            tokens=gap.tokens,
            numbers=numbers,
        ),
        Span(row=9, form=Form.WHOLE, reason=Reason.OMISSION, items=1, tokens=0),
    ]


def _card_spans(
    log: UnitIndex, closed: ClosedTurns, numbers: range, planned: PlannedSet
) -> list[Span]:
    payloads = [event.payload for n in numbers if (event := closed.event(n)) is not None]
    trust: dict[str, int] = {}
    for told in payloads:
        trust[told["trust"]] = trust.get(told["trust"], 0) + told["tokens_card"]
    figures = {"first_turn": numbers[0], "last_turn": numbers[-1], "room": planned.room.tokens}
    out = _out(log, payloads[0]["first"], payloads[-1]["last"], Reason.AS_CARD, figures)
    shown = Span(
        row=9,
        from_item=out.from_item,
        to_item=out.to_item,
        form=Form.CARD,
        reason=Reason.AS_CARD,
        items=len(numbers),
        tokens=sum(trust.values()),
        trust=trust,
        numbers=figures,
    )
    return [out, shown]


def _value_spans(closed: ClosedTurns, planned: PlannedSet) -> list[Span]:
    """The three values of turns that were promoted and of the nearest losers; their tokens are counted elsewhere."""
    spans = []
    chosen = {turn.number for turn in planned.promoted}
    for name, three in planned.values.items():
        event = closed.event(int(name))
        if event is None:
            continue
        won = int(name) in chosen
        by_hand = int(name) in planned.by_hand
        spans.append(
            Span(
                row=10,
                from_item=f"{event.payload['first']}.0",
                to_item=f"{event.payload['last']}.0",
                form=Form.DIGEST if won else Form.OUT,
                reason=_reason(int(name), planned, won=won, by_hand=by_hand),
                items=0,
                tokens=0,
                numbers={
                    "turn": int(name),
                    "recency": three[0],
                    "relevance": three[1],
                    "anaphora": three[2],
                },
            )
        )
    return spans


def _reason(number: int, planned: PlannedSet, *, won: bool, by_hand: bool) -> Reason:
    if won:
        return Reason.PINNED_BY_HAND if by_hand else Reason.PROMOTED
    return Reason.IN_PACKET if number <= planned.packet_through else Reason.AS_CARD
