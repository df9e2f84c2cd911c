"""The `boundary` engine's projection: the checkpoint in force, what it must be followed by, and everything since (design 6)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.boundary.capability import (
    LEAST_THRESHOLD_TOKENS,
    betas_for,
    compacts_natively,
)
from ctxengine.engine.boundary.checkpoint import Checkpoint, checkpoint_of, window_items
from ctxengine.engine.boundary.note_text import archive_notice, note_text
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.history.opening import opening_line
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import SessionFacts, StepInputs
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.manifest import Form, Reason, Span
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.wire.registry import PROVIDER_API

_REASON = {"native": Reason.IN_NATIVE_WINDOW, "note": Reason.IN_NOTE}


def project_boundary(
    log: SessionLog, session: SessionFacts, inputs: StepInputs, counter: TokenCounter
) -> Projection:
    """The recorded checkpoint applied to the log; the whole history where there is none."""
    checkpoint = None
    if inputs.projection is not None:
        found = log.events(after=EventSeq(inputs.projection - 1), limit=1)
        checkpoint = checkpoint_of(found[0])
    text = log.body(checkpoint.body) if checkpoint and checkpoint.body else None
    return projected(
        log,
        session,
        boundary=EventSeq(inputs.boundary),
        marks=inputs.marks,
        counter=counter,
        checkpoint=checkpoint,
        text=text,
    )


def projected(
    log: SessionLog,
    session: SessionFacts,
    *,
    boundary: EventSeq,
    marks: Marks,
    counter: TokenCounter,
    checkpoint: Checkpoint | None,
    text: str | None,
) -> Projection:
    """A checkpoint, installed or about to be, as a request shows it.

    Args:
        boundary: where the open run begins.
        text: the checkpoint's body as stored; None once it was erased.
    """
    plan = session.plan
    api = PROVIDER_API[plan.provider]
    inline = plan.policy.native_contract == "inline"
    threshold = inline_threshold(session)
    if checkpoint is None:
        history = present(log.units(EventSeq(1), boundary), marks, counter)
        opening = opening_line(history, log, boundary)
        return Projection(
            history=history,
            row_nine=opening,
            row_nine_tokens=counter.text(opening) if opening else 0,
            history_tokens=sum(unit.tokens for unit in history),
            betas=betas_for(api, window=False, inline=bool(threshold)),
            compact_threshold=threshold,
        )
    retained = _retained(log, checkpoint, marks, counter)
    tail = present(log.units(checkpoint.cut, boundary), marks, counter)
    native: tuple[str, ...] = ()
    row_nine = archive_notice(checkpoint)
    if text is not None and checkpoint.kind == "native":
        opened = session.unseal(text)
        native = window_items(opened) if opened is not None else ()
    elif text is not None:
        row_nine = note_text(checkpoint, text, session.nonce_key) + row_nine
    native_tokens = checkpoint.tokens if checkpoint.kind == "native" else 0
    tokens = native_tokens + (counter.text(row_nine) if row_nine else 0)
    history = [*retained, *tail]
    return Projection(
        cut=checkpoint.cut,
        history=history,
        reason=Reason.AFTER_BOUNDARY,
        native=native,
        betas=betas_for(
            api,
            window=checkpoint.kind == "native" and not checkpoint.inline,
            inline=bool(threshold) or (inline and checkpoint.inline),
        ),
        compact_threshold=threshold,
        row_nine=row_nine,
        row_nine_tokens=tokens,
        row_nine_erased=text is None or (checkpoint.kind == "native" and not native),
        history_tokens=sum(unit.tokens for unit in history),
        spans=_spans(checkpoint, retained, tokens),
        units_left_out=max(0, checkpoint.units - len(retained)),
        turns_left_out=checkpoint.turns,
        tokens_left_out=_left_out_tokens(checkpoint, retained),
    )


def inline_threshold(session: SessionFacts) -> int:
    """Tokens from which on the provider is asked to compact by itself; 0 where it is asked on demand, or never."""
    plan = session.plan
    if plan.policy.native_contract != "inline" or not compacts_natively(plan.provider, plan.model):
        return 0
    total = plan.window if plan.policy.policy_cap is None else plan.policy.policy_cap
    api = PROVIDER_API[plan.provider]
    wanted = int(total * plan.policy.summarize_trigger)
    return max(LEAST_THRESHOLD_TOKENS.get(api, 0), wanted)


def _retained(
    log: SessionLog, checkpoint: Checkpoint, marks: Marks, counter: TokenCounter
) -> list[Unit]:
    """Units from before the cut that follow the window or the note, and those an operator pinned since."""
    wanted = {*checkpoint.shown, *(s for s in marks.pinned if s < checkpoint.cut)}
    units = [
        unit
        for sequence in sorted(wanted)
        for unit in log.units(EventSeq(sequence), EventSeq(sequence + 1))
    ]
    return list(present(units, marks, counter))


def _spans(checkpoint: Checkpoint, retained: list[Unit], tokens: int) -> tuple[Span, ...]:
    reason = _REASON[checkpoint.kind]
    covered = Span(
        row=10,
        from_item="1.0",
        to_item=f"{checkpoint.replaced}.0",
        form=Form.OUT,
        reason=reason,
        items=0,
        units=max(0, checkpoint.units - len(retained)),
        tokens=_left_out_tokens(checkpoint, retained),
        numbers={"event": checkpoint.sequence},
    )
    trust = Trust.EXTERNAL_UNTRUSTED if checkpoint.kind == "native" else Trust.MODEL
    shown = Span(
        row=9,
        from_item="1.0",
        to_item=f"{checkpoint.replaced}.0",
        form=Form.PACKET,
        reason=reason,
        items=1,
        tokens=tokens,
        trust={trust.value: tokens},
        numbers={"event": checkpoint.sequence, "by_provider": int(checkpoint.kind == "native")},
    )
    left = [_range(first, last, Reason.LEFT_IN_ARCHIVE) for first, last in checkpoint.left_out]
    selected = [_range(first, last, Reason.RECOVERED) for first, last in checkpoint.ranges]
    return (covered, shown, *left, *selected, *(_again(unit) for unit in retained))


def _left_out_tokens(checkpoint: Checkpoint, retained: Sequence[Unit]) -> int:
    """What a checkpoint stands for and no request shows (tokens): what is shown again is not left out."""
    return max(0, checkpoint.tokens_before - sum(unit.tokens for unit in retained))


def _range(first: int, last: int, reason: Reason) -> Span:
    """What became of a range within the covered one; its units and tokens are told there."""
    return Span(
        row=10,
        from_item=f"{first}.0",
        to_item=f"{last}.0",
        form=Form.OUT,
        reason=reason,
        items=0,
        tokens=0,
    )


def _again(unit: Unit) -> Span:
    """A covered unit that follows the window or the note whole; it is told here and nowhere else."""
    said = sum(item.tokens for item in unit.items if item.kind is ItemKind.USER_MESSAGE)
    trust = {
        Trust.USER.value: said,
        Trust.MODEL.value: unit.tokens - said - unit.result_tokens,
        Trust.EXTERNAL_UNTRUSTED.value: unit.result_tokens,
    }
    return Span(
        row=10,
        from_item=str(unit.items[0].id),
        to_item=f"{unit.last_sequence}.0",
        form=Form.WHOLE,
        reason=Reason.RETAINED,
        items=len(unit.items),
        units=1,
        tokens=unit.tokens,
        trust={level: tokens for level, tokens in trust.items() if tokens},
    )
