"""Which unit an event's items belong to, and the running sums that make a cut one look-up (design 2 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from ctxengine.engine.errors import OrphanPair
from ctxengine.engine.events import RULE_OF_EVENT, EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.log.chain import link
from ctxengine.engine.log.records import (
    Batch,
    BodyCommitment,
    Head,
    ItemRecord,
    UnitDelta,
    UnitFacts,
)

UNIT_KIND = {
    EventType.USER_MESSAGE: "user",
    EventType.INPUT_RECEIVED: "input",
    EventType.GUARD_SPOKE: "input",
    EventType.SUMMARY_IMPORTED: "summary",
}
"""Kinds of units by the event that opens them; an answer's depends on whether it calls."""


def plan_batch(
    drafts: Sequence[EventDraft],
    *,
    head: Head,
    tenant: str,
    session: str,
    bodies: Sequence[BodyCommitment | None],
    recorded_at: datetime,
    unit_of_call: Callable[[tuple[int, int]], EventSeq | None],
    idempotency_key: str = "",
) -> Batch:
    """Everything an append of `drafts` behind `head` writes.

    Args:
        bodies: for each draft, what its event commits to.
        unit_of_call: the unit of an earlier call, by (sequence, ordinal); None when there is none.

    Raises:
        OrphanPair: a result answers no call of the session.
    """
    batch = Batch()
    new_units: dict[EventSeq, UnitFacts] = {}
    calls = _Calls(unit_of_call)
    sequence, previous = head.sequence, head.hash
    content, act = head.content_sequence, head.act_sequence
    for draft, body in zip(drafts, bodies, strict=True):
        sequence = EventSeq(sequence + 1)
        record = link(
            draft,
            tenant=tenant,
            session=session,
            sequence=sequence,
            prev_hash=previous,
            body=body,
            recorded_at=recorded_at,
            idempotency_key=idempotency_key,
        )
        previous = record.hash
        batch.events.append(record)
        rule = RULE_OF_EVENT[draft.type]
        content = sequence if rule.content else content
        act = sequence if rule.act else act
        if draft.items:
            _place(draft, sequence, batch, new_units, head, calls)
    _sum_up(batch, new_units, head)
    totals = _totals(batch, head)
    batch.head = Head(
        sequence=sequence,
        hash=previous,
        content_sequence=content,
        act_sequence=act,
        items=head.items + len(batch.items),
        units=head.units + len(new_units),
        turns=head.turns + sum(unit.kind == "user" for unit in new_units.values()),
        tokens=totals[0],
        pointer_tokens=totals[1],
        result_tokens=totals[2],
    )
    return batch


class _Calls:
    """Calls that a result of this batch may answer: those of the batch and of the log before it, each once."""

    def __init__(self, unit_of_call: Callable[[tuple[int, int]], EventSeq | None]) -> None:
        self._unit_of_call = unit_of_call
        self._fresh: set[tuple[int, int]] = set()
        self._answered: set[tuple[int, int]] = set()

    def opened(self, draft: EventDraft, sequence: EventSeq) -> int:
        """Take in the calls of a draft; gives how many there are."""
        found = {(sequence, i.ordinal) for i in draft.items if i.kind is ItemKind.TOOL_CALL}
        self._fresh |= found
        return len(found)

    def answer(self, call: tuple[int, int]) -> EventSeq:
        """The unit of an open call, which is answered with this."""
        home = EventSeq(call[0]) if call in self._fresh else self._unit_of_call(call)
        if home is None or call in self._answered:
            raise OrphanPair(f"No open call {call[0]}.{call[1]} is known in this session.")
        self._answered.add(call)
        return home


def _place(
    draft: EventDraft,
    sequence: EventSeq,
    batch: Batch,
    new_units: dict[EventSeq, UnitFacts],
    head: Head,
    calls: _Calls,
) -> None:
    if draft.answers is None:
        opened = calls.opened(draft, sequence)
        kind = UNIT_KIND.get(draft.type) or ("step" if opened else "answer")
        unit = UnitFacts(
            sequence=sequence,
            index=head.units + len(new_units),
            kind=kind,
            run=draft.run,
            last_sequence=sequence,
            open_calls=opened,
        )
        new_units[sequence] = unit
        _add(unit, draft, sequence)
        home = sequence
    else:
        home = _answer(draft, sequence, batch, new_units, calls)
    batch.items.extend(
        ItemRecord(sequence, home, draft.trust, draft.run, facts) for facts in draft.items
    )


def _answer(
    draft: EventDraft,
    sequence: EventSeq,
    batch: Batch,
    new_units: dict[EventSeq, UnitFacts],
    calls: _Calls,
) -> EventSeq:
    home = calls.answer(draft.answers or (0, 0))
    fresh = new_units.get(home)
    if fresh is not None:
        fresh.open_calls -= 1
        _add(fresh, draft, sequence)
        return home
    delta = batch.deltas.setdefault(home, UnitDelta(home, sequence))
    delta.closed_calls += 1
    _add(delta, draft, sequence)
    return home


def _add(target: UnitFacts | UnitDelta, draft: EventDraft, sequence: EventSeq) -> None:
    target.last_sequence = sequence
    for item in draft.items:
        target.tokens += item.tokens
        target.pointer_tokens += item.pointer_tokens
        if item.kind is ItemKind.TOOL_RESULT:
            target.result_tokens += item.tokens


def _sum_up(batch: Batch, new_units: dict[EventSeq, UnitFacts], head: Head) -> None:
    tokens = head.tokens + sum(delta.tokens for delta in batch.deltas.values())
    pointer = head.pointer_tokens + sum(d.pointer_tokens for d in batch.deltas.values())
    results = head.result_tokens + sum(delta.result_tokens for delta in batch.deltas.values())
    turns = head.turns
    for unit in new_units.values():
        unit.before_tokens, unit.before_pointer_tokens = tokens, pointer
        unit.before_result_tokens, unit.before_turns = results, turns
        tokens += unit.tokens
        pointer += unit.pointer_tokens
        results += unit.result_tokens
        turns += unit.kind == "user"
        batch.units.append(unit)


def _totals(batch: Batch, head: Head) -> tuple[int, int, int]:
    added: list[UnitFacts | UnitDelta] = [*batch.units, *batch.deltas.values()]
    return (
        head.tokens + sum(entry.tokens for entry in added),
        head.pointer_tokens + sum(entry.pointer_tokens for entry in added),
        head.result_tokens + sum(entry.result_tokens for entry in added),
    )
