"""What our engines do in a session of the lab beside its steps: one driver each (design 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.inputs import Prepared, StepInputs

if TYPE_CHECKING:
    from ctxengine.service.replay.session import LabSession


class EngineDriver(Protocol):
    """One engine in one session."""

    def run_opened(self, lab: LabSession, run: str) -> None:
        """A run has begun: its message stands in the log, no step was taken yet."""
        ...

    def run_ended(self, lab: LabSession, run: str) -> None:
        """A run is over: its end stands in the log."""
        ...

    def before_step(self, lab: LabSession, run: str, wanted: StepInputs) -> bool:
        """A step is about to be prepared; gives whether something was appended for it."""
        ...

    def decision(self, lab: LabSession, run: str) -> int | None:
        """The event that holds the engine's decision in force for a run; None where there is none."""
        ...

    def relieve(
        self,
        lab: LabSession,
        run: str,
        wanted: StepInputs,
        projection: Projection | None,
        pressed: Prepared | BudgetExceeded,
    ) -> bool:
        """A step would shorten the run's own results, or does not fit; gives whether closed history was shrunk for it."""
        ...


class SuffixDriver:
    """`suffix` decides by allocation alone."""

    def run_opened(self, lab: LabSession, run: str) -> None:
        """Nothing to decide."""

    def run_ended(self, lab: LabSession, run: str) -> None:
        """Nothing to keep."""

    def before_step(self, lab: LabSession, run: str, wanted: StepInputs) -> bool:
        """Nothing is due."""
        return False

    def decision(self, lab: LabSession, run: str) -> int | None:
        """There is none."""
        return None

    def relieve(
        self,
        lab: LabSession,
        run: str,
        wanted: StepInputs,
        projection: Projection | None,
        pressed: Prepared | BudgetExceeded,
    ) -> bool:
        """The allocation has done what can be done."""
        return False


class RecordedDriver(SuffixDriver):
    """An engine whose decisions stand in the log as they were recorded: only which one is in force is asked."""

    def __init__(self, inner: EngineDriver) -> None:
        """Ask `inner` which decision is in force."""
        self._inner = inner

    def decision(self, lab: LabSession, run: str) -> int | None:
        """As the engine's own driver finds it."""
        return self._inner.decision(lab, run)
