"""Puts the engine and its adapters together; the only module that knows both sides."""

from __future__ import annotations

import uuid
from uuid import UUID

from cryptography.fernet import InvalidToken

from ctxengine.engine.cache.session_key import session_key
from ctxengine.engine.plan.plan import Plan, plan_of
from ctxengine.engine.step import SessionFacts
from ctxengine.engine.tokens.counter import FamilyCounter, counter_for
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import PlanRow, SessionRow
from ctxengine.providers.models import ModelFacts, model_facts
from ctxengine.service.crypto import decrypt


def new_id() -> UUID:
    """A fresh random id."""
    return uuid.uuid4()


def log_of(session: SessionRow) -> PostgresLog:
    """The session's log."""
    return PostgresLog(session.tenant_id, session.id)


def facts_about(provider: str, model: str) -> ModelFacts:
    """Window and output limit of a model."""
    return model_facts(provider, model)


def counter_of(provider: str, model: str) -> FamilyCounter:
    """The token counter of a model's family."""
    return counter_for(provider, model)


def careful_counter() -> FamilyCounter:
    """The counter for what serves sessions of any model: as careful as with a model nobody knows."""
    return counter_for("compatible", "")


def renderer_of(provider: str) -> WireRenderer:
    """The wire renderer of a provider; raises the registry's error for one without."""
    return renderer_for(provider)


def plan_from(log: PostgresLog, row: PlanRow) -> Plan:
    """Read a pinned plan back.

    Raises:
        LookupError: its texts were erased.
    """
    text = log.body(str(row.body_id))
    if text is None and row.redacted_body_id is not None:
        text = log.body(str(row.redacted_body_id))
    if text is None:
        msg = f"The plan of epoch {row.epoch} was erased."
        raise LookupError(msg)
    return plan_of(text)


def session_facts(session: SessionRow, plan: Plan) -> SessionFacts:
    """What a session contributes to each of its requests."""
    return SessionFacts(
        plan=plan,
        nonce_key=decrypt(bytes(session.nonce_key)),
        session_key=session_key(str(session.tenant_id), str(session.id)),
        imported=bool(session.import_sha256),
        unseal=unseal,
    )


def unseal(text: str) -> str | None:
    """A sealed window's text; None where the field key or the text is wrong."""
    try:
        return decrypt(text.encode("ascii")).decode("utf-8")
    except (InvalidToken, UnicodeError):
        return None
