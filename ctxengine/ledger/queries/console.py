"""What the console keeps for its users: saved views and alerts."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from ctxengine.ledger.models import AlertChange, AlertRule, SavedView


def saved_views(tenant_id: UUID, owner: str, page: str) -> tuple[SavedView, ...]:
    """A person's views of a list and the shared ones, by name. One query."""
    rows = SavedView.objects.filter(tenant_id=tenant_id, page=page)
    return tuple(rows.filter(Q(owner=owner) | Q(shared=True)).order_by("name", "id")[:100])


def alert_rules(tenant_id: UUID) -> tuple[AlertRule, ...]:
    """All rules, those that fire first. One query."""
    rows = AlertRule.objects.filter(tenant_id=tenant_id).order_by("name")
    return tuple(sorted(rows, key=lambda rule: rule.state != "firing"))


def alert_changes(tenant_id: UUID, *, most: int = 50) -> tuple[AlertChange, ...]:
    """The newest changes. One query."""
    return tuple(AlertChange.objects.filter(tenant_id=tenant_id).order_by("-at", "-id")[:most])


def firing(tenant_id: UUID) -> tuple[AlertRule, ...]:
    """Rules that fire now. One query."""
    rows = AlertRule.objects.filter(tenant_id=tenant_id, enabled=True, state="firing")
    return tuple(rows.order_by("name"))
