"""The hash chain: each event's hash covers its own fields and the hash before it (design 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from ctxengine.engine.canonical import canonical_bytes, canonical_text
from ctxengine.engine.events import EVENT_RULES, EventDraft
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import GENESIS_HASH, BodyCommitment, EventRecord

CHAIN_VERSION = 1
_SMALL = 1 << 63
_MEMBERS = {
    name: encode_basestring(name) for rule in EVENT_RULES for name in rule.payload if name.isascii()
}
"""The fields that payloads may have, as their canonical text; other names are left to the writer of any value."""


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
    body, run, quoted = event.body, event.run, encode_basestring
    text = hashed_text(
        event.prev_hash,
        at=stamp(event.recorded_at),
        body="null" if body is None else f"[{quoted(body.sha256)},{body.length:d}]",
        payload=payload_text(event.payload),
        run="null" if run is None else quoted(run),
        sequence=event.sequence,
        whose=f'"session":{quoted(session)},"tenant":{quoted(tenant)}',
        tokens=event.tokens,
        what=f'"trust":{quoted(event.trust)},"type":{quoted(event.type)}',
    )
    try:
        data = text.encode()
    except UnicodeEncodeError:
        # This names what is wrong with the text.
        fields = canonical_bytes(hashed_fields(event, tenant=tenant, session=session))
        data = event.prev_hash.encode() + fields
    return hashlib.sha256(data).hexdigest()


def hashed_text(
    prev_hash: str,
    *,
    at: str,
    body: str,
    payload: str,
    run: str,
    sequence: int,
    whose: str,
    tokens: int,
    what: str,
) -> str:
    """What an event's hash is made of: the hash before it, and the canonical text of `hashed_fields`.

    It is laid out by hand, of members that are canonical texts already: every event is hashed, and writing them one by one
    took most of the time of an append.

    Args:
        whose: the members `session` and `tenant`.
        what: the members `trust` and `type`.
    """
    return (
        f'{prev_hash}{{"at":"{at}","body":{body},"payload":{payload},"run":{run},"sequence":{sequence:d},{whose}'
        f',"tokens":{tokens:d},{what},"v":{CHAIN_VERSION}}}'
    )


def hashed_fields(event: EventRecord, *, tenant: str, session: str) -> dict[str, object]:
    """What an event's hash covers beside the hash before it."""
    return {
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
        "at": stamp(event.recorded_at),
    }


def payload_text(payload: Mapping[str, Any]) -> str:
    """Canonical text of a payload; most hold a few texts, small numbers and truth values under ASCII names."""
    pieces = []
    for key in sorted(payload):
        name = _MEMBERS.get(key)
        if name is None:
            return canonical_text(payload)
        value = payload[key]
        kind = type(value)
        if kind is str:
            text = encode_basestring(value)
        elif kind is int and -_SMALL < value < _SMALL:
            text = str(value)
        elif kind is bool:
            text = "true" if value else "false"
        elif value is None:
            text = "null"
        else:
            return canonical_text(payload)
        pieces.append(f"{name}:{text}")
    return "{" + ",".join(pieces) + "}"


@lru_cache(maxsize=64)
def stamp(at: datetime) -> str:
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
