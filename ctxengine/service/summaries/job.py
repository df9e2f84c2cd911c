"""The job `compaction.summary`: read a head, ask the model without holding anything, install by compare-and-set (design 7.9).

A failure changes nothing but that it is told: as an event with its reason, and as the job's own error.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ctxengine.engine.compaction.compactor import Outcome
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.service.access import session_of
from ctxengine.service.compactors import WORDS
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobFailed
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.asking import Asking
from ctxengine.service.summaries.install import (
    Written,
    install,
    installed_by,
    record_refusal,
    weighed,
)
from ctxengine.service.summaries.state import look
from ctxengine.service.summaries.wanted import WantedSummary


def run(context: JobContext) -> dict[str, Any]:
    """Make one summary and install it; the result names the event, the model and the spend.

    Raises:
        JobFailed: nothing was installed, and trying again would not help; the session's log says why.
        ProviderError: a call failed in a way that may pass.
    """
    return _Work(context).run()


class _Work:
    """One attempt."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._wanted = WantedSummary.model_validate(context.arguments)
        if context.job.session_id is None:
            raise JobFailed("not_found", "The job names no session.")
        try:
            self._session = session_of(context.actor, context.job.session_id)
            self._state = look(self._session, self._wanted)
        except ServiceError as error:
            raise JobFailed(error.code, error.detail) from error
        self._asking = Asking(context, self._session, self._state.plan)

    def run(self) -> dict[str, Any]:
        """Make and install."""
        if not self._state.serves(self._wanted):
            self._refuse(Refusal.SOURCE_CHANGED)
        try:
            outcome = self._compacted()
        except ProviderError as error:
            self._failed(error)
        if outcome.refused is not None:
            self._refuse(outcome.refused)
        outcome = weighed(outcome, self._state, self._session, self._wanted)
        verdict = outcome.made[-1].verdict
        if verdict is not None and not (verdict.pays or self._wanted.forced):
            self._refuse(Refusal.DOES_NOT_PAY)
        return self._install(outcome)

    # --- making ---

    def _compacted(self) -> Outcome:
        compactor = self._state.compactor(self._asking.summariser)
        if compactor is None:
            return Outcome(refused=Refusal.SOURCE_CHANGED)
        standing = self._state.standing
        if self._wanted.merge:
            parts = [packet for packet in standing.packets if self._wanted.covers(packet)]
            merged = compactor.merge(parts, standing.results, self._wanted.body_tokens)
            return Outcome(refused=merged) if isinstance(merged, Refusal) else Outcome((merged,))
        return compactor.compact(
            self._wanted.range,
            [packet for packet in standing.packets if packet.through < self._wanted.first],
            standing.results,
            self._wanted.body_tokens,
        )

    # --- ending ---

    def _install(self, outcome: Outcome) -> dict[str, Any]:
        self._context.check()
        self._context.progress("installing", 95)
        writer = self._asking.summariser.writer
        if writer is None:
            self._refuse(Refusal.NO_SUMMARISER)
        facts = self._asking.facts(writer)
        written = Written(self._context, self._session, self._wanted, self._state)
        if not install(written, outcome, facts):
            self._refuse(Refusal.SOURCE_CHANGED)
        return installed_by(self._state.log, self._context.job) or {}

    def _failed(self, error: ProviderError) -> NoReturn:
        """Let a passing failure be tried again; tell the log about one that stays."""
        self._refuse(self._asking.refusal_of(error), code=error.code, detail=error.detail)

    def _refuse(self, refusal: Refusal, *, code: str = "", detail: str = "") -> NoReturn:
        written = Written(self._context, self._session, self._wanted, self._state)
        record_refusal(written, refusal, self._asking.asked(code))
        raise JobFailed(code or refusal.value, detail or WORDS[refusal])
