"""The one place that fetches rows for a tenant: another tenant's row is not found (design 5, style 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.log.records import Head
from ctxengine.ledger.ahead import read_ahead
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Membership, PlanRow, RequestRow, Role, RunRow, SessionRow
from ctxengine.ledger.rows import asks_row_by, asks_row_where, row_by, row_where
from ctxengine.service.specs import Actor, ServiceError

_OF_RUN = "tenant_id = %s AND id = (SELECT r.session_id FROM run r WHERE r.tenant_id = session.tenant_id AND r.id = %s)"


@dataclass(frozen=True, slots=True)
class TenantAccess:
    """A person's way into a tenant."""

    tenant_id: UUID
    slug: str
    name: str
    role: Role


def tenants_of(user: Any) -> list[TenantAccess]:
    """Tenants a person belongs to, by slug."""
    rows = Membership.objects.filter(user=user).select_related("tenant").order_by("tenant__slug")
    return [
        TenantAccess(row.tenant.id, row.tenant.slug, row.tenant.name, Role(row.role))
        for row in rows
    ]


def tenant_for_user(user: Any, slug: str) -> TenantAccess:
    """The tenant of that slug, if the person belongs to it.

    Raises:
        ServiceError: 404 otherwise, so that nobody learns which tenants exist.
    """
    for access in tenants_of(user):
        if access.slug == slug:
            return access
    raise not_found("tenant")


def session_of(actor: Actor, session_id: UUID) -> SessionRow:
    """A session of the actor's tenant.

    Raises:
        ServiceError: 404 when there is none.
    """
    row = row_by(SessionRow, tenant_id=actor.tenant_id, id=session_id)
    if row is None:
        raise not_found("session")
    return row


def run_of(actor: Actor, run_id: UUID) -> RunRow:
    """A run of the actor's tenant.

    Raises:
        ServiceError: 404 when there is none.
    """
    row = row_by(RunRow, tenant_id=actor.tenant_id, id=run_id)
    if row is None:
        raise not_found("run")
    return row


def open_run_of(actor: Actor, run_id: UUID) -> RunRow:
    """A run that has not ended.

    Raises:
        ServiceError: 404 when there is none, 409 `run_ended` when it is over.
    """
    row = run_of(actor, run_id)
    _refuse_ended(row)
    return row


def open_run_and_session(actor: Actor, run_id: UUID) -> tuple[RunRow, SessionRow]:
    """A run that has not ended, and its session: one round trip for what every step begins with.

    Raises:
        ServiceError: 404 when there is none, 409 `run_ended` when it is over.
    """
    key = (actor.tenant_id, run_id)
    with read_ahead(
        asks_row_by(RunRow, tenant_id=actor.tenant_id, id=run_id),
        asks_row_where(SessionRow, _OF_RUN, *key),
    ):
        run = open_run_of(actor, run_id)
        session = row_where(SessionRow, _OF_RUN, *key)
    if session is None:
        raise not_found("session")
    return run, session


def still_open(run: RunRow) -> None:
    """Read a run again, now that the log's head is known.

    Whatever ends a run or changes what it may do appends an event, so what is read here holds for an append at that head.

    Raises:
        ServiceError: 409 `run_ended` when it is over.
    """
    run.refresh_from_db(fields=["state", "outcome", "settings", "steps"])
    _refuse_ended(run)


def head_of_open(log: PostgresLog, session: SessionRow, run: RunRow) -> Head:
    """The log's head, with run and session brought up to it in the same look: one round trip for what every step asks.

    Raises:
        ServiceError: 409 `run_ended` when the run is over.
    """
    head, stand = log.head_and_run(run.id)
    run.state, run.outcome = stand.state, stand.outcome
    run.settings, run.steps = stand.settings, stand.steps
    session.epoch, session.requests = stand.epoch, stand.requests
    session.content_sequence, session.act_sequence = head.content_sequence, head.act_sequence
    _refuse_ended(run)
    return head


def still_open_session(session: SessionRow) -> None:
    """Read a session again, now that its log's head is known.

    Whatever rotates, configures or ends a session appends an event, so what is read here holds for an append at that head.

    Raises:
        ServiceError: 409 `session_ended` when it is over.
    """
    session.refresh_from_db(
        fields=["state", "epoch", "provider", "model", "settings", "runs", "act_sequence"]
    )
    if session.state != "open":
        raise ServiceError("session_ended", 409, "The session has ended; open a new one.")


def _refuse_ended(run: RunRow) -> None:
    if run.state == "ended":
        raise ServiceError(
            "run_ended",
            409,
            f"Run {run.number} has ended ({run.outcome}); start a new run.",
            outcome=run.outcome,
        )


def request_of(actor: Actor, request_id: UUID) -> RequestRow:
    """A request of the actor's tenant.

    Raises:
        ServiceError: 404 when there is none.
    """
    row = RequestRow.objects.filter(tenant_id=actor.tenant_id, id=request_id).first()
    if row is None:
        raise not_found("request")
    return row


def plan_row_of(session: SessionRow, epoch: int | None = None) -> PlanRow:
    """The plan of an epoch of a session, the current one by default."""
    return PlanRow.objects.get(
        tenant_id=session.tenant_id, session_id=session.id, epoch=epoch or session.epoch
    )


def not_found(what: str) -> ServiceError:
    """A 404 that does not tell a foreign id from one that never was."""
    return ServiceError("not_found", 404, f"There is no such {what}.")
