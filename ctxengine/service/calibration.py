"""What a model's receipts and refusals teach: the factor, and the sizes it took and refused (design 7.4, 7.10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ctxengine.engine.tokens.factors import CalibrationFactor
from ctxengine.engine.tokens.usage import Usage
from ctxengine.ledger.models import Calibration
from ctxengine.service.clock import utc_now

_MOST_NAME_CHARS = 200
_MOST_TOKENS = 2**31 - 1
"""What a column of this table holds."""


@dataclass(frozen=True, slots=True)
class ModelKey:
    """One model of a tenant: calibration is kept per model."""

    tenant_id: UUID
    provider: str
    model: str

    @property
    def fields(self) -> dict[str, object]:
        """As the table's key."""
        return {
            "tenant_id": self.tenant_id,
            "provider": self.provider,
            "model": self.model[:_MOST_NAME_CHARS],
        }


def learn_receipt(key: ModelKey, estimated: int, usage: Usage) -> None:
    """Let one receipt move the factor, and note the size that was accepted. Call inside a transaction.

    Args:
        estimated: raw count of the request that was sent.
    """
    now = utc_now()
    row = _locked(key, now)
    known = CalibrationFactor(
        model=key.model,
        millionths=row.factor_millionths,
        samples=row.samples,
        last_error_millionths=row.last_error_millionths,
    )
    learnt = known.reconcile(estimated, usage)
    row.factor_millionths = learnt.millionths
    row.samples = learnt.samples
    row.last_error_millionths = learnt.last_error_millionths
    row.accepted_max = max(row.accepted_max or 0, usage.prompt_total)
    if row.rejected_min is not None and row.rejected_min <= row.accepted_max:
        # The model takes more than it did: what it refused before no longer bounds anything.
        row.rejected_min = None
    if row.verified_window is not None and row.verified_window < row.accepted_max:
        row.verified_window = None
    row.updated_at = now
    row.save()


def learn_refusal(key: ModelKey, *, rejected: int, maximum: int | None, factor: int) -> None:
    """Keep what an over-length refusal says. Call inside a transaction.

    Args:
        rejected: tokens of what was refused.
        maximum: the provider's stated maximum, where it states one.
        factor: the factor (millionths) that the refusal shows to be too low; it only rises.
    """
    now = utc_now()
    row = _locked(key, now)
    row.factor_millionths = max(row.factor_millionths, factor)
    row.rejected_min = min(row.rejected_min or rejected, rejected, _MOST_TOKENS)
    if maximum is not None:
        row.verified_window = min(maximum, _MOST_TOKENS)
    row.updated_at = now
    row.save()


def _locked(key: ModelKey, now: datetime) -> Calibration:
    """The model's row, held until the transaction ends: two receipts at one moment both count."""
    Calibration.objects.get_or_create(**key.fields, defaults={"updated_at": now})
    return Calibration.objects.select_for_update().get(**key.fields)
