"""Tables of the ledger. Every row carries its tenant and every key starts with it (design 4)."""

from __future__ import annotations

from ctxengine.ledger.models.access import ApiKey, Idempotency, Membership, Role, Scope, Tenant
from ctxengine.ledger.models.audit import AuditEntry
from ctxengine.ledger.models.body import Body
from ctxengine.ledger.models.capacity import CapacityRow
from ctxengine.ledger.models.configuration import AgentVersion, Calibration
from ctxengine.ledger.models.event import Event
from ctxengine.ledger.models.item import ItemRow, Rendering, UnitRow
from ctxengine.ledger.models.job import Job, JobState, OpenRefusal, SideCallRow
from ctxengine.ledger.models.persona import ClosedTurn, PersonaRevision, SnapshotTrace
from ctxengine.ledger.models.plan import PlanRow
from ctxengine.ledger.models.request import RequestRow
from ctxengine.ledger.models.run import Checkpoint, RunRow
from ctxengine.ledger.models.session import SessionRow
from ctxengine.ledger.models.transcript import ImportRow

__all__ = [
    "AgentVersion",
    "ApiKey",
    "AuditEntry",
    "Body",
    "Calibration",
    "CapacityRow",
    "Checkpoint",
    "ClosedTurn",
    "Event",
    "Idempotency",
    "ImportRow",
    "ItemRow",
    "Job",
    "JobState",
    "Membership",
    "OpenRefusal",
    "PersonaRevision",
    "PlanRow",
    "Rendering",
    "RequestRow",
    "Role",
    "RunRow",
    "Scope",
    "SessionRow",
    "SideCallRow",
    "SnapshotTrace",
    "Tenant",
    "UnitRow",
]
