"""One cell of the lab: one engine on one model over one transcript."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ctxengine.engine.cache.cost import CostModel
from ctxengine.engine.cache.predict import Prediction
from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.cache.ttl import advise_ttl
from ctxengine.engine.cache.warnings import cache_warnings
from ctxengine.engine.fidelity.view import Fidelity
from ctxengine.engine.wire.markers import Ttl
from ctxengine.service.cost_model import cost_model_today
from ctxengine.service.replay.clocked import Clock, clock_of
from ctxengine.service.replay.engines import lab_engine
from ctxengine.service.replay.figures import Cell, CellTotals, ReplayStep
from ctxengine.service.replay.lab_plan import window_of
from ctxengine.service.replay.models import LabModel
from ctxengine.service.replay.reading import Reading
from ctxengine.service.replay.wanted import ReplaySettings

Seen = Callable[[int, int], None]
"""Told after each step: how many are done, of how many."""
_GAPS = 20


@dataclass(frozen=True, slots=True)
class Task:
    """What one cell is made from."""

    reading: Reading
    engine: str
    model: LabModel
    settings: ReplaySettings
    clock: Clock
    prices: CostModel | None
    ttl: Ttl

    def weigh(self, expected: Prediction, rules: CacheRules) -> tuple[int | None, float]:
        """Input cost in millionths of a dollar, and in tokens at the full price."""
        long = self.ttl == "1h" and rules.long_life is not None
        write = rules.long_write_percent if long else rules.write_percent
        weight = (
            expected.fresh + expected.read * rules.read_percent / 100 + expected.write * write / 100
        )
        if self.prices is None:
            return None, weight
        prompt = expected.read + expected.write + expected.fresh
        cost = (
            self.prices.input_microdollars(expected.fresh, prompt_tokens=prompt)
            + self.prices.read_microdollars(expected.read, prompt_tokens=prompt)
            + self.prices.write_microdollars(expected.write, prompt_tokens=prompt, long=long)
        )
        return cost, weight

    def warnings(self, expected: Prediction, rules: CacheRules, number: int) -> tuple[str, ...]:
        """What the cache gives reason to say of one step."""
        times = self.clock.times
        gaps = [times[n] - times[n - 1] for n in range(max(1, number - _GAPS + 1), number + 1)]
        gap = gaps[-1] if gaps else None
        advice = advise_ttl(gaps, rules)
        return tuple(cache_warnings(expected, rules=rules, advice=advice, gap=gap, life=self.ttl))


def task_of(
    reading: Reading, engine: str, model: LabModel, settings: ReplaySettings, *, at: datetime
) -> Task:
    """Everything a cell needs.

    Args:
        at: the day whose prices apply.

    Raises:
        ServiceError: 422 `unknown_engine`.
    """
    lab_engine(engine)
    return Task(
        reading=reading,
        engine=engine,
        model=model,
        settings=settings,
        clock=clock_of(reading.source.beats, turn_gap=settings.turn_gap),
        prices=cost_model_today(model.provider, model.name, at=at),
        ttl=settings.ttl or _recorded_ttl(reading) or "5m",
    )


def _recorded_ttl(reading: Reading) -> Ttl | None:
    recorded = (beat.inputs for beat in reading.source.beats if beat.inputs is not None)
    newest = next(recorded, None)
    return newest.history_ttl if newest is not None else None


def replay_cell(
    reading: Reading,
    engine: str,
    model: LabModel,
    settings: ReplaySettings,
    *,
    at: datetime | None = None,
    seen: Seen | None = None,
    keep_steps: bool = True,
) -> Cell:
    """Replay one transcript under one engine on one model.

    Args:
        at: the day whose prices apply; today where it is left out.
        keep_steps: whether the steps are kept beside the totals.

    Raises:
        ServiceError: 422 `unknown_engine`.
    """
    from ctxengine.service.replay.own import played_by_engine
    from ctxengine.service.replay.peer import played_by_peer

    task = task_of(reading, engine, model, settings, at=at or datetime.now(UTC))
    cell = Cell(
        CellTotals(
            engine=engine,
            model=model.name,
            provider=model.provider,
            budget=settings.budget,
            window=window_of(reading.source.plan, model, settings).window,
            ttl=task.ttl,
            cost=0 if task.prices is not None else None,
        )
    )
    began = time.perf_counter()
    play = played_by_engine if lab_engine(engine).driver is not None else played_by_peer
    _count(cell, play(task, cell), len(task.clock.times), seen, keep_steps=keep_steps)
    cell.totals.seconds = time.perf_counter() - began
    cell.totals.clocks[task.clock.source] += 1
    cell.totals.sessions += 1
    return cell


def _count(
    cell: Cell,
    played: Iterator[tuple[ReplayStep, Fidelity]],
    total: int,
    seen: Seen | None,
    *,
    keep_steps: bool,
) -> None:
    for done, (step, fidelity) in enumerate(played, start=1):
        cell.totals.take(step, fidelity)
        if keep_steps:
            cell.steps.append(step)
        if seen is not None:
            seen(done, total)
    if not (cell.skipped or cell.totals.steps or cell.totals.refused):
        cell.skipped = "Whenever a model was asked, calls still waited or nothing had been said."
    if cell.skipped:
        cell.totals.skipped_sessions += 1
        cell.totals.skips[cell.skipped] += 1


def gap_before(times: Sequence[float], number: int) -> float:
    """Seconds between a step and the one before it; 0 for the first."""
    return times[number] - times[number - 1] if number else 0.0
