"""A probe before it is started: whom it asks, what that takes and costs, which sessions feel it. Nothing is asked here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from ctxengine.engine.capacity.climb_bounds import ClimbBounds, climb_bounds
from ctxengine.engine.capacity.filler import MAX_OUTPUT_TOKENS
from ctxengine.engine.capacity.profile import CapacityProfile, measured
from ctxengine.engine.tokens.usage import Usage
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.enqueue import unfinished
from ctxengine.service.prices import usage_cost
from ctxengine.service.probe.job import flight_of
from ctxengine.service.probe.profiles import is_local, profile_of
from ctxengine.service.probe.sibling import cheapest_of_family
from ctxengine.service.turns.seen_by import PLANNED_ENGINES

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ProbeForecast:
    """What a probe would take."""

    profile: CapacityProfile
    """As it is known before."""
    measured: bool
    asked: str
    """The model that the samples go to: the cheapest of a hosted family unless the very one is wanted."""
    local: bool
    bounds: ClimbBounds
    least_usd: Decimal | None
    """None for a local model, and where no price is known."""
    most_usd: Decimal | None
    sessions: int
    """Open sessions of the model."""
    planned: int
    """Of these, sessions whose history hangs on what the model can use: a new horizon changes it from their next run on."""
    runs_open: int
    """Runs of these sessions that are open; a real turn of the model ends the probe."""
    under_way: bool
    """Whether a probe of the model waits or runs; asking for another gives that one."""


def probe_forecast(
    *, tenant_id: UUID, provider: str, model: str, largest: int | None = None, exact: bool = False
) -> ProbeForecast:
    """Forecast a probe from what is known; the provider is not asked, so a window it has changed since is not seen.

    Args:
        largest: highest prompt to try (tokens).
        exact: ask this very model, not the cheapest of its family.
    """
    profile = profile_of(tenant_id, provider, model)
    local = is_local(provider)
    asked = model if local or exact else cheapest_of_family(provider, model)
    window = profile_of(tenant_id, provider, asked).declared_window
    bounds = climb_bounds(window, largest=largest)
    sessions = SessionRow.objects.filter(
        tenant_id=tenant_id, provider=provider, model=model, state="open"
    )
    runs = RunRow.objects.filter(tenant_id=tenant_id, session_id__in=sessions.values("id"))
    return ProbeForecast(
        profile=profile,
        measured=measured(profile),
        asked=asked,
        local=local,
        bounds=bounds,
        least_usd=None if local else _usd(provider, asked, bounds.least),
        most_usd=None if local else _usd(provider, asked, bounds.most),
        sessions=sessions.count(),
        planned=sessions.filter(engine__in=PLANNED_ENGINES).count(),
        runs_open=runs.exclude(state="ended").count(),
        under_way=unfinished(tenant_id, flight_of(provider, model)) is not None,
    )


def _usd(provider: str, model: str, prompts: tuple[int, ...]) -> Decimal | None:
    """US dollars for prompts of such sizes, nothing of them cached, each answer as long as it may be; None without a price."""
    total = 0
    for size, many in Counter(prompts).items():
        one = Usage(fresh=size, output=MAX_OUTPUT_TOKENS)
        cost = usage_cost(provider, model, one, at=utc_now())
        if cost is None:
            return None
        total += cost * many
    return Decimal(total) / _MILLION
