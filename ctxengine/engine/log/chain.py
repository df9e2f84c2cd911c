"""The hash chain: each event's hash covers its own fields and the hash before it (design 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from ctxengine.engine.canonical import canonical_bytes
from ctxengine.engine.events import EventDraft
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import GENESIS_HASH, BodyCommitment, EventRecord

CHAIN_VERSION = 1


def commit_body(body_id: str, salt: bytes, data: bytes) -> BodyCommitment:
    """What the event will say about these bytes."""
    return BodyCommitment(body_id, hashlib.sha256(salt + data).hexdigest(), len(data))


def link(
    draft: EventDraft,
    *,
    tenant: str,
    session: str,
    sequence: EventSeq,
    prev_hash: str,
    body: BodyCommitment | None,
    recorded_at: datetime,
    idempotency_key: str = "",
) -> EventRecord:
    """Give a draft its place in the chain."""
    tokens = sum(item.tokens for item in draft.items)
    unhashed = EventRecord(
        sequence=sequence,
        type=draft.type,
        trust=draft.trust,
        payload=draft.payload,
        run=draft.run,
        body=body,
        tokens=tokens,
        prev_hash=prev_hash,
        hash="",
        recorded_at=recorded_at,
        idempotency_key=idempotency_key,
    )
    digest = event_hash(unhashed, tenant=tenant, session=session)
    return EventRecord(
        sequence, draft.type, draft.trust, draft.payload, draft.run, body, tokens, prev_hash, digest,
        recorded_at, idempotency_key,
    )  # fmt: skip


def event_hash(event: EventRecord, *, tenant: str, session: str) -> str:
    """The hash an event must carry."""
    fields = {
        "v": CHAIN_VERSION,
        "tenant": tenant,
        "session": session,
        "sequence": event.sequence,
        "type": event.type.value,
        "trust": event.trust.value,
        "run": event.run,
        "payload": event.payload,
        "body": None if event.body is None else [event.body.sha256, event.body.length],
        "tokens": event.tokens,
        "at": _stamp(event.recorded_at),
    }
    return hashlib.sha256(event.prev_hash.encode() + canonical_bytes(fields)).hexdigest()


def _stamp(at: datetime) -> str:
    """Microseconds since the epoch as text: the same however a database returns the time."""
    moment = at.astimezone(UTC)
    return f"{int(moment.timestamp()) * 1_000_000 + moment.microsecond}"


class Damage(NamedTuple):
    """The first event at which a chain does not hold."""

    sequence: EventSeq
    problem: str


def first_damage(events: Iterable[EventRecord], *, tenant: str, session: str) -> Damage | None:
    """Walk a chain from its first event; None when it holds."""
    expected_sequence, previous = 1, GENESIS_HASH
    for event in events:
        if event.sequence != expected_sequence:
            return Damage(EventSeq(expected_sequence), f"event {expected_sequence} is missing")
        if event.prev_hash != previous:
            return Damage(event.sequence, "does not continue the event before it")
        if event_hash(event, tenant=tenant, session=session) != event.hash:
            return Damage(event.sequence, "was changed after it was written")
        expected_sequence, previous = expected_sequence + 1, event.hash
    return None
