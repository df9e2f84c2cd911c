"""A replay as a job: cell by cell, each kept as it finishes, so that a taken-over job goes on where the other stopped."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.ledger.models import ReplayCellRow, ReplayRow
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.replay.cell import replay_cell
from ctxengine.service.replay.from_ledger import source_of_session
from ctxengine.service.replay.models import LabModel, lab_model
from ctxengine.service.replay.read_replay import replay_of
from ctxengine.service.replay.reading import Reading, reading_of
from ctxengine.service.replay.wanted import ReplaySettings

MOST_STEPS_KEPT = 20_000
"""Most steps of one cell whose figures are kept; of a longer one the newest."""


def run(context: JobContext) -> dict[str, Any]:
    """Replay every cell that is not there yet.

    Raises:
        JobCancelled: somebody wanted its end; the cells there are stay.
        LeaseLost: another worker has the job.
        ServiceError: the session cannot be replayed.
    """
    row = replay_of(actor=context.actor, replay_id=UUID(context.arguments["replay"]))
    settings = ReplaySettings.model_validate(row.settings)
    cells = [(engine, lab_model(name)) for name in row.targets for engine in row.engines]
    known = set(
        ReplayCellRow.objects.filter(tenant_id=row.tenant_id, replay_id=row.id).values_list(
            "number", flat=True
        )
    )
    context.progress("reading the session", 1)
    reading = reading_of(source_of_session(actor=context.actor, session_id=row.session_id))
    for number, (engine, model) in enumerate(cells, start=1):
        if number in known:
            continue
        cell = _cell(context, row, reading, engine, model, settings, number, len(cells))
        with transaction.atomic():
            context.hold()
            cell.save(force_insert=True)
        context.note(f"{engine} on {model}: {cell.figures.get('steps', 0):,} steps.")
    result = {"cells": len(cells), "steps": reading.source.steps}
    with transaction.atomic():
        context.conclude(result)
    return result


def _cell(
    context: JobContext,
    row: ReplayRow,
    reading: Reading,
    engine: str,
    model: LabModel,
    settings: ReplaySettings,
    number: int,
    total: int,
) -> ReplayCellRow:
    def seen(done: int, steps: int) -> None:
        if done % 20 == 0 or done == steps:
            context.check()
            share = (number - 1 + done / max(1, steps)) / total
            context.progress(f"{engine} on {model}", min(99, int(100 * share)))

    cell = replay_cell(reading, engine, model, settings, at=row.created_at, seen=seen)
    context.check()
    return ReplayCellRow(
        tenant_id=row.tenant_id,
        replay_id=row.id,
        number=number,
        engine=engine,
        provider=model.provider,
        model=model.name,
        figures=cell.totals.as_json(),
        steps=[step.as_json() for step in cell.steps[-MOST_STEPS_KEPT:]],
        notes=cell.notes,
        skipped=cell.skipped,
        finished_at=utc_now(),
    )
