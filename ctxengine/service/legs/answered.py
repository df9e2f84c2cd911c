"""An answer that came from a leg: whose usage, whose reasoning, and what it leaves of the cache figures (design 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ctxengine.engine.inputs import inputs_of
from ctxengine.engine.items import Opaque
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.service.specs import ServiceError

_OF_CACHE = ("entries", "reach", "images", "at")


class Answering(NamedTuple):
    """The leg that answered a request, or refused it."""

    place: int
    provider: str
    model: str
    window: int
    tokens: int
    """Raw count of its body by its own counter."""

    def thought(self, session: SessionRow, blocks: Sequence[Opaque]) -> tuple[Opaque, ...]:
        """Its reasoning under its name, so that no other model is sent it."""
        if (self.provider, self.model) == (session.provider, session.model):
            return tuple(blocks)
        return tuple(replace(block, provider=self.provider, model=self.model) for block in blocks)


def answering_leg(request: RequestRow, place: int | None) -> Answering | None:
    """The leg at that place of a request; None where the session's own model answered.

    Raises:
        ServiceError: 422 `unknown_leg`.
    """
    if place is None:
        return None
    inputs = inputs_of(request.inputs)
    if place >= len(inputs.legs):
        raise ServiceError(
            "unknown_leg",
            422,
            f"Request {request.id} has {len(inputs.legs)} legs, counted from 0; there is no leg {place}.",
        )
    leg, body = inputs.legs[place], inputs.leg_bodies[place]
    return Answering(place, leg.provider, leg.model, leg.window, body.tokens)


def answered_by(request: RequestRow, leg: Answering) -> dict[str, Any]:
    """What changes on a request's row when a leg answered: the model that is billed, and the cache that was left alone.

    The session's own provider never saw this request: the next one may count on what the one before it left.
    """
    before = (
        RequestRow.objects.filter(
            tenant_id=request.tenant_id,
            session_id=request.session_id,
            number__lt=request.number,
            status="answered",
        )
        .order_by("-number")
        .values_list("cache", flat=True)
        .first()
    )
    left = before or {}
    kept = {name: value for name, value in request.cache.items() if name not in _OF_CACHE}
    kept |= {name: left[name] for name in _OF_CACHE if name in left}
    return {"provider": leg.provider, "model": leg.model, "cache": kept}
