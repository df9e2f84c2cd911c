"""The corpus in the lab, request by request: what a `working_set` session of each transcript would have sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ctxengine.engine.events import EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_record import PlannedSet, planned_of
from ctxengine.engine.memory import MemoryLog
from ctxengine.service.replay.cell import Task, task_of
from ctxengine.service.replay.figures import Cell, CellTotals
from ctxengine.service.replay.many import readings_of_file
from ctxengine.service.replay.models import LabModel
from ctxengine.service.replay.own import Play
from ctxengine.service.replay.wanted import ReplaySettings
from tests.cast import MODELS, PROVIDERS
from tests.corpus import FORMATS, transcripts

MOST_BYTES = 400_000
"""Larger files take too long for a gate."""
MOST_FILES = 4
"""Of each format."""
BUDGETS = (None, 24_000)
"""They take turns: with the model's whole window all turns stay as they were sent, in the small one passes close them."""
_WRITTEN_ANEW = frozenset({EventType.WORKING_SET_PLANNED, EventType.YIELD_APPLIED})
Pieces = list[tuple[str, bytes]]
Look = Callable[[MemoryLog, PlannedSet, Projection], None]


class SentSteps(NamedTuple):
    """What one run sent behind the prefix, piece by piece; cut where a decision wrote anew what had been sent."""

    plan: PlannedSet
    requests: list[Pieces]


def working_set_steps(folder: Path, look: Look) -> Iterator[tuple[str, list[SentSteps]]]:
    """For each conversation: its requests, run by run. Providers and budgets take turns.

    Args:
        look: is shown each plan and what it shows, when its first request has been built.
    """
    place = 0
    for format in FORMATS:
        small = [path for path in transcripts(folder, format) if path.stat().st_size <= MOST_BYTES]
        for path in small[:MOST_FILES]:
            for reading in readings_of_file(path):
                provider = PROVIDERS[place % len(PROVIDERS)]
                budget = BUDGETS[place % len(BUDGETS)]
                place += 1
                model = LabModel(provider, MODELS[provider])
                settings = ReplaySettings(budget=budget)
                task = task_of(
                    reading, "working_set", model, settings, at=datetime(2026, 1, 1, tzinfo=UTC)
                )
                yield path.name, _runs(task, look)


def _runs(task: Task, look: Look) -> list[SentSteps]:
    totals = CellTotals(
        engine=task.engine,
        model=task.model.name,
        provider=task.model.provider,
        budget=None,
        ttl=task.ttl,
        cost=None,
    )
    play, runs = Play(task, Cell(totals)), list[SentSteps]()
    for played in play.steps():
        if played.step is None:
            continue
        pieces = [(piece.role, piece.data) for piece in played.step.built.fragments]
        if not runs or any(draft.type in _WRITTEN_ANEW for draft in played.step.drafts):
            newest = play.lab.log.newest(EventType.WORKING_SET_PLANNED)
            shown = played.step.prepared.run.projection
            assert newest is not None and shown is not None
            runs.append(SentSteps(planned_of(newest.payload), []))
            look(play.lab.log, runs[-1].plan, shown)
        runs[-1].requests.append(pieces)
    return runs
