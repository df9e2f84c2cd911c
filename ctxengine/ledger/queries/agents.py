"""Agent versions and the budget policies that sessions have in force."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, Max, OuterRef, Q

from ctxengine.ledger.models import AgentVersion, PlanRow, SessionRow

MOST_AGENTS = 300
MOST_POLICIES = 50
_SHOWN_SESSIONS = 5


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One version of an agent."""

    name: str
    version: str
    digest: str
    created_at: datetime
    sessions: int
    open_sessions: int
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentDetail:
    """What a version fixes."""

    name: str
    version: str
    digest: str
    instructions: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One version of a budget policy, with the open sessions whose current plan holds it."""

    name: str
    version: str
    figures: dict[str, Any]
    sessions: int
    newest: tuple[tuple[UUID, str], ...]
    """Ids and titles of the latest ones."""


def agent_lines(tenant_id: UUID) -> tuple[AgentLine, ...]:
    """The newest 300 agent versions, with their sessions. Two queries."""
    rows = AgentVersion.objects.filter(tenant_id=tenant_id).order_by("-created_at", "name")
    versions = list(rows.defer("spec")[:MOST_AGENTS])
    used = {
        (row["agent_name"], row["agent_version"]): row
        for row in SessionRow.objects.filter(
            tenant_id=tenant_id, agent_name__in={row.name for row in versions}
        )
        .values("agent_name", "agent_version")
        .annotate(
            sessions=Count("id"),
            open_sessions=Count("id", filter=Q(state="open")),
            last=Max("active_at"),
        )
        .order_by()
    }
    return tuple(_agent(row, used.get((row.name, row.version), {})) for row in versions)


def agent_detail(tenant_id: UUID, name: str, version: str) -> AgentDetail | None:
    """One version, or None when there is none. One query."""
    row = AgentVersion.objects.filter(tenant_id=tenant_id, name=name, version=version).first()
    if row is None:
        return None
    spec = json.loads(bytes(row.spec))
    return AgentDetail(
        row.name, row.version, row.digest, spec.get("instructions", ""), row.created_at
    )


def policy_lines(tenant_id: UUID) -> tuple[PolicyLine, ...]:
    """Policies in force in open sessions, the most used first; at most 50. Two queries and one for each policy."""
    current = SessionRow.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        id=OuterRef("session_id"),
        epoch=OuterRef("epoch"),
        state="open",
    )
    rows = PlanRow.objects.filter(Exists(current), tenant_id=tenant_id)
    counts = Counter(
        {
            (row["policy__name"], row["policy__version"]): row["n"]
            for row in rows.values("policy__name", "policy__version")
            .annotate(n=Count("session_id"))
            .order_by("-n", "policy__name", "policy__version")[:MOST_POLICIES]
        }
    )
    found = []
    for (name, version), count in counts.most_common():
        newest = list(
            rows.filter(policy__name=name, policy__version=version).order_by("-created_at")[
                :_SHOWN_SESSIONS
            ]
        )
        found.append((name, version, count, newest))
    titles = dict(
        SessionRow.objects.filter(
            tenant_id=tenant_id, id__in=[row.session_id for *_, newest in found for row in newest]
        ).values_list("id", "title")
    )
    return tuple(
        PolicyLine(
            name=str(name),
            version=str(version),
            figures=newest[0].policy,
            sessions=count,
            newest=tuple((row.session_id, titles.get(row.session_id, "")) for row in newest),
        )
        for name, version, count, newest in found
        if newest
    )


def _agent(row: AgentVersion, used: Mapping[str, Any]) -> AgentLine:
    return AgentLine(
        name=row.name,
        version=row.version,
        digest=row.digest,
        created_at=row.created_at,
        sessions=used.get("sessions", 0),
        open_sessions=used.get("open_sessions", 0),
        last_used_at=used.get("last"),
    )
