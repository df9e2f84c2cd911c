"""Making, switching and removing alert rules; each act is in the audit log."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction

from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import AlertRule
from ctxengine.providers.adapters.addresses import AddressRefused
from ctxengine.providers.webhook import checked_webhook
from ctxengine.service.access import not_found
from ctxengine.service.alerts.measures import BY_NAME
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor, ServiceError

MOST_RULES = 50
WINDOWS_MINUTES = (60, 360, 1440, 10_080)
_MOST_NAME_CHARS = 80


def add_rule(
    *,
    actor: Actor,
    name: str,
    measure: str,
    bound: float,
    window_minutes: int,
    webhook: str,
    note: str,
) -> AlertRule:
    """Add a rule.

    Raises:
        ServiceError: 422 for an empty or long name, an unknown figure or window, a bound that is no number, or an address
            that may not be told; 409 `name_taken`; 409 `too_many` beyond 50 rules.
    """
    name = model_view(name).strip()
    _check(name, measure, bound, window_minutes, webhook)
    if AlertRule.objects.filter(tenant_id=actor.tenant_id).count() >= MOST_RULES:
        raise ServiceError("too_many", 409, f"There are {MOST_RULES} rules; remove one first.")
    rule = AlertRule(
        tenant_id=actor.tenant_id,
        id=uuid4(),
        name=name,
        measure=measure,
        bound=bound,
        window_minutes=window_minutes,
        webhook=webhook,
        created_by=actor.label,
        created_at=utc_now(),
    )
    try:
        with transaction.atomic():
            rule.save(force_insert=True)
            record_audit(
                actor=actor, action="alert.added", target=name, reason=note, after=_told(rule)
            )
    except IntegrityError as error:
        raise ServiceError("name_taken", 409, f"There is a rule named {name!r}.") from error
    return rule


def switch_rule(*, actor: Actor, rule_id: UUID, enabled: bool, note: str) -> AlertRule:
    """Switch a rule on or off; one that is off falls quiet."""
    with transaction.atomic():
        rule = _locked(actor, rule_id)
        before = _told(rule)
        rule.enabled = enabled
        if not enabled:
            rule.state = "quiet"
        rule.save(update_fields=["enabled", "state"])
        record_audit(
            actor=actor, action="alert.switched", target=rule.name, reason=note,
            before=before, after=_told(rule),
        )  # fmt: skip
    return rule


def remove_rule(*, actor: Actor, rule_id: UUID, note: str) -> None:
    """Remove a rule; what it found stays in the list of changes."""
    with transaction.atomic():
        rule = _locked(actor, rule_id)
        AlertRule.objects.filter(tenant_id=actor.tenant_id, id=rule_id).delete()
        record_audit(
            actor=actor, action="alert.removed", target=rule.name, reason=note, before=_told(rule)
        )


def _locked(actor: Actor, rule_id: UUID) -> AlertRule:
    row = (
        AlertRule.objects.select_for_update().filter(tenant_id=actor.tenant_id, id=rule_id).first()
    )
    if row is None:
        raise not_found("alert rule")
    return row


def _check(name: str, measure: str, bound: float, window_minutes: int, webhook: str) -> None:
    if not 1 <= len(name) <= _MOST_NAME_CHARS:
        raise ServiceError("invalid_field", 422, f"A name has 1 to {_MOST_NAME_CHARS} characters.")
    if measure not in BY_NAME:
        raise ServiceError("invalid_field", 422, f"Figures are {', '.join(BY_NAME)}.")
    if window_minutes not in WINDOWS_MINUTES:
        known = ", ".join(map(str, WINDOWS_MINUTES))
        raise ServiceError("invalid_field", 422, f"Windows are {known} minutes.")
    if not math.isfinite(bound) or bound < 0:
        raise ServiceError("invalid_field", 422, "A bound is a number from nought up.")
    if webhook:
        try:
            checked_webhook(webhook, settings.CTX_WEBHOOK_HOSTS)
        except AddressRefused as refused:
            raise ServiceError(
                "invalid_field", 422, f"The address cannot be told: {refused}."
            ) from refused


def _told(rule: AlertRule) -> dict[str, Any]:
    return {
        "measure": rule.measure,
        "bound": rule.bound,
        "window_minutes": rule.window_minutes,
        "webhook": bool(rule.webhook),
        "enabled": rule.enabled,
    }
