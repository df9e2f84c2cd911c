"""The window a new plan may count on: what is known of a model, bounded by what it was seen to refuse (design 7.10)."""

from __future__ import annotations

import math
from uuid import UUID

from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import Calibration
from ctxengine.providers.models import ModelFacts
from ctxengine.service.calibration import ModelKey
from ctxengine.service.wiring import facts_about


def known_facts(tenant_id: UUID, provider: str, model: str) -> ModelFacts:
    """Facts about a model for a new plan; the window is the learnt one where a refusal taught a smaller one."""
    facts = facts_about(provider, model)
    learnt = learnt_window(tenant_id, provider, model)
    if learnt is None or learnt >= facts.window:
        return facts
    return facts._replace(window=learnt, source="learnt")


ASSUMED = "Nothing is known about"
"""How the warning of an assumed window begins."""


def assumed_window(stated: int | None, known: ModelFacts, model: str) -> tuple[str, ...]:
    """The warning of a plan whose window nobody stated, measured or looked up; none for any other."""
    if stated is not None or known.source != "assumed":
        return ()
    return (
        f"{ASSUMED} {model_view(model)}: a window of {known.window:,} tokens is assumed. "
        "If it has another, state it in `model.window` (tokens).",
    )


def learnt_window(tenant_id: UUID, provider: str, model: str) -> int | None:
    """Tokens the model may be offered at most: the provider's stated maximum, else a tenth below the least it refused."""
    key = ModelKey(tenant_id, provider, model)
    row = Calibration.objects.filter(**key.fields).first()
    if row is None:
        return None
    if row.verified_window is not None:
        return row.verified_window
    if row.rejected_min is None:
        return None
    return max(next_total(row.rejected_min), row.accepted_max or 0)


def next_total(rejected: int) -> int:
    """What to offer after a refusal that states no maximum."""
    return max(1, min(math.floor(rejected * 0.9), rejected - 1))
