"""Which model of a hosted family climbs the ladder: the cheapest, since a probe is paid for (capacity spec 1, Cost control)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from decimal import Decimal

from ctxengine.engine.capacity.filler import MAX_OUTPUT_TOKENS
from ctxengine.engine.capacity.profile import (
    ASSUMED_CONFIDENCE,
    CapacityProfile,
    Horizon,
    Observation,
)
from ctxengine.service.summaries.model_choice import price_of_writing, text_models

SIBLING_CONFIDENCE = 0.5
"""At most so sure is a horizon that another model of the family was measured for."""
_SAMPLE_TOKENS = 32_000
"""Size of the sample by which prices are compared (tokens)."""
_FAMILY = re.compile(r"(claude)-[a-z]+-(\d)|(gpt)-(\d)|(gemini)-(\d)")


def family_of(model: str) -> str:
    """The family of a model by its name, such as `claude-4`; empty where the name tells none."""
    found = _FAMILY.match(model)
    return "-".join(part for part in found.groups() if part) if found is not None else ""


def cheapest_of_family(provider: str, model: str, *, listed: Collection[str] = ()) -> str:
    """The model of the same family whose samples cost least; the model itself where no cheaper one is known.

    Args:
        listed: names that the provider lists now; empty where it lists none, and then every known one counts as there.
    """
    family = family_of(model)
    if not family:
        return model
    priced: list[tuple[Decimal, bool, str]] = []
    for known in text_models(provider):
        name = known.model if known.model == model else _name_in(known.model, listed)
        price = price_of_writing(known, _SAMPLE_TOKENS, MAX_OUTPUT_TOKENS)
        if name is not None and price is not None and family_of(known.model) == family:
            priced.append((price, name != model, name))
    own = next((price for price, other, _ in priced if not other), None)
    cheapest = min(priced, default=None)
    if cheapest is None or (own is not None and own <= cheapest[0]):
        return model
    return cheapest[2]


def carried_over(target: CapacityProfile, found: CapacityProfile) -> CapacityProfile:
    """The profile of a model whose family was measured on a cheaper one.

    A horizon that the cheaper one showed counts for it too. Where that one followed everything it was asked, nothing speaks
    against the model's own window, which then stands in as it does for a model that nobody measured.

    Args:
        target: from metadata alone.
        found: what the ladder found of the other model.
    """
    fell = _fell(found.provenance.observations)
    seen = found.horizon
    horizon = Horizon(
        tokens=min(seen.tokens, target.declared_window) if fell else target.declared_window,
        confidence=min(seen.confidence, SIBLING_CONFIDENCE) if fell else ASSUMED_CONFIDENCE,
        native_calls=seen.native_calls,
        confirmed_at=seen.confirmed_at if fell else "",
    )
    made = found.provenance.model_copy(
        update={
            "metadata_digest": target.provenance.metadata_digest,
            "measured_on": found.model,
        }
    )
    return target.model_copy(update={"horizon": horizon, "cache": found.cache, "provenance": made})


def _fell(seen: Sequence[Observation]) -> bool:
    """Whether a rung mostly failed: such a one ends the horizon; a lone failure on a rung that holds does not."""
    passed, failed = (
        Counter(sample.tokens for sample in seen if sample.grade.passed is verdict)
        for verdict in (True, False)
    )
    return any(passed[rung] <= number for rung, number in failed.items())


def _name_in(known: str, listed: Collection[str]) -> str | None:
    """The name by which the provider lists a model, dated or not; None where it lists others alone."""
    if not listed or known in listed:
        return known
    dated = (name for name in listed if re.fullmatch(re.escape(known) + r"-\d{8}", name))
    return next(dated, None)
