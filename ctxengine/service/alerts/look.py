"""Looking at every rule: what changed is kept, and told by a job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q

from ctxengine.ledger.models import AlertChange, AlertRule
from ctxengine.service.alerts.measures import BY_NAME, Facts, beyond
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor

TELL = "alerts.tell"
_EVERY = timedelta(minutes=1)
_AT_ONCE = 200


def look_at_alerts(*, tenant_id: UUID | None = None) -> int:
    """Look at the rules that were not looked at for a minute (of one tenant: at all of them); gives how many changed."""
    now = utc_now()
    rules = AlertRule.objects.filter(enabled=True)
    if tenant_id is None:
        rules = rules.filter(Q(looked_at__isnull=True) | Q(looked_at__lt=now - _EVERY))
    else:
        rules = rules.filter(tenant_id=tenant_id)
    return _look(rules.order_by("looked_at")[:_AT_ONCE])


def _look(rules: Iterable[AlertRule]) -> int:
    now, known, changed = utc_now(), dict[tuple[UUID, int], Facts](), 0
    for rule in rules:
        measure = BY_NAME.get(rule.measure)
        if measure is None:
            continue
        since = now - timedelta(minutes=rule.window_minutes)
        facts = known.setdefault(
            (rule.tenant_id, rule.window_minutes), Facts(rule.tenant_id, since, now)
        )
        value = measure.read(facts)
        state = "firing" if beyond(measure, value, rule.bound) else "quiet"
        changed += _keep(rule.tenant_id, rule.id, value, state)
    return changed


def _keep(tenant_id: UUID, rule_id: UUID, value: float | None, state: str) -> bool:
    """Write what was found; whether it is another state than before. Two lookers keep one change."""
    now = utc_now()
    with transaction.atomic():
        rule = (
            AlertRule.objects.select_for_update()
            .filter(tenant_id=tenant_id, id=rule_id, enabled=True)
            .first()
        )
        if rule is None:
            return False
        turned = rule.state != state
        AlertRule.objects.filter(tenant_id=tenant_id, id=rule_id).update(
            state=state, value=value, looked_at=now
        )
        if turned:
            change = AlertChange.objects.create(
                tenant_id=tenant_id,
                id=uuid4(),
                rule_id=rule_id,
                rule_name=rule.name,
                state=state,
                value=value,
                bound=rule.bound,
                at=now,
                told="waiting" if rule.webhook else "nobody",
            )
            if rule.webhook:
                enqueue(
                    actor=Actor(tenant_id, "system"),
                    kind=TELL,
                    arguments={"change": str(change.id)},
                    subject=rule.name,
                    cause=f"the alert is {state}",
                )
    return turned
