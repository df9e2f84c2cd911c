"""Items of a session: windows of a list, and one item with its content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.ledger.models import Body, Event, ItemRow


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One item without its content."""

    id: ItemId
    unit_sequence: int
    kind: str
    trust: str
    run_id: UUID | None
    name: str
    call_id: str
    wire_call_id: str
    source: str
    is_error: bool
    tokens: int
    pointer_tokens: int
    bytes_len: int
    chars_len: int
    digest: str
    preview: str
    excerpt_limit: int = 0
    """Limit (bytes) that it is over, so that it stands as an excerpt where it would stand whole; 0: within every limit."""


@dataclass(frozen=True, slots=True)
class ItemWindow:
    """Neighbouring items in ledger order."""

    items: tuple[ItemLine, ...]
    older: str
    """Item id to end the older window at (exclusive); empty at the start."""


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Bounds (inclusive) and properties of the items wanted."""

    first: ItemId
    last: EventSeq
    """Every item of this event is still wanted: spans end where units end."""
    kind: str = ""
    trust: str = ""
    over_limit: bool | None = None
    """Only items that are over an excerpt's limit, or only those within it; None: both."""


@dataclass(frozen=True, slots=True)
class ItemContent:
    """One item with its content as received."""

    line: ItemLine
    event_type: str
    format: str
    recorded_at: datetime
    decoded: DecodedItem | None
    """None when the body is erased or cannot be read in its format; then `raw` is all there is."""
    raw: str
    """The whole body of the event, exactly as received; empty when erased."""
    erased_at: datetime | None
    problem: str
    """Why `decoded` is None; empty otherwise."""


def item_window(
    tenant_id: UUID, session_id: UUID, where: ItemFilter, *, size: int, below: ItemId | None = None
) -> ItemWindow:
    """The last `size` items of a filter, in ledger order. One query."""
    rows = _bounded(tenant_id, session_id, where)
    if below is not None:
        rows = rows.filter(_before(below))
    found = list(rows.order_by("-sequence", "-ordinal")[: size + 1])
    shown = [_line(row) for row in reversed(found[:size])]
    return ItemWindow(tuple(shown), str(shown[0].id) if len(found) > size else "")


def item_content(tenant_id: UUID, session_id: UUID, item: ItemId) -> ItemContent | None:
    """One item with its content, or None when there is none. Three queries."""
    row = ItemRow.objects.filter(
        tenant_id=tenant_id, session_id=session_id, sequence=item.sequence, ordinal=item.ordinal
    ).first()
    event = Event.objects.filter(
        tenant_id=tenant_id, session_id=session_id, sequence=item.sequence
    ).first()
    if row is None or event is None:
        return None
    body = _body_of(event)
    erased_at = body.erased_at if body else None
    raw = body_text(body) if body and not erased_at else ""
    format_name = str(event.payload.get("format", ContentFormat.TEXT))
    decoded, problem = None, ""
    if body is None:
        problem = "The event has no body."
    elif erased_at:
        problem = "The content was erased; its digest and counts stay."
    else:
        decoded, problem = _decoded(format_name, raw, event.type, item.ordinal)
    return ItemContent(
        line=_line(row),
        event_type=event.type,
        format=format_name,
        recorded_at=event.recorded_at,
        decoded=decoded,
        raw=raw,
        erased_at=erased_at,
        problem=problem,
    )


def _body_of(event: Event) -> Body | None:
    if event.body_id is None:
        return None
    return Body.objects.filter(
        tenant_id=event.tenant_id, session_id=event.session_id, id=event.body_id
    ).first()


def body_text(body: Body) -> str:
    """A body's text exactly as received, lone surrogates included."""
    return bytes(body.data).decode("utf-8", "surrogatepass")


def _decoded(
    format_name: str, raw: str, event_type: str, ordinal: int
) -> tuple[DecodedItem | None, str]:
    try:
        found = decode_event(EventType(event_type), ContentFormat(format_name), raw)
    except (ContentError, ValueError) as error:
        return None, f"The body cannot be read as {format_name}: {error}"
    for item in found:
        if item.ordinal == ordinal:
            return item, ""
    return None, f"The body has no item {ordinal} when read as {format_name}."


def _bounded(tenant_id: UUID, session_id: UUID, where: ItemFilter) -> QuerySet[ItemRow]:
    rows = ItemRow.objects.filter(
        tenant_id=tenant_id,
        session_id=session_id,
        sequence__gte=where.first.sequence,
        sequence__lte=where.last,
    ).exclude(_before(where.first))
    if where.kind in set(ItemKind):
        rows = rows.filter(kind=where.kind)
    if where.trust:
        rows = rows.filter(trust=where.trust)
    if where.over_limit is not None:
        rows = (
            rows.filter(excerpt_limit__gt=0) if where.over_limit else rows.filter(excerpt_limit=0)
        )
    return rows


def _before(item: ItemId) -> Q:
    return Q(sequence__lt=item.sequence) | Q(sequence=item.sequence, ordinal__lt=item.ordinal)


def _line(row: ItemRow) -> ItemLine:
    return ItemLine(
        id=ItemId(EventSeq(row.sequence), row.ordinal),
        unit_sequence=row.unit_sequence,
        kind=row.kind,
        trust=row.trust,
        run_id=row.run_id,
        name=row.name,
        call_id=row.call_id,
        wire_call_id=row.wire_call_id,
        source=row.source,
        is_error=row.is_error,
        tokens=row.tokens,
        pointer_tokens=row.pointer_tokens,
        bytes_len=row.bytes_len,
        chars_len=row.chars_len,
        digest=row.digest,
        preview=row.preview,
        excerpt_limit=row.excerpt_limit,
    )
