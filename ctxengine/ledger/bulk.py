"""Writing a whole log at once: imports build in memory and land in one transaction (design 4)."""

from __future__ import annotations

from uuid import UUID

from ctxengine.engine.memory import Stored
from ctxengine.ledger.inserts import copy
from ctxengine.ledger.models import Body, Event, ItemRow, UnitRow
from ctxengine.ledger.records import event_row, item_row, unit_row


def write_log(tenant_id: UUID, session_id: UUID, stored: Stored, *, owner: str = "") -> None:
    """Insert every row of a new session's log; call it inside a transaction, before anybody can see the session."""
    key = {"tenant_id": str(tenant_id), "session_id": str(session_id)}
    commitments = {event.body.id: event.body for event in stored.events if event.body is not None}
    copy(
        Body,
        (
            Body(
                **key,
                id=name,
                salt=salt,
                data=data,
                sha256=commitments[name].sha256,
                length=len(data),
                owner=owner,
            )
            for name, (salt, data) in stored.bodies.items()
        ),
    )
    copy(Event, (event_row(key, event) for event in stored.events))
    copy(ItemRow, (item_row(key, item) for item in stored.items))
    copy(UnitRow, (unit_row(key, unit) for unit in stored.units))
