"""The memory snapshot's recall trace: registered with the plan, checked before a run, gone with a person (spec, Events)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import connection

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import SessionRow, SnapshotTrace

_FENCE = 0x5E5510
"""First key of the advisory lock that people fences use; the second is the person."""


def fence(tenant_id: UUID, principal: str) -> None:
    """Wait for whoever registers or erases this person's content; released with the transaction.

    Pinning a snapshot and erasing a person exclude each other, so that an erasure either finds the session or is seen by it.
    """
    if not principal:
        return
    digest = sha256_hex(tenant_id.bytes, principal.encode("utf-8", "surrogatepass"))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", (_FENCE, int(digest[:8], 16) - 2**31)
        )


def trace_name(session_id: UUID, trace: str, has_items: bool) -> str:
    """The name a snapshot goes by; a snapshot without a trace of its own gets one from its session."""
    if not has_items:
        return ""
    return model_view(trace) or f"session:{session_id}"


def register_trace(session: SessionRow, plan: Plan, *, at: datetime) -> None:
    """Remember the trace of a plan's snapshot, in the transaction that pins the plan.

    A recall that an erasure withdrew elsewhere is stale: it is registered as withdrawn, and the first run goes without it.
    """
    if not plan.snapshot:
        return
    fence(session.tenant_id, session.principal)
    named = SnapshotTrace.objects.filter(
        tenant_id=session.tenant_id, principal=session.principal, trace=plan.snapshot_trace
    )
    stale = named.filter(withdrawn_at__isnull=False).exists()
    SnapshotTrace.objects.get_or_create(
        tenant_id=session.tenant_id,
        session_id=session.id,
        trace=plan.snapshot_trace,
        defaults={
            "principal": session.principal,
            "registered_at": at,
            "withdrawn_at": at if stale else None,
        },
    )


def snapshot_is_live(session: SessionRow, plan: Plan) -> bool:
    """Whether the plan may still be used: it carries no snapshot, or the recall behind it is still there."""
    if not plan.snapshot:
        return not plan.redacted
    return SnapshotTrace.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        trace=plan.snapshot_trace,
        withdrawn_at__isnull=True,
    ).exists()


def snapshot_draft(log: SessionLog, plan: Plan, run: str) -> EventDraft | None:
    """The event that binds a run to the snapshot its request carries; once per run and epoch, None otherwise."""
    if not plan.snapshot:
        return None
    known = log.newest(EventType.SNAPSHOT_USED)
    if known is not None and (known.run, known.payload["epoch"]) == (run, plan.epoch):
        return None
    return EventDraft(
        type=EventType.SNAPSHOT_USED,
        trust=Trust.PLATFORM,
        run=run,
        payload={
            "trace": plan.snapshot_trace,
            "watermark": plan.snapshot_watermark,
            "epoch": plan.epoch,
            "items": len(plan.snapshot),
        },
    )
