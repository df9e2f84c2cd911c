"""The world that is fuzzed: a tenant whose key is used, and another whose words and ids must never come back."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db.models import Model

from ctxengine.ledger.models import Event, Job, PlanRow, RequestRow, RunRow, SessionRow
from tests.api.door import Door, key_for, new_tenant

CANARY = "zinnober-canary-7f3a"
"""Stands in everything that the other tenant wrote."""
IDS = ("session", "run", "wanted", "other", "job", "sha256")
"""Address parts that name a thing of one tenant."""
_MOST_OF_A_KIND = 24


@dataclass
class Tenant:
    """One tenant: its key, and the ids that it may use."""

    id: uuid.UUID
    door: Door
    ids: dict[str, list[str]] = field(default_factory=dict)

    def learn(self, kind: str, value: str, chance: random.Random) -> None:
        """Remember an id; a full kind forgets one of the others."""
        known = self.ids.setdefault(kind, [])
        if value in known:
            return
        if len(known) >= _MOST_OF_A_KIND:
            known[chance.randrange(len(known))] = value
        else:
            known.append(value)

    def fingerprint(self) -> dict[str, Any]:
        """All that the tenant has, in numbers and hashes."""
        found: dict[str, Any] = {
            model._meta.db_table: model._default_manager.filter(tenant_id=self.id).count()
            for model in tenant_models()
        }
        sessions = SessionRow.objects.filter(tenant_id=self.id).order_by("id")
        found["heads"] = list(sessions.values_list("id", "last_sequence", "last_hash", "state"))
        return found


def tenant_models() -> list[type[Model]]:
    """Every table that carries a tenant."""
    fields = {model: {field.attname for field in model._meta.concrete_fields} for model in apps.get_models()}  # fmt: skip
    return [model for model, names in fields.items() if "tenant_id" in names]


def make_tenant(name: str, word: str) -> Tenant:
    """A tenant with sessions at several stages of the loop; `word` stands in all of its content."""
    tenant_id = new_tenant(name)
    tenant = Tenant(tenant_id, Door(key_for(tenant_id)))
    chance = random.Random(name)
    for stage in range(5):
        populate(tenant, word, stage)
    read_ids(tenant, chance)
    return tenant


def populate(tenant: Tenant, word: str, stage: int) -> str:
    """A session that has come to a stage of the loop; gives its id."""
    door = tenant.door
    session = door.open(principal={"id": f"{word}-person", "scopes": [word]})
    if stage == 0:
        return session
    first = door.run(session, f"{word}: which port does it listen on?")
    door.assemble(first)
    if stage == 1:
        return session
    door.calls(first, ("w1", "weather", {"city": word}), ("w2", "weather", {"city": "Oslo"}))
    if stage == 2:
        return session
    door.results(first, ("w1", f"{word} rain. " * 40), ("w2", "Sun. " * 40))
    door.assemble(first)
    door.says(first, f"Rain, says {word}.")
    if stage == 3:
        door.post(f"sessions/{session}/compactions", {"reason": word})
        return session
    second = door.run(session, f"And tomorrow, {word}?")
    door.assemble(second)
    return session


def read_ids(tenant: Tenant, chance: random.Random) -> None:
    """Learn what there is, from the tables: the newest of each kind, which calls have worn least."""
    kinds = (
        ("session", SessionRow, "-active_at"),
        ("run", RunRow, "-started_at"),
        ("wanted", RequestRow, "-created_at"),
        ("job", Job, "-created_at"),
    )
    for kind, model, newest in kinds:
        rows = model._default_manager.filter(tenant_id=tenant.id).order_by(newest)
        for value in rows.values_list("id", flat=True)[: _MOST_OF_A_KIND // 2]:
            tenant.learn(kind, str(value), chance)
    tenant.ids["other"] = list(tenant.ids.get("wanted", ()))


def sizes() -> dict[str, int]:
    """How much there is in all."""
    return {
        "sessions": SessionRow.objects.count(),
        "events": Event.objects.count(),
        "requests": RequestRow.objects.count(),
        "plans": PlanRow.objects.count(),
        "jobs": Job.objects.count(),
    }
