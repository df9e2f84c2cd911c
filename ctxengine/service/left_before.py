"""What a session's earlier requests left behind for its next one: when they went out, and what the newest answer kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.cache.predict import Entry
from ctxengine.ledger.ahead import Read, fetch
from ctxengine.ledger.models import SessionRow

LATEST = 20
"""Requests that are looked at, the newest first."""

_READ = (
    "WITH latest AS (SELECT number, created_at, status FROM request"
    " WHERE tenant_id = %s AND session_id = %s ORDER BY number DESC LIMIT %s)"
    " SELECT l.created_at, a.id, a.run_id, a.wire_prefix_sha256, a.model, (a.inputs->>'head')::bigint,"
    " jsonb_build_object('entries', a.cache->'entries', 'reach', a.cache->'reach', 'images', a.cache->'images')"
    " FROM latest l LEFT JOIN request a ON a.tenant_id = %s AND a.session_id = %s AND a.number = l.number"
    " AND a.number = (SELECT max(number) FROM latest WHERE status = 'answered') ORDER BY l.number DESC"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """The newest answered request."""

    id: UUID
    run_id: UUID
    prefix: str
    """Hash of its prefix as it went out."""
    model: str
    head: int
    """The log's head when it was built."""
    entries: tuple[Entry, ...]
    reach: str
    images: bool


@dataclass(frozen=True, slots=True)
class LeftBefore:
    """What the latest requests of a session left."""

    times: tuple[float, ...] = ()
    """When they were built, in seconds since the epoch, the newest first."""
    answered: Answered | None = None
    """None where none of them was answered: a request that was refused, or never sent, has left nothing to count on."""


def asks_left_before(session: SessionRow) -> Read:
    """What `left_before` asks, to be read ahead."""
    key = (session.tenant_id, session.id)
    return Read(_READ, (*key, LATEST, *key))


def left_before(session: SessionRow) -> LeftBefore:
    """Read it in one round trip."""
    rows = fetch(*asks_left_before(session))
    found = next((row for row in rows if row[1] is not None), None)
    times = tuple(created.timestamp() for created, *_ in rows)
    return LeftBefore(times, _answered(*found[1:]) if found is not None else None)


def _answered(id: UUID, run_id: UUID, prefix: str, model: str, head: int, stored: str) -> Answered:
    cache: dict[str, Any] = json.loads(stored)
    entries = tuple(Entry(**entry) for entry in cache["entries"] or ())
    return Answered(
        id,
        run_id,
        prefix,
        model,
        head,
        entries,
        cache["reach"] or "",
        bool(cache["images"]),
    )
