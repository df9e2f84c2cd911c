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
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Event, ItemRow, RunRow, SessionRow
from ctxengine.service.access import run_of, session_of
from ctxengine.service.specs import Actor, OpenSession, PrincipalSpec, ServiceError

NO_ANSWER = "The child run ended without an answer."


class ChildAnswer(NamedTuple):
    """What a child run gives back."""

    text: str
    trust: Trust
    source: str
    failed: bool
    owner: str
    """The principal whom the child worked for."""


def for_parent(actor: Actor, spec: OpenSession) -> OpenSession:
    """A child names the open run it works for, and works for the same principal: their content and authority go with it.

    Whatever else names a parent is held to the same. A child that states no scopes has those of its parent's run.

    Raises:
        ServiceError: 422 `invalid_parent` when none is named, there is no such run, or it works for another principal;
            409 `run_ended`.
    """
    parent = _parent_of(actor, occasion=spec.occasion, parent_run=spec.parent_run)
    if parent is None:
        return spec
    owner = session_of(actor, parent.session_id).principal
    if owner and spec.principal is not None and model_view(spec.principal.id) != owner:
        raise ServiceError(
            "invalid_parent",
            422,
            "The parent run works for another principal than this session names. Leave `principal` out to work for the "
            "parent's.",
        )
    if not owner or (spec.principal is not None and spec.principal.scopes is not None):
        return spec
    stated = parent.settings.get("authority_stated", False)
    scopes = tuple(parent.settings.get("scopes", ())) if stated else None
    return spec.model_copy(update={"principal": PrincipalSpec(id=owner, scopes=scopes)})


def _parent_of(actor: Actor, *, occasion: str, parent_run: UUID | None) -> RunRow | None:
    if parent_run is None:
        if occasion != "child":
            return None
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
    return parent


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
    return ChildAnswer(
        text or NO_ANSWER, _trust(session), f"child:{session.id}", failed, session.principal
    )


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
