"""One step of a replay built again, to be looked at as a request. Nothing of it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from ctxengine.engine.request import ModelRequest
from ctxengine.service.access import not_found
from ctxengine.service.replay.cell import task_of
from ctxengine.service.replay.engines import lab_engine
from ctxengine.service.replay.figures import Cell, CellTotals, ReplayStep
from ctxengine.service.replay.from_ledger import source_of_session
from ctxengine.service.replay.models import LabModel
from ctxengine.service.replay.own import Play
from ctxengine.service.replay.read_replay import cell_of, replay_of
from ctxengine.service.replay.reading import reading_of
from ctxengine.service.replay.wanted import ReplaySettings
from ctxengine.service.specs import Actor, ServiceError


@dataclass(frozen=True, slots=True)
class Simulated:
    """A request that was never sent."""

    figures: ReplayStep
    built: ModelRequest
    body: bytes = field(repr=False)


def simulated_step(*, actor: Actor, replay_id: UUID, cell: int, number: int) -> Simulated:
    """Play a cell up to one step and give that step's request.

    Raises:
        ServiceError: 404 where there is no such replay, cell or step; 409 `nothing_to_replay` where no request was built:
            for a peer policy, and for a step that was refused.
    """
    row = replay_of(actor=actor, replay_id=replay_id)
    found = cell_of(row, cell)
    if lab_engine(found.engine).driver is None:
        raise _no_request(
            f"{found.engine} is a peer policy: the lab counts its requests and builds none."
        )
    model = LabModel(found.provider, found.model)
    settings = ReplaySettings.model_validate(row.settings)
    reading = reading_of(source_of_session(actor=actor, session_id=row.session_id), with_uses=False)
    task = task_of(reading, found.engine, model, settings, at=row.created_at)
    totals = CellTotals(found.engine, found.model, found.provider, settings.budget, task.ttl)
    for played in Play(task, Cell(totals)).steps():
        if played.figures.number < number:
            continue
        if played.figures.number > number:
            break
        if played.step is None:
            raise _no_request(f"Step {number} was refused: {played.figures.warnings[0]}")
        built = played.step.built
        body = built.renderer.body(built.prefix, built.fragments, built.params, built.markers)
        return Simulated(played.figures, built, body)
    raise not_found("step")


def _no_request(detail: str) -> ServiceError:
    return ServiceError("nothing_to_replay", 409, detail)
