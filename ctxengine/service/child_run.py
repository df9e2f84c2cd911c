"""Child runs: a session of their own, seeded from an instruction; the answer comes back as a tool result (design 2).

Work that outgrew its window goes on in a child with its own budget. What comes back carries the lowest trust of everything the
child saw, so that delegating launders nothing.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Event, ItemRow, RunRow, SessionRow
from ctxengine.service.access import run_of, session_of
from ctxengine.service.specs import Actor, ServiceError

NO_ANSWER = "The child run ended without an answer."


class ChildAnswer(NamedTuple):
    """What a child run gives back."""

    text: str
    trust: Trust
    source: str
    failed: bool


def check_parent(actor: Actor, *, occasion: str, parent_run: UUID | None) -> None:
    """A child names the open run it works for; whatever else names a parent is held to the same.

    Raises:
        ServiceError: 422 `invalid_parent` when none is named or there is no such run; 409 `run_ended`.
    """
    if parent_run is None:
        if occasion != "child":
            return
        raise ServiceError(
            "invalid_parent", 422, "A session with the occasion `child` names its `parent_run`."
        )
    parent = RunRow.objects.filter(tenant_id=actor.tenant_id, id=parent_run).first()
    if parent is None:
        raise ServiceError("invalid_parent", 422, f"There is no run {parent_run}.")
    if parent.state == "ended":
        raise ServiceError(
            "run_ended",
            409,
            f"The parent run {parent.number} has ended; a child would answer nobody.",
        )


def child_answer(actor: Actor, parent: RunRow, child_run: UUID) -> ChildAnswer:
    """The answer of a finished child run, with the trust it derives from all the child saw.

    Raises:
        ServiceError: 404 when there is no such run; 422 `not_a_child` when it works for another run; 409 `child_running`
            while it has not ended.
    """
    run = run_of(actor, child_run)
    session = session_of(actor, run.session_id)
    if session.parent_run_id != parent.id:
        raise ServiceError("not_a_child", 422, "That run does not work for this one.")
    if run.state != "ended":
        raise ServiceError("child_running", 409, "The child run has not ended yet.")
    text = _last_words(session, run)
    failed = run.outcome != "completed" or not text
    return ChildAnswer(text or NO_ANSWER, _trust(session), f"child:{session.id}", failed)


_SHOWN_BESIDE_ITEMS = (EventType.MEMORY_READ, EventType.SNAPSHOT_USED, EventType.SKILL_LOADED)


def _trust(session: SessionRow) -> Trust:
    """The lowest level of anything that the child was shown; what its model wrote is MODEL at best."""
    key = {"tenant_id": session.tenant_id, "session_id": session.id}
    levels = set(ItemRow.objects.filter(**key).values_list("trust", flat=True).distinct())
    beside = Event.objects.filter(**key, type__in=[type.value for type in _SHOWN_BESIDE_ITEMS])
    for type, trust in beside.values_list("type", "trust").distinct():
        levels.add(Trust.MEMORY.value if type == EventType.SNAPSHOT_USED else trust)
    return max((Trust.MODEL, *(Trust(level) for level in levels)), key=lambda level: level.rank)


def _last_words(session: SessionRow, run: RunRow) -> str:
    rows = ItemRow.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        run_id=run.id,
        kind=ItemKind.ASSISTANT_MESSAGE.value,
    )
    last = rows.order_by("-sequence").values_list("sequence", flat=True).first()
    if last is None:
        return ""
    unit = PostgresLog(session.tenant_id, session.id).unit_of_item(EventSeq(last))
    items = unit.items if unit is not None else ()
    return "\n".join(
        text_of_item(item)
        for item in items
        if item.kind is ItemKind.ASSISTANT_MESSAGE and item.id.sequence == last
    )
