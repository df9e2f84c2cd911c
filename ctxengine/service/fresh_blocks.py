"""Fresh rows that stay where they were sent: kept as events, read back for later steps of the run (design 7.12)."""

from __future__ import annotations

from collections.abc import Collection

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.projection import SentBlock
from ctxengine.engine.history.sent_blocks import blocks_of
from ctxengine.engine.inputs import Prepared, StepInputs
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.trust.levels import Trust, lowest
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


__all__ = ["blocks_of", "sent_before", "sent_draft"]
