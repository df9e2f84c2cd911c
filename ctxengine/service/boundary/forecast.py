"""What a checkpoint made by hand takes, said before anybody asks for it (design 9): who is called, what is read, at what cost.

How large the result is nobody knows before the provider has answered; only its upper bound is.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.prepare import work_of
from ctxengine.service.access import session_of
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.boundary.look import look
from ctxengine.service.boundary.ports import chosen_writer, uncallable
from ctxengine.service.specs import Actor
from ctxengine.service.summaries.model_choice import price_of_writing, session_writer
from ctxengine.service.wiring import log_of, renderer_of


class BoundaryForecast(NamedTuple):
    """A compaction of a `boundary` session before it is made. Tokens are our own count, not the provider's."""

    native: bool
    """Whether the provider makes a window of its own; else a model writes a portable note."""
    model: str
    """`provider/model` that is called."""
    reads: int
    """Tokens that the call reads, about."""
    most: int
    """Tokens that its answer may have at most."""
    again: int
    """Tokens of covered units that are shown again behind the result."""
    usd: str | None
    """Price of the call where its answer is as long as it may be, as decimal text; None where no price is known."""
    refused: CompactionError | None
    """Why that model cannot be called now; None where it can."""


def boundary_forecast(
    *, actor: Actor, session_id: UUID, through: int | None = None
) -> BoundaryForecast | None:
    """The forecast of compacting now; None where nothing is settled.

    Raises:
        ServiceError: 404.
        CompactionError: the window it would rest on cannot be opened.
    """
    session = session_of(actor, session_id)
    situation = look(session, open_run(session), log=log_of(session)).situation
    policy = situation.session.plan.policy
    keep = policy.retained_turns if through is None else 0
    work = work_of(situation, renderer_of(session.provider), keep_turns=keep, through=through)
    if work is None:
        return None
    native = situation.native
    most = (
        policy.native_compaction_max_output_tokens if native else policy.summary_max_output_tokens
    )
    writer = session_writer(work.session.plan) if native else chosen_writer(work)
    reads = work.covered.tokens + (work.prefix_tokens if native else 0)
    price = price_of_writing(writer, reads, most)
    return BoundaryForecast(
        native=native,
        model=writer.label,
        reads=reads,
        most=most,
        again=sum(unit.tokens for unit in work.retained),
        usd=None if price is None else f"{price:f}",
        refused=uncallable(work, native=native),
    )
