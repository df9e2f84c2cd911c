"""Keeping what was refused at open or at a rotation, so that failed opens can be counted by class (spec, Tracked metrics)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.errors import PlanOverflow, RequiredToolMissing
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import OpenRefusal, SessionRow
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import new_id

_CODES = frozenset({PlanOverflow.code, RequiredToolMissing.code})


@contextmanager
def refusals_kept(
    *,
    actor: Actor,
    engine: str,
    provider: str,
    model: str,
    agent_name: str,
    session_id: UUID | None = None,
) -> Iterator[None]:
    """Write a row when a plan is refused inside; the refusal goes on to the caller.

    Stand it around the transaction of the refused act, which rolls back: the row has its own.
    """
    try:
        yield
    except ServiceError as error:
        if error.code in _CODES:
            with transaction.atomic():
                OpenRefusal.objects.create(
                    tenant_id=actor.tenant_id,
                    id=new_id(),
                    at=utc_now(),
                    code=error.code,
                    budget_class=str(error.extra.get("budget_class", BudgetClass.TOOLS.value)),
                    needed=_tokens(error, "needed"),
                    available=_tokens(error, "available"),
                    engine=engine,
                    provider=provider,
                    model=model_view(model),
                    agent_name=model_view(agent_name),
                    session_id=session_id,
                )
        raise


@contextmanager
def rotation_refusals_kept(actor: Actor, session: SessionRow) -> Iterator[None]:
    """The same for a session that exists already."""
    with refusals_kept(
        actor=actor,
        engine=session.engine,
        provider=session.provider,
        model=session.model,
        agent_name=session.agent_name,
        session_id=session.id,
    ):
        yield


def _tokens(error: ServiceError, name: str) -> int:
    found = error.extra.get(name)
    return found if isinstance(found, int) else 0
