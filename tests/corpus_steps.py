"""The corpus in the lab, request by request: what a `working_set` session of each transcript would have sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

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
Pieces = list[tuple[str, bytes]]


def working_set_steps(folder: Path) -> Iterator[tuple[str, list[list[Pieces]]]]:
    """For each conversation: the pieces of every request behind the prefix, run by run. Providers take turns."""
    place = 0
    for format in FORMATS:
        small = [path for path in transcripts(folder, format) if path.stat().st_size <= MOST_BYTES]
        for path in small[:MOST_FILES]:
            for reading in readings_of_file(path):
                provider = PROVIDERS[place % len(PROVIDERS)]
                place += 1
                model = LabModel(provider, MODELS[provider])
                settings = ReplaySettings()
                task = task_of(
                    reading, "working_set", model, settings, at=datetime(2026, 1, 1, tzinfo=UTC)
                )
                yield path.name, _runs(task)


def _runs(task: Task) -> list[list[Pieces]]:
    totals = CellTotals(
        engine=task.engine,
        model=task.model.name,
        provider=task.model.provider,
        budget=None,
        ttl=task.ttl,
        cost=None,
    )
    runs: dict[int, list[Pieces]] = {}
    for played in Play(task, Cell(totals)).steps():
        if played.step is not None:
            pieces = [(piece.role, piece.data) for piece in played.step.built.fragments]
            runs.setdefault(played.figures.turn, []).append(pieces)
    return list(runs.values())
