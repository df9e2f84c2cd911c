"""Models in use with what was measured of each: profiles, correction factors, probes under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Max

from ctxengine.ledger.models import Calibration, CapacityRow, Job, JobState, SessionRow

MOST_MODELS = 200
MOST_REVISIONS = 30
PROBE_KIND = "capacity.probe"


@dataclass(frozen=True, slots=True)
class ProbeGlance:
    """The newest probe job of a model."""

    id: UUID
    state: str
    phase: str
    percent: int
    log: tuple[dict[str, str], ...]
    error: str
    created_at: datetime

    @property
    def running(self) -> bool:
        """Whether it has still to end."""
        return self.state in {JobState.QUEUED, JobState.RUNNING}


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model of the tenant."""

    provider: str
    model: str
    sessions: int
    last_used_at: datetime | None
    profile: dict[str, Any] | None
    """Newest measured profile as stored; None where nothing was measured."""
    measured_at: datetime | None
    factor: float | None
    """Correction factor learnt from receipts; None before the first."""
    samples: int
    last_error: float | None
    """Signed error of the newest estimate, as a share of what was billed; negative when it was too low."""
    verified_window: int | None
    """Tokens, once the provider has refused a longer prompt."""
    rejected_min: int | None


@dataclass(frozen=True, slots=True)
class Revision:
    """One stored revision of a profile."""

    id: UUID
    source: str
    created_at: datetime
    profile: dict[str, Any]
    job_id: UUID | None


@dataclass(frozen=True, slots=True)
class ModelDetail:
    """One model with its history."""

    line: ModelLine
    revisions: tuple[Revision, ...]
    """Newest first."""
    probe: ProbeGlance | None


def model_lines(tenant_id: UUID) -> tuple[ModelLine, ...]:
    """The 200 models used latest, and those that were only measured. Three queries."""
    used = {
        (row["provider"], row["model"]): row
        for row in SessionRow.objects.filter(tenant_id=tenant_id)
        .values("provider", "model")
        .annotate(sessions=Count("id"), last=Max("active_at"))
        .order_by("-last")[:MOST_MODELS]
    }
    profiles = {(row.provider, row.model): row for row in _newest(tenant_id)}
    factors = {
        (row.provider, row.model): row for row in Calibration.objects.filter(tenant_id=tenant_id)
    }
    names = list(dict.fromkeys([*used, *profiles]))
    return tuple(
        _line(name, used.get(name), profiles.get(name), factors.get(name)) for name in names
    )


def model_detail(tenant_id: UUID, provider: str, model: str) -> ModelDetail | None:
    """One model; None where no session used it and nothing was measured. Four queries."""
    rows = list(
        CapacityRow.objects.filter(tenant_id=tenant_id, provider=provider, model=model).order_by(
            "-created_at"
        )[:MOST_REVISIONS]
    )
    used = SessionRow.objects.filter(tenant_id=tenant_id, provider=provider, model=model).aggregate(
        sessions=Count("id"), last=Max("active_at")
    )
    probe = newest_probe(tenant_id, provider, model)
    if not rows and not used["sessions"] and probe is None:
        return None
    factor = Calibration.objects.filter(
        tenant_id=tenant_id, provider=provider, model=model[:200]
    ).first()
    return ModelDetail(
        line=_line((provider, model), used, rows[0] if rows else None, factor),
        revisions=tuple(
            Revision(row.id, row.source, row.created_at, row.profile, row.job_id) for row in rows
        ),
        probe=probe,
    )


def newest_probe(tenant_id: UUID, provider: str, model: str) -> ProbeGlance | None:
    """The newest probe job of a model. One query."""
    job = (
        Job.objects.filter(tenant_id=tenant_id, kind=PROBE_KIND, subject=f"{provider}/{model}")
        .order_by("-created_at")
        .first()
    )
    if job is None:
        return None
    return ProbeGlance(
        id=job.id,
        state=job.state,
        phase=job.phase,
        percent=job.percent,
        log=tuple(job.log),
        error=str(job.error.get("detail", "")),
        created_at=job.created_at,
    )


def _newest(tenant_id: UUID) -> list[CapacityRow]:
    rows = CapacityRow.objects.filter(tenant_id=tenant_id)
    return list(rows.order_by("provider", "model", "-created_at").distinct("provider", "model"))


def _line(
    name: tuple[str, str],
    used: Mapping[str, Any] | None,
    row: CapacityRow | None,
    factor: Calibration | None,
) -> ModelLine:
    return ModelLine(
        provider=name[0],
        model=name[1],
        sessions=used["sessions"] if used else 0,
        last_used_at=used["last"] if used else None,
        profile=row.profile if row else None,
        measured_at=row.created_at if row else None,
        factor=factor.factor_millionths / 1_000_000 if factor else None,
        samples=factor.samples if factor else 0,
        last_error=-factor.last_error_millionths / 1_000_000 if factor else None,
        verified_window=factor.verified_window if factor else None,
        rejected_min=factor.rejected_min if factor else None,
    )
