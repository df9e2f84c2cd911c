"""Writing the audit log, in the transaction of the act it records (style 7)."""

from __future__ import annotations

import uuid
from typing import Any

from ctxengine.ledger.models import AuditEntry
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor


def record_audit(
    *,
    actor: Actor,
    action: str,
    target: str = "",
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Add one entry. Never put secrets, prompt text or reasoning in `before` and `after`."""
    AuditEntry.objects.create(
        tenant_id=actor.tenant_id,
        id=uuid.uuid4(),
        at=utc_now(),
        actor=actor.label,
        action=action,
        target=target,
        reason=reason,
        before=before or {},
        after=after or {},
    )
