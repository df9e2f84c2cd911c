"""The difference of two requests: what stayed, the first changed byte, its row and the event behind it (design 8)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from ctxengine.engine.explain import Change, common_prefix_bytes, compare
from ctxengine.ledger.models import Event, RequestRow
from ctxengine.service.access import request_of, session_of
from ctxengine.service.imports.complete import completed
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor


@dataclass(frozen=True, slots=True)
class FirstChange:
    """Where two requests part."""

    byte: int | None
    """Offset in the bodies without cache markers; None when bytes are no longer kept."""
    row: int
    row_name: str
    item: str | None
    event_sequence: int | None
    event_type: str | None


@dataclass(frozen=True, slots=True)
class RequestDiff:
    """What changed from request `a` to request `b`."""

    a: UUID
    b: UUID
    same_session: bool
    cause: str
    """Class of cause, see `explain.Cause`."""
    detail: str
    same_prefix_bytes: int | None
    same_prefix_tokens: int
    first_changed: FirstChange | None
    rows: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain data for REST."""
        data = asdict(self)
        return data | {"a": str(self.a), "b": str(self.b)}


def diff_requests(*, actor: Actor, a: UUID, b: UUID) -> RequestDiff:
    """Compare two requests of the tenant, of one session or of two.

    Raises:
        ServiceError: 404.
    """
    rows = completed(request_of(actor, a)), completed(request_of(actor, b))
    sessions = tuple(session_of(actor, row.session_id) for row in rows)
    with refusing():
        built = tuple(rebuild_request(s, row) for s, row in zip(sessions, rows, strict=True))
    same = rows[0].session_id == rows[1].session_id
    change = compare(built[0], built[1])
    bodies = [_unmarked(request) for request in built]
    prefix = None
    if bodies[0] and bodies[1]:
        prefix = common_prefix_bytes(bodies[0], bodies[1])
    return RequestDiff(
        a=a,
        b=b,
        same_session=same,
        cause=change.cause.value,
        detail=change.detail,
        same_prefix_bytes=prefix,
        same_prefix_tokens=_same_tokens(rows[0], rows[1], change),
        first_changed=_first(rows[1], change, prefix),
        rows=_rows(rows[0], rows[1]),
    )


def _unmarked(request: Any) -> bytes:
    if request.absent:
        return b""
    body: bytes = request.renderer.body(request.prefix, request.fragments, request.params, ())
    return body


def _first(row: RequestRow, change: Change, byte: int | None) -> FirstChange | None:
    if change.row is None:
        return None
    event = None
    if change.event_sequence is not None:
        event = Event.objects.filter(
            tenant_id=row.tenant_id, session_id=row.session_id, sequence=change.event_sequence
        ).first()
    return FirstChange(
        byte=byte,
        row=change.row,
        row_name=change.row_name,
        item=change.item,
        event_sequence=change.event_sequence,
        event_type=event.type if event is not None else None,
    )


def _same_tokens(a: RequestRow, b: RequestRow, change: Change) -> int:
    """Tokens before the first change, scaled from counts; whole requests when nothing changed."""
    if change.row is None:
        return min(a.total_tokens, b.total_tokens)
    return change.same_tokens


def _rows(a: RequestRow, b: RequestRow) -> list[dict[str, Any]]:
    before = {row["row"]: row for row in a.manifest["rows"]}
    after = {row["row"]: row for row in b.manifest["rows"]}
    return [
        {
            "row": number,
            "before_tokens": before[number]["tokens"],
            "after_tokens": after[number]["tokens"],
            "before_items": before[number]["items"],
            "after_items": after[number]["items"],
            "changed": before[number] != after[number],
        }
        for number in sorted(before)
    ]
