"""The job that tells an address of one change of an alert."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings

from ctxengine.ledger.models import AlertChange, AlertRule, Tenant
from ctxengine.providers.adapters.addresses import AddressRefused
from ctxengine.providers.webhook import NotDelivered, deliver
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobDelayed, JobFailed


def run(context: JobContext) -> dict[str, Any]:
    """Post the change; figures and names of ours alone, never content.

    Raises:
        JobFailed: the rule is gone, or its address may not be told.
        JobDelayed: the address did not take it; it is tried again.
    """
    tenant = context.job.tenant_id
    change = AlertChange.objects.get(tenant_id=tenant, id=UUID(context.arguments["change"]))
    rule = AlertRule.objects.filter(tenant_id=tenant, id=change.rule_id).first()
    if rule is None or not rule.webhook:
        _note(change, "failed", "the rule or its address was removed")
        raise JobFailed("rule_removed", "The rule or its address was removed meanwhile.")
    try:
        status = deliver(rule.webhook, _document(change, rule), settings.CTX_WEBHOOK_HOSTS)
    except AddressRefused as refused:
        _note(change, "failed", str(refused))
        raise JobFailed("address_refused", f"The address may not be told: {refused}.") from refused
    except NotDelivered as failed:
        _note(change, "failed", str(failed))
        raise JobDelayed("not_delivered", f"The address did not take it: {failed}.") from failed
    _note(change, "delivered", f"answered with {status}")
    return {"status": status}


def _note(change: AlertChange, told: str, detail: str) -> None:
    AlertChange.objects.filter(tenant_id=change.tenant_id, id=change.id).update(
        told=told, detail=detail
    )


def _document(change: AlertChange, rule: AlertRule) -> dict[str, Any]:
    return {
        "id": str(change.id),
        "tenant": Tenant.objects.get(id=change.tenant_id).slug,
        "rule": rule.name,
        "measure": rule.measure,
        "state": change.state,
        "value": change.value,
        "bound": change.bound,
        "window_minutes": rule.window_minutes,
        "at": change.at.isoformat(),
    }
