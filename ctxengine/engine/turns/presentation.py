"""Presentations as the ledger keeps them: one event for each card that was shown (capacity spec 10).

A presentation is never shown to the model raw. Its own turn sees the call it was made by; later turns see its digest in the
turn's card, and the whole of it by recalling its event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.presentations.payload import json_string, payload_sha256, strings_of
from ctxengine.engine.presentations.schemas import Identity
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view

PRESENTATION_VERSION = "presentation@1"

Origin = Literal["call", "fence"]


@dataclass(frozen=True, slots=True)
class PresentationRecord:
    """One card that was shown. Its content is None where it was erased."""

    sequence: EventSeq
    """The event it stands in: feedback, selection and `recall` name it so."""
    turn: EventSeq
    """Event of the message that opened its turn."""
    run: str | None
    source: str
    """Item it was made from: the call, or the message with the fence."""
    origin: Origin
    tool: str
    """Ledger name of the card tool; empty for a type without one."""
    semantic_type: str
    schema_version: int
    payload_sha256: str
    """Digest of the canonical payload: equal cards of one turn are one."""
    identity_sha256: str
    derived_from: tuple[str, ...]
    """Item ids of the results that stood in the turn before it."""
    trust: Trust
    """Lowest of the model's own and that of every result it may quote; each of its fields has it."""
    title: str | None = None
    digest: str | None = None
    """Identity fields by the type's schema, as JSON text; a shape digest for types that declare none."""
    payload: str | None = None
    """Canonical JSON text of the whole card."""

    @property
    def id(self) -> str:
        """The event number as text."""
        return str(self.sequence)

    @property
    def index_text(self) -> str:
        """Words that the turn is found by: title, labels, values, takeaways. Secrets are none of them.

        A secret may be known by its member's name alone, and a digest does not always keep that name: where the payload holds
        secrets, only texts count that stand in it beside them.
        """
        if self.payload is None:
            return ""
        digest = redact(self.digest or "").text
        words = [self.title or "", *(_texts_in(digest) or [digest])]
        clean = redact(self.payload)
        if clean.masked:
            beside = set(_texts_in(clean.text))
            words = [word for word in words if word in beside]
        return redact("\n".join(words)).text.strip()


@dataclass(frozen=True, slots=True)
class Emitted:
    """A card that validated and is about to be written."""

    turn: EventSeq
    source: str
    origin: Origin
    tool: str
    semantic_type: str
    schema_version: int
    identity: Identity
    payload: str
    """Canonical JSON text."""
    derived_from: tuple[str, ...]
    trust: Trust

    def draft(self, *, run: str, owner: str) -> EventDraft:
        """The event to append; everything a model wrote is in the body."""
        digest = model_view(self.identity.digest)
        body = (
            f'{{"digest":{json_string(digest)},"payload":{self.payload},'
            f'"title":{json_string(self.identity.title)}}}'
        )
        return EventDraft(
            type=EventType.PRESENTATION_EMITTED,
            trust=self.trust,
            run=run,
            payload={
                "turn": int(self.turn),
                "source": self.source,
                "origin": self.origin,
                "tool": model_view(self.tool),
                "semantic_type": model_view(self.semantic_type),
                "schema_version": self.schema_version,
                "payload_sha256": payload_sha256(self.payload),
                "identity_sha256": payload_sha256(digest),
                "derived_from": list(self.derived_from),
                "version": PRESENTATION_VERSION,
            },
            body=body,
            owner=owner,
        )


def presentations_of(
    log: SessionLog, first: EventSeq | int, last: EventSeq | int
) -> tuple[PresentationRecord, ...]:
    """The cards shown between two events, both included, in the order they were shown."""
    if last < first or last < 1:
        return ()
    after = EventSeq(max(int(first), 1) - 1)
    events = [
        event
        for event in log.events(after=after, limit=int(last) - after)
        if event.type is EventType.PRESENTATION_EMITTED and event.sequence <= last
    ]
    return records_of(log, events)


def records_of(log: SessionLog, events: Sequence[EventRecord]) -> tuple[PresentationRecord, ...]:
    """These `presentation.emitted` events with their content, in the order given."""
    if not events:
        return ()
    texts = log.texts([event.body.id for event in events if event.body is not None])
    return tuple(
        _record(event, texts.get(event.body.id) if event.body is not None else None)
        for event in events
    )


def _record(event: EventRecord, body: str | None) -> PresentationRecord:
    told = event.payload
    title = digest = payload = None
    if body is not None:
        content = parse(body)
        named, known, whole = (content.get(name) for name in ("title", "digest", "payload"))
        title = (named.text() if named is not None else None) or ""
        digest = (known.text() if known is not None else None) or ""
        payload = whole.raw if whole is not None else "{}"
    return PresentationRecord(
        sequence=event.sequence,
        turn=EventSeq(told["turn"]),
        run=event.run,
        source=told["source"],
        origin=told["origin"],
        tool=told["tool"],
        semantic_type=told["semantic_type"],
        schema_version=told["schema_version"],
        payload_sha256=told["payload_sha256"],
        identity_sha256=told["identity_sha256"],
        derived_from=tuple(told["derived_from"]),
        trust=event.trust,
        title=title,
        digest=digest,
        payload=payload,
    )


def _texts_in(json_text: str) -> list[str]:
    """The texts and numbers of a JSON text; none of what is no JSON any more."""
    try:
        return list(strings_of(parse(json_text)))
    except LexemeError:
        return []
