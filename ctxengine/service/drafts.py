"""Making event drafts: decode, derive, commit to nothing yet (design 4: counted once, at append)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ctxengine.engine.derive import Derivation, facts_of
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.ports import OpenCall, SessionLog
from ctxengine.engine.trust.levels import Trust


def content_draft(
    log: SessionLog,
    *,
    type: EventType,
    format: ContentFormat,
    raw: str,
    trust: Trust,
    sequence: EventSeq,
    derivation: Derivation,
    run: str | None,
    source: str = "",
    payload: Mapping[str, Any] | None = None,
    answers: OpenCall | None = None,
    is_error: bool = False,
    owner: str = "",
    ledger_name: Callable[[str], str] = str,
) -> EventDraft:
    """A content event as it will be appended at `sequence`.

    Raises:
        ContentError: the body is not written in its format.
    """
    decoded = decode_event(type, format, raw)
    ids = {item.call_id for item in decoded if item.kind is ItemKind.TOOL_CALL and item.call_id}
    items = facts_of(
        decoded,
        sequence=sequence,
        trust=trust,
        source=source,
        derivation=derivation,
        taken=log.taken_call_ids(ids) if ids else set(),
        answered=answers.wire_call_id if answers else "",
        name=answers.name if answers else "",
        is_error=is_error,
        ledger_name=ledger_name,
    )
    fields: dict[str, Any] = {"format": format.value, **(payload or {})}
    if answers is not None:
        fields["answers"] = f"{answers.sequence}.{answers.ordinal}"
    if is_error and type is EventType.TOOL_RESULT:
        fields["is_error"] = True
    return EventDraft(
        type=type,
        trust=trust,
        payload=fields,
        run=run,
        body=raw,
        format=format,
        items=items,
        answers=(answers.sequence, answers.ordinal) if answers else None,
        owner=owner,
        decoded=tuple(decoded),
    )


def platform_result(
    log: SessionLog,
    *,
    call: OpenCall,
    text: str,
    sequence: EventSeq,
    derivation: Derivation,
    run: str | None,
    is_error: bool = True,
    trust: Trust = Trust.PLATFORM,
    source: str = "platform",
    owner: str = "",
) -> EventDraft:
    """A result the platform itself gives: a refusal, an interruption, a control tool's answer.

    Text of platform trust quotes nothing foreign; an answer that quotes carries the trust of what it quotes, and goes with the
    `owner` of what it quotes.
    """
    return content_draft(
        log,
        type=EventType.TOOL_RESULT,
        format=ContentFormat.TEXT,
        raw=text,
        trust=trust,
        sequence=sequence,
        derivation=derivation,
        run=run,
        source=source,
        payload={"synthetic": True, "source": source},
        answers=call,
        is_error=is_error,
        owner=owner,
    )


INTERRUPTED = "The run ended before this call was carried out; it has no result."
