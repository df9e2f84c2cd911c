"""Putting a session's compactor together, and writing down what it made (design 6 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ctxengine.engine.compaction.compactor import Compactor, Outcome
from ctxengine.engine.compaction.packet import CompactionResult, Packet, body_of
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.soundness import REMEDY, Refusal
from ctxengine.engine.compaction.summarise import LedgerSummariser, Surroundings
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq, parse_item_id
from ctxengine.engine.manifest import Manifest, Reason, Span
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog, Summariser
from ctxengine.engine.standing import Standing
from ctxengine.engine.step import Prepared
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.wiring import counter_of

WORDS = {
    Refusal.NOTHING_TO_COMPACT: "Nothing is left to compact in that range.",
    Refusal.DEPTH_EXCEEDED: (
        "The summaries there are were merged already, and a summary is never compressed a third time. "
        "Hand the work to a child run with a budget of its own."
    ),
    Refusal.NO_PROGRESS: (
        "A summary would not be clearly smaller than what it replaces, so nothing was changed. "
        "Hand the work to a child run, or route the session to a larger window."
    ),
    Refusal.NO_ROOM: "The model's horizon leaves no room for a summary; nothing was changed.",
    Refusal.ABNORMAL_STOP: "The summary was not finished; nothing was changed.",
    Refusal.EMPTY: "The summary was empty; nothing was changed.",
    Refusal.HOLDS_TOOL_CALL: "The summariser called a tool instead of answering; nothing was changed.",
    Refusal.SOURCE_CHANGED: "What was summarised has changed meanwhile; nothing was changed.",
    Refusal.DOES_NOT_PAY: "What the summary saves is less than what it re-caches; nothing was changed.",
    Refusal.OVER_BUDGET: "The summary stayed longer than it may be; nothing was changed.",
    Refusal.NO_SUMMARISER: "No model can be called to write the summary; nothing was changed.",
    Refusal.SUMMARISER_FAILED: "The model that writes summaries could not be reached; nothing was changed.",
}
"""What each refusal says."""

SUMMARIES_FULL = (
    "The summaries that stand leave no room for another one within what a request may spend on summaries; nothing was changed. "
    "Hand the work to a child run with a budget of its own, or route the session to a larger window."
)
"""What `depth_exceeded` says where nothing was merged yet."""


def refusal_words(refusal: Refusal, packets: Sequence[Packet]) -> str:
    """Why no summary can be made beside those that stand."""
    merged = any(packet.depth > 1 for packet in packets)
    return WORDS[refusal] if refusal is not Refusal.DEPTH_EXCEEDED or merged else SUMMARIES_FULL


class MadeFor(NamedTuple):
    """What a compaction was made for; it counts for plans no larger than this one (design 6)."""

    plan_total: int
    model: str
    policy: str
    forced_by: str
    """Request that did not fit, or who asked."""


def compactor_of(
    log: SessionLog,
    plan: Plan,
    standing: Standing,
    *,
    below: int,
    defer: bool = False,
    summariser: Summariser | None = None,
) -> Compactor | None:
    """The compactor of a live session; None where the policy wants none.

    Args:
        below: one past the newest content event.
        defer: make nothing, only say which summary is wanted.
        summariser: writes the summaries, merged ones included; None takes them from the ledger.
    """
    if plan.policy.compaction == "none":
        return None
    counter = counter_of(plan.provider, plan.model)
    texts = SessionTexts(log, EventSeq(below))
    return Compactor(
        units=log,
        summariser=summariser or LedgerSummariser(counter),
        counter=counter,
        policy=plan.policy,
        surroundings=Surroundings(
            untrusted=texts.untrusted,
            brought=texts.brought,
            constraints=tuple(constraint.text for constraint in standing.state.constraints),
            open_tasks=tuple(task.title for task in standing.state.open_tasks),
            tools=plan.pinned_names,
        ),
        excluded=frozenset(standing.marks.excluded),
        defer=defer,
        retell=summariser is not None,
    )


def compaction_draft(
    result: CompactionResult,
    *,
    came_with: Sequence[int],
    made_for: MadeFor,
    run: str | None,
    owner: str,
    reason: str = "",
    writer: dict[str, Any] | None = None,
) -> EventDraft:
    """The event that installs a summary.

    Args:
        writer: who wrote it and what that cost, where a model did.
        came_with: events of the same pass that an undoing takes back as well: the floor that rose, a merge before it.
    """
    return EventDraft(
        type=EventType.COMPACTED,
        trust=Trust.MODEL,
        run=run,
        payload={
            "kind": result.kind,
            "first_sequence": result.first_sequence,
            "replaced_through_sequence": result.replaced_through_sequence,
            "depth": result.depth,
            "merges": list(result.merges),
            "came_with": list(came_with),
            "turns": result.turns,
            "units": result.units,
            "sources": len(result.source_event_ids),
            "elided": len(result.elided),
            "constraints": len(result.constraints),
            "tokens_before": result.tokens_before,
            "tokens_after": result.tokens_after,
            "compactor": result.compactor_version,
            "detector": result.detector,
            "masked": result.masked,
            "source_sha256": result.source_sha256,
            "plan_total": made_for.plan_total,
            "model": made_for.model,
            "policy": made_for.policy,
            "forced_by": made_for.forced_by,
            "reason": reason,
            "verdict": result.verdict.model_dump() if result.verdict else None,
            **({"writer": writer} if writer else {}),
            **({"grown_from": result.grown_from} if result.grown_from else {}),
        },
        body=body_of(result),
        owner=owner,
    )


def refusal_draft(
    log: SessionLog | None,
    refusal: Refusal,
    *,
    first: int,
    through: int,
    tokens: int,
    content_head: int,
    forced_by: str,
    run: str | None,
) -> EventDraft | None:
    """The event that says why no summary was installed; None when the log, where given, says so for this head already."""
    if log is not None:
        newest = log.newest(EventType.COMPACTION_REFUSED)
        if (
            newest is not None
            and newest.payload["reason"] == refusal.value
            and newest.payload["content_sequence"] == content_head
        ):
            return None
    return refusal_event(
        refusal,
        first=first,
        through=through,
        tokens=tokens,
        content_head=content_head,
        forced_by=forced_by,
        run=run,
    )


def refusal_event(
    refusal: Refusal,
    *,
    first: int,
    through: int,
    tokens: int,
    content_head: int,
    forced_by: str,
    run: str | None,
    asked: dict[str, Any] | None = None,
) -> EventDraft:
    """The event that says why no summary was installed.

    Args:
        asked: the model that was to write it, the job and the provider's code, where a model was.
    """
    return EventDraft(
        type=EventType.COMPACTION_REFUSED,
        trust=Trust.PLATFORM,
        run=run,
        payload={
            "reason": refusal.value,
            "remedy": REMEDY[refusal],
            "first_sequence": first,
            "through_sequence": through,
            "tokens_before": tokens,
            "content_sequence": content_head,
            "forced_by": forced_by,
            **({"asked": asked} if asked else {}),
        },
    )


def outcome_drafts(
    outcome: Outcome,
    *,
    first: int,
    yields: Sequence[int],
    made_for: MadeFor,
    run: str | None,
    owner: str,
    reason: str = "",
    writer: dict[str, Any] | None = None,
) -> list[EventDraft]:
    """The events of one pass, the first of them at sequence `first`; `writer` goes with the last."""
    drafts: list[EventDraft] = []
    merges: list[int] = []
    for result in outcome.made:
        merging = bool(result.merges)
        drafts.append(
            compaction_draft(
                result,
                came_with=[] if merging else [*yields, *merges],
                made_for=made_for,
                run=run,
                owner=owner,
                reason=reason,
                writer=writer if result is outcome.made[-1] else None,
            )
        )
        if merging:
            merges.append(first + len(drafts) - 1)
    return drafts


def pressure_compactions(
    prepared: Prepared,
    before: Sequence[EventDraft],
    *,
    first: int,
    run: str,
    owner: str,
    made_for: MadeFor,
) -> list[EventDraft]:
    """The events that a cut under pressure brings along.

    Args:
        before: drafts of the same append so far: the floors that rose, the first of them at sequence `first`.
    """
    outcome = prepared.compaction
    if outcome is None:
        return []
    yields = [
        first + place
        for place, draft in enumerate(before)
        if draft.type is EventType.YIELD_APPLIED and draft.payload["class"] == "history"
    ]
    drafts = outcome_drafts(
        outcome,
        first=first + len(before),
        yields=yields,
        made_for=made_for,
        run=run,
        owner=owner,
        reason="budget",
    )
    if outcome.refused is not None:
        raised = prepared.allocation.raises[-1]
        refused = refusal_draft(
            None,
            outcome.refused,
            first=max(1, raised.floor_before),
            through=raised.floor - 1,
            tokens=raised.before - raised.after,
            content_head=prepared.inputs.content_head,
            forced_by=made_for.forced_by,
            run=run,
        )
        drafts += [refused] if refused is not None else []
    return drafts


def packets_of(prepared: Prepared, drafts: Sequence[EventDraft], *, first: int) -> tuple[int, ...]:
    """Events of the summaries that the request shows, those about to be written included.

    Args:
        drafts: the whole append, its first event at sequence `first`.
    """
    new = {
        (
            draft.payload["first_sequence"],
            draft.payload["replaced_through_sequence"],
            draft.payload["depth"],
        ): first + place
        for place, draft in enumerate(drafts)
        if draft.type is EventType.COMPACTED
    }
    return tuple(
        packet.sequence or new[packet.first, packet.through, packet.depth]
        for packet in prepared.packets
    )


def naming_summaries(manifest: Manifest, drafts: Sequence[EventDraft], *, first: int) -> Manifest:
    """A step's manifest with the event of each summary that the step itself makes: it is about to be appended.

    Args:
        drafts: the whole append, its first event at sequence `first`.
    """
    new = {
        (draft.payload["first_sequence"], draft.payload["replaced_through_sequence"]): first + place
        for place, draft in enumerate(drafts)
        if draft.type is EventType.COMPACTED
    }
    if not new:
        return manifest
    return manifest.model_copy(update={"spans": [_named(span, new) for span in manifest.spans]})


def _named(span: Span, new: Mapping[tuple[int, int], int]) -> Span:
    if span.reason is not Reason.SUMMARISED or span.numbers.get("event") != 0:
        return span
    first, through = (
        parse_item_id(edge or "0.0").sequence for edge in (span.from_item, span.to_item)
    )
    event = new.get((first, through))
    if event is None:
        return span
    return span.model_copy(update={"numbers": {**span.numbers, "event": event}})
