"""Sessions as REST shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.answers import to_json
from api.pagination import DEFAULT_LIMIT, Page
from api.problems import Problem
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.ledger.queries.paging import Cursor
from ctxengine.ledger.queries.sessions import (
    SessionFilter,
    SessionLine,
    SessionQuery,
    list_sessions,
)

_FACTS = (
    "last_sequence",
    "last_hash",
    "items",
    "units",
    "runs",
    "requests",
    "tokens",
    "peak_tokens",
    "pressure_count",
    "created_at",
    "active_at",
)
_LINE = (
    "id",
    "title",
    "engine",
    "provider",
    "model",
    "agent",
    "occasion",
    "state",
    "import_format",
    "epoch",
    "items",
    "runs",
    "requests",
    "tokens",
    "peak_tokens",
    "pressure_count",
    "active_at",
)


def require_session(tenant_id: UUID, session_id: UUID) -> SessionRow:
    """The session's row.

    Raises:
        Problem: `not_found`, for another tenant's sessions too.
    """
    row = SessionRow.objects.filter(tenant_id=tenant_id, id=session_id).first()
    if row is None:
        raise Problem("not_found", f"There is no session {session_id} for this key.")
    return row


def session_facts(tenant_id: UUID, session_id: UUID) -> dict[str, Any]:
    """One session with its open run. Two queries.

    Raises:
        Problem: `not_found`.
    """
    row = require_session(tenant_id, session_id)
    runs = RunRow.objects.filter(tenant_id=tenant_id, session_id=session_id)
    open_run = runs.exclude(state="ended").values("id", "number", "state").first()
    imported = {"sha256": row.import_sha256, "format": row.import_format}
    return {
        "id": row.id,
        "title": row.title,
        "engine": row.engine,
        "provider": row.provider,
        "model": row.model,
        "agent": {"name": row.agent_name, "version": row.agent_version},
        "principal": row.principal,
        "occasion": row.occasion,
        "parent_run": row.parent_run_id,
        "state": row.state,
        "import": imported if row.import_sha256 else None,
        "epoch": row.epoch,
        **{name: getattr(row, name) for name in _FACTS},
        "open_run": open_run,
    }


def session_page(tenant_id: UUID, query: dict[str, Any]) -> Page:
    """One page of sessions. One query."""
    after = query.get("cursor")
    where = SessionFilter(
        words=tuple(query.get("q", "").split()),
        engine=query.get("engine", ""),
        model=query.get("model", ""),
        agent=query.get("agent", ""),
        import_format=query.get("format", ""),
        state=query.get("state", ""),
    )
    size = query.get("limit", DEFAULT_LIMIT)
    found = list_sessions(tenant_id, SessionQuery(where, Cursor(*after) if after else None, size))
    last = found.rows[-1] if found.rows else None
    key = [last.active_at.isoformat(), str(last.id)] if last and found.after else None
    return Page([to_json(_line(line)) for line in found.rows], key)


def _line(line: SessionLine) -> dict[str, Any]:
    return {name: getattr(line, name) for name in _LINE}
