"""Writing a session out in another tool's format (issue 3): received contents, secrets masked unless asked for."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from ctxengine.engine.events import EVENT_RULES
from ctxengine.engine.exporters.left_out import LeftOut
from ctxengine.engine.exporters.registry import FORMATS, export, own_format
from ctxengine.engine.exporters.source import SessionFacts, Usage
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.ledger.models import Event, RequestRow, SessionRow
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.audit import record_audit
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of, plan_from

_FORMAT_OF_API = {
    WireApi.ANTHROPIC: "anthropic_messages",
    WireApi.OPENAI_CHAT: "openai_chat",
}
_WRITES = ("cache_write_5m", "cache_write_1h")


class ExportedSession(NamedTuple):
    """A session, written."""

    format: str
    text: str
    left_out: tuple[LeftOut, ...]


def export_session(
    *, actor: Actor, session_id: UUID, format: str = "", raw: bool = False
) -> ExportedSession:
    """Write a session in one of the formats of `FORMATS`.

    Args:
        actor: Who asks; another tenant's session is not found.
        session_id: The session.
        format: Name of the format; left out, the one that holds most of the session.
        raw: Leave secrets as they are. Only for those who may see them; it stands in the audit log.

    Raises:
        ServiceError: 404 when there is no such session, 400 for an unknown format, 410 when its plan was erased.
    """
    if format and format not in FORMATS:
        known = ", ".join(FORMATS)
        raise ServiceError(
            "invalid_parameter", 400, f"Cannot export as {format!r}; known: {known}."
        )
    session = session_of(actor, session_id)
    format = format or _own_format(session)
    mask = None if raw else _masked
    made = export(log_of(session), _facts(session), format, mask=mask)
    if raw:
        with transaction.atomic():
            record_audit(
                actor=actor,
                action="session.exported_raw",
                target=str(session_id),
                after={"format": format},
            )
    return ExportedSession(format, made.text, made.left_out)


def _masked(text: str) -> str:
    return redact(text).text


def _own_format(session: SessionRow) -> str:
    """The format of the session's own API; for an import, that of the forms its messages were received in."""
    spoken = _FORMAT_OF_API.get(PROVIDER_API.get(session.provider, WireApi.OPENAI_RESPONSES))
    if spoken is not None and not session.import_sha256:
        return spoken
    types = [rule.type.value for rule in EVENT_RULES if rule.content]
    rows = Event.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, type__in=types
    ).order_by()
    found = rows.values_list("payload__format", flat=True).distinct()
    return own_format(ContentFormat(name) for name in found if name)


def _facts(session: SessionRow) -> SessionFacts:
    try:
        plan = plan_from(log_of(session), plan_row_of(session))
    except LookupError as error:
        raise ServiceError("content_gone", 410, str(error)) from error
    return SessionFacts(
        id=session.id.hex,
        provider=str(session.settings.get("provider") or session.provider),
        agent=session.agent_name,
        plan=plan,
        imported=bool(session.import_sha256),
        usage=_usage_of(session),
    )


def _usage_of(session: SessionRow) -> dict[str, Usage]:
    rows = RequestRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    found: dict[str, Usage] = {}
    for request_id, usage in rows.values_list("id", "usage"):
        if usage:
            writes = [usage[name] for name in _WRITES if usage.get(name) is not None]
            found[str(request_id)] = Usage(
                usage.get("fresh"),
                usage.get("cache_read"),
                sum(writes) if writes else None,
                usage.get("output"),
            )
    return found
