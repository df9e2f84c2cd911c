"""Bringing one session's search index up to its log: a few events at a time, each portion in a transaction of its own.

Nothing of it is done in a step: a step costs what it cost without an index. What an erasure takes meanwhile cannot come back:
the bodies are locked while a portion is written, so that it either sees them erased or is itself erased with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Body, Event, ItemRow, SearchHash, SearchHead
from ctxengine.ledger.queries.lookup import start_of
from ctxengine.ledger.search_words import spaced, tenant_word
from ctxengine.service.search.texts import SEARCHED, SearchText, texts_of

PORTION = 50
"""Events read and written at once."""

_INSERT = (
    "INSERT INTO search_entry (tenant_id, session_id, sequence, ordinal, id, kind, role, row, trust, name, text, cut,"
    " document, at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, to_tsvector('simple', %s), %s)"
    " ON CONFLICT DO NOTHING"
)


def index_session(
    *, tenant_id: UUID, session_id: UUID, before_each: Callable[[], None] = lambda: None
) -> int:
    """Index what was appended since the last time; gives the number of new entries.

    Args:
        tenant_id: the tenant.
        session_id: the session.
        before_each: called before each portion; may break off by raising. What was indexed stays.
    """
    made = 0
    while True:
        before_each()
        with transaction.atomic():
            head, _ = SearchHead.objects.select_for_update().get_or_create(
                tenant_id=tenant_id, session_id=session_id, defaults={"through": 0}
            )
            events = list(
                Event.objects.filter(
                    tenant_id=tenant_id, session_id=session_id, sequence__gt=head.through
                ).order_by("sequence")[:PORTION]
            )
            if not events:
                return made
            made += _write(tenant_id, session_id, events)
            SearchHead.objects.filter(tenant_id=tenant_id, session_id=session_id).update(
                through=events[-1].sequence
            )


def _write(tenant_id: UUID, session_id: UUID, events: Sequence[Event]) -> int:
    key = {"tenant_id": tenant_id, "session_id": session_id}
    _write_hashes(key, events)
    searched = [event for event in events if event.body_id and event.type in SEARCHED]
    bodies = {
        body.id: body
        for body in Body.objects.select_for_update(no_key=True).filter(
            **key, id__in=[event.body_id for event in searched], erased_at__isnull=True
        )
    }
    names = {
        (row.sequence, row.ordinal): row
        for row in ItemRow.objects.filter(**key, sequence__in=[e.sequence for e in searched])
    }
    rows: list[tuple[Any, ...]] = []
    for event in searched:
        body = bodies.get(event.body_id) if event.body_id else None
        if body is None:
            continue
        text = bytes(body.data).decode("utf-8", "surrogatepass")
        for found in texts_of(EventType(event.type), str(event.payload.get("format", "")), text):
            item = names.get((event.sequence, found.ordinal))
            rows.append(_row(event, found, item))
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)
    return len(rows)


def _write_hashes(key: dict[str, UUID], events: Sequence[Event]) -> None:
    """Beginnings of the events' hashes and of their items' digests; neither says anything of an erased content."""
    hashes = [
        SearchHash(**key, start=start_of(event.hash), sequence=event.sequence, ordinal=-1)
        for event in events
    ]
    items = ItemRow.objects.filter(**key, sequence__in=[event.sequence for event in events])
    hashes += [
        SearchHash(**key, start=start_of(item.digest), sequence=item.sequence, ordinal=item.ordinal)
        for item in items.only("tenant_id", "session_id", "sequence", "ordinal", "digest")
    ]
    SearchHash.objects.bulk_create(hashes, ignore_conflicts=True)


def _row(event: Event, found: SearchText, item: ItemRow | None) -> tuple[Any, ...]:
    words = f"{tenant_word(event.tenant_id)} {spaced(found.text)}"
    return (
        event.tenant_id, event.session_id, event.sequence, found.ordinal, uuid4(), found.kind, found.role,
        found.row, item.trust if item else event.trust, item.name if item else "", found.text, found.cut,
        words, event.recorded_at,
    )  # fmt: skip
