"""Fresh rows that stay where they were sent: kept as events, read back for later steps of the run (design 7.12)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.left_out import turns_left_out
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared, StepInputs
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.request import ModelRequest, SentBlock
from ctxengine.engine.tail import without_turns
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.turns.closed import closed_turns
from ctxengine.service.request_rows import fresh_digest


def sent_before(
    log: SessionLog, plan: Plan, earlier: StepInputs | None, *, excluded: Collection[str] = ()
) -> tuple[SentBlock, ...]:
    """The blocks of the run so far; none where the plan moves its fresh rows.

    Args:
        earlier: inputs of the run's latest request; None for its first step.
        excluded: items an operator left out.
    """
    if plan.fresh_rows != "appended" or earlier is None:
        return ()
    own = () if earlier.fresh_event is None else (earlier.fresh_event,)
    return blocks_of(log, (*earlier.sent, *own), excluded=excluded)


def blocks_of(
    log: SessionLog, sequences: Sequence[int], *, excluded: Collection[str] = ()
) -> tuple[SentBlock, ...]:
    """The blocks that these events keep, in their order.

    Args:
        excluded: items an operator left out: the thread no longer names what was asked in their turns.
    """
    if not sequences:
        return ()
    wanted = set(sequences)
    events = [*reversed(log.latest({EventType.FRESH_SENT}, limit=len(wanted)))]
    if {event.sequence for event in events} != wanted:
        # An older request: its blocks are not the newest ones.
        first, last = min(wanted), max(wanted)
        events = [
            event
            for event in log.events(after=EventSeq(first - 1), limit=last - first + 1)
            if event.sequence in wanted
        ]
    bodies = {event.body.id for event in events if event.body is not None}
    texts = log.texts(bodies)
    out = turns_left_out(closed_turns(log), excluded) if excluded else frozenset()
    return tuple(
        _block(event, texts.get(event.body.id) if event.body else None, out) for event in events
    )


def _block(event: EventRecord, text: str | None, out: Collection[int]) -> SentBlock:
    payload = event.payload
    if text is not None and out:
        text = without_turns(text, out)
    return SentBlock(
        sequence=event.sequence,
        before=EventSeq(payload["before"]),
        text=text,
        digest=payload["digest"],
        tokens=payload["tokens"],
        rows=payload["rows"],
        by_row=payload["by_row"],
        by_trust=payload["by_trust"],
    )


def sent_draft(
    prepared: Prepared, built: ModelRequest, *, run: str, owner: str
) -> EventDraft | None:
    """The event that keeps what a step adds; None where it adds nothing, or where fresh rows move."""
    run_input = prepared.run
    added = run_input.added
    if not added:
        return None
    return EventDraft(
        type=EventType.FRESH_SENT,
        trust=lowest(Trust(level) for level in run_input.added_trust),
        run=run,
        payload={
            "format": ContentFormat.TEXT.value,
            "before": _place(prepared),
            "rows": dict(run_input.added_rows),
            "tokens": sum(run_input.added_tokens.values()),
            "by_row": {str(row): tokens for row, tokens in run_input.added_tokens.items()},
            "by_trust": dict(run_input.added_trust),
            "digest": fresh_digest(built),
            "content_sequence": prepared.inputs.content_head,
        },
        body=added,
        owner=owner,
    )


def _place(prepared: Prepared) -> int:
    """Where the block stands: before the unanswered input that no request has shown yet, else behind everything so far."""
    place = prepared.inputs.content_head + 1
    for unit in reversed(prepared.run.active):
        shown = unit.sequence < prepared.run.fresh_place
        if shown or unit.items[0].kind is not ItemKind.USER_MESSAGE:
            break
        place = unit.sequence
    return place
