"""What a model's summary would cost, said before anybody asks for it (design 9)."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.specs import Actor
from ctxengine.service.summaries.model_choice import price_of_writing, writer_of
from ctxengine.service.wiring import log_of, plan_from


class SummaryForecast(NamedTuple):
    """Who would write, and for how much."""

    model: str
    """`provider/model`."""
    usd: str | None
    """Decimal text; None where no price is known."""


def summary_forecast(
    *, actor: Actor, session_id: UUID, tokens_before: int, tokens_after: int
) -> SummaryForecast:
    """The forecast for a range of a session, as if all of it were read once; its results are not, the prompt is beside it.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    plan = plan_from(log_of(session), plan_row_of(session))
    writer = writer_of(plan, input_tokens=tokens_before, output_tokens=tokens_after)
    price = price_of_writing(writer, tokens_before, tokens_after)
    return SummaryForecast(writer.label, None if price is None else f"{price:f}")
