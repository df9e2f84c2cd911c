"""Requests as REST shows them; their bytes are rebuilt, never stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from api.answers import to_json
from api.pagination import DEFAULT_LIMIT, Page
from api.problems import Problem
from api.reads.sessions import require_session
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.service.access import plan_row_of, request_of, session_of
from ctxengine.service.body_of_request import request_body
from ctxengine.service.cache_use import public_cache
from ctxengine.service.delta import delta_of, taken_apart
from ctxengine.service.imports.complete import complete_request, complete_requests
from ctxengine.service.legs.leg_bodies import leg_requests
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.specs import Actor, Assembled
from ctxengine.service.wiring import log_of, plan_from

_LINE = (
    "id",
    "session_id",
    "run_id",
    "number",
    "run_number",
    "step",
    "content_sequence",
    "act_sequence",
    "epoch",
    "engine",
    "provider",
    "model",
    "request_sha256",
    "prefix_sha256",
    "wire_prefix_sha256",
    "total_tokens",
    "body_bytes",
    "status",
    "usage",
    "reconstructed",
    "created_at",
    "answered_at",
)
_WHOLE = ("inputs", "manifest", "budget", "cache", "verdict", "error", "build_ms")
_ASSEMBLED = (
    "manifest",
    "budget",
    "cache",
    "prefix_sha256",
    "wire_prefix_sha256",
    "request_sha256",
)
_SHOWN_AS = {"session_id": "session", "run_id": "run"}


def request_page(tenant_id: UUID, session_id: UUID, query: dict[str, Any]) -> Page:
    """One page of a session's requests, oldest first. Two queries, and those that rebuild what an import only outlined.

    Raises:
        Problem: `not_found`.
    """
    require_session(tenant_id, session_id)
    size = query.get("limit", DEFAULT_LIMIT)
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, session_id=session_id, number__gt=query.get("cursor", [0])[0]
    )
    if "run" in query:
        rows = rows.filter(run_id=query["run"])
    if "status" in query:
        rows = rows.filter(status=query["status"])
    found = list(rows.order_by("number").values(*_LINE)[: size + 1])
    shown = found[:size]
    if any(not row["request_sha256"] for row in shown):
        first, last = shown[0]["number"], shown[-1]["number"]
        complete_requests(tenant_id=tenant_id, session_id=session_id, first=first, last=last)
        shown = list(rows.order_by("number").values(*_LINE)[: len(shown)])
    key = [shown[-1]["number"]] if len(found) > size else None
    return Page([to_json(_named(row)) for row in shown], key)


def request_facts(tenant_id: UUID, request_id: UUID) -> dict[str, Any]:
    """One request with its manifest, budget, cache figures and inputs, rebuilt first where an import only outlined it.

    Raises:
        Problem: `not_found`.
    """
    complete_request(tenant_id=tenant_id, request_id=request_id)
    return _named(_row(tenant_id, request_id, *_LINE, *_WHOLE))


def assembled_again(actor: Actor, request_id: str, base: str | None = None) -> Assembled:
    """What was answered when the request was built, from the ledger; `base` asks for the delta.

    Raises:
        Problem: `not_found`.
        ServiceError: `content_gone` when parts of it are no longer kept.
    """
    wanted = UUID(request_id)
    row = _row(actor.tenant_id, wanted, *_ASSEMBLED)
    delta = None
    if base is not None:
        old, new = request_of(actor, UUID(base)), request_of(actor, wanted)
        session = session_of(actor, new.session_id)
        before, after = rebuild_request(session, old), rebuild_request(session, new)
        delta = delta_of(taken_apart(before), taken_apart(after))
    body = request_body(actor=actor, request_id=wanted)
    legs = leg_requests(actor=actor, request_id=wanted)
    return Assembled(request_id=wanted, body=body, delta=delta, legs=legs, **row)


def plan_of_request(session: SessionRow, request_id: str | None) -> Plan:
    """The plan that a request was built with; the current one where no request is named."""
    epoch = None
    if request_id is not None:
        epoch = _row(session.tenant_id, UUID(request_id), "epoch")["epoch"]
    return plan_from(log_of(session), plan_row_of(session, epoch))


def _row(tenant_id: UUID, request_id: UUID, *fields: str) -> dict[str, Any]:
    row = RequestRow.objects.filter(tenant_id=tenant_id, id=request_id).values(*fields).first()
    if row is None:
        raise Problem("not_found", f"There is no request {request_id} for this key.")
    if "cache" in row:
        row["cache"] = public_cache(row["cache"])
    return dict(row)


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_SHOWN_AS.get(name, name): value for name, value in row.items()}
