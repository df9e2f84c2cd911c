"""Canonical messages of a library's host, and the log that holds them: one event each (boundary spec)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from ctxengine.engine.derive import Derivation, facts_of
from ctxengine.engine.errors import OrphanPair
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.ports import OpenCall
from ctxengine.engine.trust.levels import Trust


class MessageCall(BaseModel):
    """A tool call of an assistant's message; `arguments` is text as the model wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    arguments: str = "{}"


class Message(BaseModel):
    """One canonical message, whole and as the host has it. A field that means nothing for its role is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    calls: tuple[MessageCall, ...] = ()
    call_id: str | None = None
    """For a tool's message: the call it answers."""
    is_error: bool = False
    retain: Literal["objective", "reminder", "hook", "operation"] | None = None
    """For what a user or a tool says: what it is kept for behind every checkpoint."""
    operation_id: str | None = None
    """For a tool's message: the operation it belongs to."""

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        given = {
            name
            for name, field in type(self).model_fields.items()
            if getattr(self, name) != field.default
        }
        for name in sorted(given & _ROLES.keys()):
            if self.role not in _ROLES[name]:
                raise ValueError(
                    f"`{name}` means nothing on a message of the role {self.role}; "
                    f"it may stand on: {', '.join(_ROLES[name])}. Leave it out."
                )
        return self


_ROLES: dict[str, tuple[str, ...]] = {
    "calls": ("assistant",),
    "call_id": ("tool",),
    "is_error": ("tool",),
    "retain": ("user", "tool"),
    "operation_id": ("tool",),
}
"""Where each field that is not on every message may stand."""


def append_messages(
    log: MemoryLog,
    messages: Sequence[Message],
    *,
    derivation: Derivation,
    at: datetime,
) -> None:
    """Append messages behind those that are there, each as one event.

    After an error the messages before the one that is wrong are in the log: give a copy of a log that is in use.

    Args:
        at: time of recording, with offset.

    Raises:
        ContentError: a message cannot be read.
        OrphanPair: a tool's message answers no call.
    """
    for message in messages:
        log.append([_draft(log, message, derivation)], expected=None, at=at)


def _draft(log: MemoryLog, message: Message, derivation: Derivation) -> EventDraft:
    head = log.head()
    sequence = EventSeq(head.sequence + 1)
    type, raw, format = _written(message)
    answered = _answered(log, message)
    late = type is EventType.USER_MESSAGE and _run_is_open(log)
    if late:
        type = EventType.INPUT_RECEIVED
    run = str(head.turns if late or message.role != "user" else sequence)
    if message.role != "user" or late:
        run = _run_of_newest(log) or run
    decoded = decode_event(type, format, raw)
    ids = {item.call_id for item in decoded if item.kind is ItemKind.TOOL_CALL and item.call_id}
    trust = {"user": Trust.USER, "assistant": Trust.MODEL}.get(
        message.role, Trust.EXTERNAL_UNTRUSTED
    )
    source = {"user": "user", "assistant": "model"}.get(message.role, "tool")
    payload: dict[str, Any] = {"format": format.value}
    if message.retain:
        payload["retain"] = message.retain
    if message.operation_id:
        payload["operation_id"] = message.operation_id
    if answered is not None:
        payload["answers"] = f"{answered.sequence}.{answered.ordinal}"
        source = f"tool:{answered.name}"
    return EventDraft(
        type=type,
        trust=trust,
        payload=payload,
        run=run,
        body=raw,
        format=format,
        items=facts_of(
            decoded,
            sequence=sequence,
            trust=trust,
            source=source,
            derivation=derivation,
            taken=log.taken_call_ids(ids) if ids else set(),
            answered=answered.wire_call_id if answered else "",
            name=answered.name if answered else "",
            is_error=message.is_error,
            ledger_name=str,
        ),
        answers=(answered.sequence, answered.ordinal) if answered else None,
        decoded=tuple(decoded),
    )


def _written(message: Message) -> tuple[EventType, str, ContentFormat]:
    if message.role == "tool":
        return EventType.TOOL_RESULT, message.content, ContentFormat.TEXT
    if message.role == "user":
        return EventType.USER_MESSAGE, message.content, ContentFormat.TEXT
    blocks: list[str] = []
    if message.content:
        blocks.append(json.dumps({"type": "text", "text": message.content}))
    blocks += [
        f'{{"type":"tool_use","id":{json.dumps(call.id)},"name":{json.dumps(call.name)},"input":{call.arguments}}}'
        for call in message.calls
    ]
    return EventType.RESPONSE_COMPLETED, f"[{','.join(blocks)}]", ContentFormat.BLOCKS


def _answered(log: MemoryLog, message: Message) -> OpenCall | None:
    if message.role != "tool":
        return None
    for call in log.open_calls():
        if call.call_id == message.call_id:
            return call
    named = "no call" if message.call_id is None else f"the call {message.call_id!r}"
    raise OrphanPair(
        f"A tool's message answers {named}, and no such call is open. Append it behind the assistant's message that "
        "makes the call, once."
    )


def _run_of_newest(log: MemoryLog) -> str | None:
    newest = log.events(after=EventSeq(max(0, log.head().sequence - 1)), limit=1)
    return newest[0].run if newest else None


def _run_is_open(log: MemoryLog) -> bool:
    """Whether the newest turn still waits for its final answer: then a user's message is part of it."""
    newest = log.events(after=EventSeq(max(0, log.head().sequence - 1)), limit=1)
    if not newest:
        return False
    event = newest[0]
    if event.type is EventType.RESPONSE_COMPLETED:
        unit = log.unit_of_item(event.sequence)
        return unit is not None and any(item.kind is ItemKind.TOOL_CALL for item in unit.items)
    return True
