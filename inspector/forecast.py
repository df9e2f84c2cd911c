"""What an operator's act would cost, read before it is confirmed; nothing here writes (ui 4.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.prices import recache_price
from ctxengine.service.refusals import refusing
from ctxengine.service.rotation import Rotation, rotation, same_request
from ctxengine.service.run_start import rotation_for_run, run_scopes
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.undo_compaction import packets_undone_with, undoing_cost
from ctxengine.service.wiring import log_of, plan_from

MOST_SESSIONS = 12
"""Sessions whose rotation is worked out for one persona; the rest are counted."""


@dataclass(frozen=True, slots=True)
class PersonaRotation:
    """One session that a persona's next revision would rotate."""

    session_id: UUID
    title: str
    model: str
    epoch: int
    recached_tokens: int
    price_usd: str | None
    refused: str
    """Why its next run could not start; empty when it can."""


def rotation_by_hand(
    *, actor: Actor, session_id: UUID, reason: EpochReason, tools: Sequence[str]
) -> Rotation:
    """What rotating now would pin and cost.

    Raises:
        ServiceError: 404; `session_ended`, `plan_erased` (409); `unknown_tool`, `plan_overflow` and the like (422).
    """
    session = session_of(actor, session_id)
    if session.state != "open":
        raise ServiceError("session_ended", 409, "The session has ended.")
    with _readable():
        old = plan_from(log_of(session), plan_row_of(session))
        wanted = same_request(old)
        if tools:
            wanted = _without(old, wanted, tools)
        return rotation(session, old, wanted, (reason,))


def rotation_at_next_run(*, actor: Actor, session_id: UUID) -> Rotation | None:
    """What the next run's start would rotate as things stand; None when it keeps the pinned plan.

    Raises:
        ServiceError: what would keep that run from starting.
    """
    session = session_of(actor, session_id)
    if session.state != "open":
        return None
    with _readable():
        return rotation_for_run(session, log_of(session), granted=run_scopes(session, None))


def persona_rotations(
    *, actor: Actor, principal: str, entries: Sequence[str]
) -> tuple[tuple[PersonaRotation, ...], int]:
    """Open sessions that pin another text of this document than `entries`, and how many more were not looked at."""
    rows = SessionRow.objects.filter(tenant_id=actor.tenant_id, principal=principal, state="open")
    rows = rows.order_by("-active_at", "id")
    found = [
        one
        for session in rows[:MOST_SESSIONS]
        if (one := _persona_rotation(session, tuple(entries))) is not None
    ]
    return tuple(found), max(0, rows.count() - MOST_SESSIONS)


def _persona_rotation(session: SessionRow, entries: tuple[str, ...]) -> PersonaRotation | None:
    try:
        with _readable():
            old = plan_from(log_of(session), plan_row_of(session))
            if old.persona_revision is None or old.persona == entries:
                return None
            wanted = replace(same_request(old), persona=entries)
            turned = rotation(session, old, wanted, (EpochReason.PERSONA_CHANGED,))
    except ServiceError as refused:
        return _told(session, 0, None, refused.detail)
    return _told(session, turned.recached_tokens, turned.price.usd if turned.price else None, "")


def _told(session: SessionRow, tokens: int, price: str | None, refused: str) -> PersonaRotation:
    return PersonaRotation(
        session.id, session.title, session.model, session.epoch, tokens, price, refused
    )


def cost_of_undoing(*, actor: Actor, session_id: UUID, made: EventRecord) -> NetCost:
    """What undoing a compaction would add to later requests and make the provider cache anew: no more than a request holds."""
    session = session_of(actor, session_id)
    return undoing_cost(session, log_of(session), made)


def packets_gone_with(
    *, actor: Actor, session_id: UUID, made: EventRecord
) -> tuple[int, ...] | None:
    """The packets that undoing one takes out, itself first; none where no request shows it. None for what is no packet."""
    return packets_undone_with(log_of(session_of(actor, session_id)), made)


def price_of(*, provider: str, model: str, tokens: int) -> str | None:
    """Caching so many tokens anew, in US dollars as decimal text; None where no price is known."""
    price = recache_price(provider, model, tokens)
    return price.usd if price else None


def open_run_number(actor: Actor, session_id: UUID) -> int | None:
    """Number of the run that an act would meet at its next step; None when none is open."""
    rows = RunRow.objects.filter(tenant_id=actor.tenant_id, session_id=session_id)
    return rows.exclude(state="ended").values_list("number", flat=True).first()


@contextmanager
def _readable() -> Iterator[None]:
    try:
        with refusing():
            yield
    except LookupError as error:
        raise ServiceError(
            "plan_erased",
            409,
            "The pinned texts were erased, so nothing can be resolved from them.",
        ) from error


def _without(old: Plan, wanted: PlanRequest, names: Sequence[str]) -> PlanRequest:
    """The request without some tools, as the rotation itself takes them out."""
    unknown = [name for name in names if (tool := old.tool(name)) is None or tool.control]
    if unknown:
        raise ServiceError("unknown_tool", 422, f"The plan has no tool named {unknown[0]!r}.")
    return replace(
        wanted,
        tools=[
            tool.model_copy(update={"removed": True}) if tool.name in names else tool
            for tool in wanted.tools
        ],
    )
