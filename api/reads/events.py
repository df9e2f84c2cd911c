"""Events of a session, oldest first, with their bodies where asked for."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from api.answers import to_json
from api.pagination import DEFAULT_LIMIT, Page
from api.reads.sessions import require_session
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import Body, Event
from ctxengine.service.raw_reads import masked_body, note_raw_read
from ctxengine.service.specs import Actor

BODY_PAGE_BYTES = 8 * 1024 * 1024
"""A page with bodies ends early once it holds this much content; it always holds one event."""


def event_page(actor: Actor, session_id: UUID, query: dict[str, Any]) -> Page:
    """One page of events. Two queries, three with bodies; bodies with secrets are noted in the audit log.

    Raises:
        Problem: `not_found`.
    """
    tenant_id = actor.tenant_id
    require_session(tenant_id, session_id)
    size = query.get("limit", DEFAULT_LIMIT)
    rows = Event.objects.filter(tenant_id=tenant_id, session_id=session_id)
    rows = rows.filter(sequence__gt=max(query.get("cursor", [0])[0], query.get("after", 0)))
    if "type" in query:
        rows = rows.filter(type=query["type"])
    if "run" in query:
        rows = rows.filter(run_id=query["run"])
    found = list(rows.order_by("sequence")[: size + 1])
    shown = found[:size]
    bodies: dict[UUID, Body] = {}
    if query.get("bodies"):
        shown = _affordable(shown)
        ids = [event.body_id for event in shown if event.body_id is not None]
        owned = Body.objects.filter(tenant_id=tenant_id, session_id=session_id, id__in=ids)
        bodies = {body.id: body for body in owned}
        if query.get("raw") and shown:
            what = f"events {shown[0].sequence} to {shown[-1].sequence}"
            note_raw_read(actor=actor, session_id=session_id, what=what)
    items = [to_json(_event(event, bodies, query)) for event in shown]
    more = len(found) > len(shown)
    return Page(items, [shown[-1].sequence] if more else None)


def body_forms(data: bytes, *, raw: bool) -> dict[str, str]:
    """Content as people and programs read it: what a model would see, and the text as received.

    Args:
        raw: leave secrets as they are.
    """
    text = data.decode("utf-8", "surrogatepass")
    shown = text if raw else masked_body(text)
    return {
        "text": model_view(shown),
        "raw_base64": base64.b64encode(shown.encode("utf-8", "surrogatepass")).decode(),
    }


def _affordable(events: list[Event]) -> list[Event]:
    total = 0
    for place, event in enumerate(events):
        total += event.body_length
        if total > BODY_PAGE_BYTES and place:
            return events[:place]
    return events


def _event(event: Event, bodies: dict[UUID, Body], query: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {
        "sequence": event.sequence,
        "type": event.type,
        "run": event.run_id,
        "trust": event.trust,
        "payload": event.payload,
        "body_length": event.body_length,
        "body_sha256": event.body_sha256,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
        "recorded_at": event.recorded_at,
    }
    if query.get("bodies"):
        body = bodies.get(event.body_id) if event.body_id else None
        line["body"] = _body(body, raw=bool(query.get("raw")))
    return line


def _body(body: Body | None, *, raw: bool) -> dict[str, Any] | None:
    if body is None:
        return None
    if body.erased_at is not None:
        return {"text": "", "raw_base64": "", "erased_at": body.erased_at}
    return {**body_forms(bytes(body.data), raw=raw), "erased_at": None}
