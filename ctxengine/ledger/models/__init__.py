"""Tables of the ledger. Every row carries its tenant and every key starts with it (design 4)."""

from __future__ import annotations

from ctxengine.ledger.models.access import ApiKey, Idempotency, Membership, Role, Scope, Tenant
from ctxengine.ledger.models.audit import AuditEntry
from ctxengine.ledger.models.body import Body
from ctxengine.ledger.models.capacity import CapacityRow
from ctxengine.ledger.models.configuration import AgentVersion, Calibration
from ctxengine.ledger.models.console import (
    AlertChange,
    AlertRule,
    SavedView,
    SearchEntry,
    SearchHash,
    SearchHead,
)
from ctxengine.ledger.models.event import Event
from ctxengine.ledger.models.item import ItemRow, Rendering, UnitRow
from ctxengine.ledger.models.job import Job, JobState, OpenRefusal, SideCallRow
from ctxengine.ledger.models.persona import ClosedTurn, PersonaRevision, SnapshotTrace
from ctxengine.ledger.models.plan import PlanRow
from ctxengine.ledger.models.replay import ReplayCellRow, ReplayRow
from ctxengine.ledger.models.request import RequestRow
from ctxengine.ledger.models.retention import RetentionRule
from ctxengine.ledger.models.run import Checkpoint, RunRow
from ctxengine.ledger.models.session import SessionRow
from ctxengine.ledger.models.transcript import ImportRow
from ctxengine.ledger.models.turn_index import IndexedTurn, Posting

__all__ = [
    "AgentVersion",
    "AlertChange",
    "AlertRule",
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
    "IndexedTurn",
    "ItemRow",
    "Job",
    "JobState",
    "Membership",
    "OpenRefusal",
    "PersonaRevision",
    "PlanRow",
    "Posting",
    "Rendering",
    "ReplayCellRow",
    "ReplayRow",
    "RequestRow",
    "RetentionRule",
    "Role",
    "RunRow",
    "SavedView",
    "Scope",
    "SearchEntry",
    "SearchHash",
    "SearchHead",
    "SessionRow",
    "SideCallRow",
    "SnapshotTrace",
    "Tenant",
    "UnitRow",
]
