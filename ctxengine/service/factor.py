"""The calibration factor that applies now to a tenant's use of a model (design 7.4, 7.16)."""

from __future__ import annotations

from uuid import UUID

from ctxengine.engine.tokens.factors import CalibrationFactor
from ctxengine.ledger.models import Calibration
from ctxengine.service.calibration import ModelKey


def factor_in_force(tenant_id: UUID, provider: str, model: str) -> int:
    """In millionths; 1,000,000 for a model that no receipt was seen of."""
    key = ModelKey(tenant_id, provider, model)
    row = Calibration.objects.filter(**key.fields).first()
    if row is None:
        return CalibrationFactor(model).in_force
    return CalibrationFactor(model, row.factor_millionths, row.samples).in_force
