"""Writing the audit log, in the transaction of the act it records (style 7)."""

from __future__ import annotations

import uuid
from typing import Any

from ctxengine.engine.trust.model_view import model_view
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
    """Add one entry. Never put secrets, prompt text or reasoning in `before` and `after`.

    What people typed may hold characters that no column keeps; the entry has the model's view of it.
    """
    AuditEntry.objects.create(
        tenant_id=actor.tenant_id,
        id=uuid.uuid4(),
        at=utc_now(),
        actor=actor.label,
        action=action,
        target=model_view(target),
        reason=model_view(reason),
        before=_kept(before or {}),
        after=_kept(after or {}),
    )


def _kept(value: Any) -> Any:
    """The value with every text in it as it can be kept."""
    if isinstance(value, str):
        return model_view(value)
    if isinstance(value, dict):
        return {model_view(name): _kept(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_kept(member) for member in value]
    return value
