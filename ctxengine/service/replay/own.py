"""A cell of one of our own engines: the real plan, allocation, build and markers, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.errors import BudgetExceeded, EngineError
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.fidelity.view import Fidelity, ViewReader, judged, nothing_shown
from ctxengine.engine.layout import ROWS
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.control.recall import MAX_CHARS
from ctxengine.service.plans import plan_draft
from ctxengine.service.replay.boundary import STAND_IN
from ctxengine.service.replay.cell import Task, gap_before
from ctxengine.service.replay.drivers import EngineDriver, RecordedDriver
from ctxengine.service.replay.engines import lab_engine
from ctxengine.service.replay.figures import Cell, ReplayStep
from ctxengine.service.replay.from_ledger import key_of
from ctxengine.service.replay.lab_plan import as_it_was, lab_plan
from ctxengine.service.replay.session import LabSession, LabStep
from ctxengine.service.replay.source import Beat, Source

_ACTS_ON_HISTORY = frozenset(
    {
        EventType.PRESENTATION_SET,
        EventType.COMPACTED,
        EventType.COMPACTION_UNDONE,
        EventType.COMPACTION_REFUSED,
        EventType.YIELD_APPLIED,
    }
)
"""Acts that name places of the log: under another configuration those are other places, and the acts are left out."""
_DECIDED_ANEW = frozenset(
    {
        EventType.TURN_CLOSED,
        EventType.WORKING_SET_PLANNED,
        EventType.BOUNDARY_STARTED,
        EventType.BOUNDARY_FINISHED,
        EventType.BOUNDARY_FRAGMENT,
    }
)
"""What an engine writes by itself: under another configuration it comes to its own."""
_CLASS_OF_ROW = {row.number: row.budget_class.value for row in ROWS}


def played_by_engine(task: Task, cell: Cell) -> Iterator[tuple[ReplayStep, Fidelity]]:
    """Every step of a cell; where nothing can be replayed, `cell.skipped` says why."""
    for played in Play(task, cell).steps():
        yield played.figures, played.fidelity


@dataclass(frozen=True, slots=True)
class Played:
    """One step as it was played; `step` is None where no request could be built."""

    figures: ReplayStep
    fidelity: Fidelity
    step: LabStep | None


class Play:
    """Plays a source's beats into a session of the lab."""

    def __init__(self, task: Task, cell: Cell) -> None:
        """Prepare; nothing happens before `steps` is walked."""
        self.task, self.cell = task, cell
        self.source: Source = task.reading.source
        made = lab_engine(task.engine).driver
        if made is None:
            msg = f"{task.engine} is a peer policy: it builds no request."
            raise ValueError(msg)
        self._driver: EngineDriver = made()
        if task.engine == "boundary":
            cell.notes.append(STAND_IN)
        self._run = ""
        self._turn = 0
        self._left_out = 0
        self.faithful = False
        """Whether every byte is to be as it was sent."""

    def steps(self) -> Iterator[Played]:
        """Play from the beginning."""
        try:
            plan = self._plan(self.source.plan)
        except EngineError as error:
            self.cell.skipped = f"{error.code}: {error.message}"
            return
        self.faithful = as_it_was(
            self.source, self.source.plan, self.task.engine, self.task.model, self.task.settings
        )
        if self.faithful:
            self._driver = RecordedDriver(self._driver)
        self.cell.notes.extend(plan.warnings)
        self.lab = LabSession(
            self.source,
            plan,
            session_key=key_of(self.source),
            prices=self.task.prices,
            history_ttl=self.task.settings.ttl,
            driver=self._driver,
        )
        self._reader = ViewReader(self.lab.place_of, MAX_CHARS)
        if not self.source.live:
            self.lab.append([_opened(), plan_draft(plan)])
        number = 0
        for beat in self.source.beats:
            if beat.kind != "step":
                self._take(beat)
                continue
            played = self._step(beat, number)
            number += 1
            if played is not None:
                yield played
        if self._left_out:
            self.cell.notes.append(
                f"{self._left_out} acts on single places of the log are left out: under another engine, model or budget those "
                "are other places."
            )

    def _plan(self, recorded: Plan | None) -> Plan:
        task = self.task
        return lab_plan(self.source, recorded, task.engine, task.model, task.settings)

    def _take(self, beat: Beat) -> None:
        if beat.kind == "message":
            self._hear(beat)
        elif beat.kind == "plan":
            if beat.type is EventType.EPOCH_ROTATED:
                self.lab.use(self._plan(beat.plan))
            self.lab.copy(beat)
        elif not self.faithful and beat.type in _DECIDED_ANEW:
            return
        elif not self.faithful and beat.type in _ACTS_ON_HISTORY:
            self._left_out += 1
        else:
            self.lab.copy(beat)
            if beat.type is EventType.RUN_ENDED:
                self._driver.run_ended(self.lab, beat.run)

    def _hear(self, beat: Beat) -> None:
        if beat.opens_run:
            if self._run and not self.source.live:
                self._end_run()
            self._run, self._turn = beat.run, self._turn + 1
        try:
            self.lab.hear(beat)
        except ContentError as error:
            self.cell.notes.append(f"A message at place {beat.place} is left out: {error}")
            return
        if beat.opens_run:
            self._driver.run_opened(self.lab, beat.run)

    def _end_run(self) -> None:
        payload = {"outcome": "completed", "opaque_dropped": 0}
        ended = EventDraft(
            type=EventType.RUN_ENDED, trust=Trust.PLATFORM, run=self._run, payload=payload
        )
        self.lab.append([ended])
        self._driver.run_ended(self.lab, self._run)

    def _step(self, beat: Beat, number: int) -> Played | None:
        if self.lab.waiting or not self.lab.log.head().content_sequence:
            return None
        now = self.task.clock.times[number]
        answer = self.task.reading.answer_of[number]
        uses = self.task.reading.uses.get(answer, ()) if answer is not None else ()
        try:
            step = self.lab.step(beat, now)
        except EngineError as error:
            return Played(self._refused(number, now, error), nothing_shown(uses), None)
        fidelity = judged(uses, self._reader.view(step.built))
        return Played(self._figures(number, now, step, fidelity), fidelity, step)

    def _refused(self, number: int, now: float, error: EngineError) -> ReplayStep:
        return ReplayStep(
            number=number + 1,
            turn=self._turn,
            at=now,
            gap=gap_before(self.task.clock.times, number),
            tokens=0,
            by_class={},
            read=0,
            written=0,
            fresh=0,
            cost=0,
            weight=0.0,
            why="",
            refused=error.code,
            refused_for=_refused_for(error),
            warnings=(error.message,),
        )

    def _figures(self, number: int, now: float, step: LabStep, fidelity: Fidelity) -> ReplayStep:
        built, expected = step.built, step.expected
        cost, weight = self.task.weigh(expected, self.lab.rules)
        yields = tuple(y.budget_class for y in built.manifest.yields if y.outcome == "ran")
        return ReplayStep(
            number=number + 1,
            turn=self._turn,
            at=now,
            gap=gap_before(self.task.clock.times, number),
            tokens=expected.read + expected.write + expected.fresh,
            by_class=_by_class(built),
            read=expected.read,
            written=expected.write,
            fresh=expected.fresh,
            cost=cost,
            weight=weight,
            why=expected.why,
            yields=yields,
            compactions=_compactions(step),
            fidelity=fidelity.as_json(),
            markers=tuple(f"{marker.name} {marker.ttl}" for marker in built.markers),
            warnings=(
                *self.task.warnings(expected, self.lab.rules, number),
                *built.manifest.warnings,
            ),
            request_sha256=built.request_sha256,
        )


def _refused_for(error: EngineError) -> str:
    return str(error.numbers["budget_class"]) if isinstance(error, BudgetExceeded) else ""


def _compactions(step: LabStep) -> int:
    """How often history gave way since the request before: each cut, summary or change of the turns' forms."""
    cuts = sum(r.budget_class is BudgetClass.HISTORY for r in step.prepared.allocation.raises)
    made = sum(draft.type is EventType.COMPACTED for draft in step.drafts)
    planned = [d for d in step.drafts if d.type is EventType.WORKING_SET_PLANNED]
    reshaped = any(draft.payload["rewritten"] for draft in planned)
    return max(cuts, made, int(reshaped))


def _by_class(built: ModelRequest) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in built.manifest.rows:
        if row.tokens:
            name = _CLASS_OF_ROW[row.row]
            found[name] = found.get(name, 0) + row.tokens
    return found


def _opened() -> EventDraft:
    """The first event of a transcript's log."""
    return EventDraft(type=EventType.SESSION_OPENED, trust=Trust.PLATFORM, payload={})
