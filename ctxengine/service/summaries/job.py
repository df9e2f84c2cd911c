"""The job `compaction.summary`: read a head, ask the model without holding anything, install by compare-and-set (design 7.9).

A failure changes nothing but that it is told: as an event with its reason, and as the job's own error.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ctxengine.engine.compaction.compactor import Outcome
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.providers.adapters.contract import Completion, Prompt, ProviderError
from ctxengine.service.access import session_of
from ctxengine.service.compactors import WORDS
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobFailed
from ctxengine.service.side_calls import side_call
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.install import (
    Written,
    install,
    installed_by,
    record_refusal,
    spend_of,
    weighed,
)
from ctxengine.service.summaries.model_choice import Writer, may_write, writer_of
from ctxengine.service.summaries.prompts import SUMMARY
from ctxengine.service.summaries.state import look
from ctxengine.service.summaries.wanted import WantedSummary
from ctxengine.service.summaries.writer import ModelSummariser
from ctxengine.service.wiring import counter_of

CALL_SECONDS = 180.0
"""Longest one call to the writing model may take."""

_UNREACHABLE = frozenset({"no_key", "not_supported", "not_allowed"})


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
        self._summariser: ModelSummariser | None = None
        if context.job.session_id is None:
            raise JobFailed("not_found", "The job names no session.")
        try:
            self._session = session_of(context.actor, context.job.session_id)
            self._state = look(self._session, self._wanted)
        except ServiceError as error:
            raise JobFailed(error.code, error.detail) from error

    def run(self) -> dict[str, Any]:
        """Make and install."""
        if not self._state.serves(self._wanted):
            self._refuse(Refusal.SOURCE_CHANGED)
        plan = self._state.plan
        summariser = ModelSummariser(
            counter=counter_of(plan.provider, plan.model),
            choose=lambda input_tokens, output_tokens: writer_of(
                plan, input_tokens=input_tokens, output_tokens=output_tokens
            ),
            ask=self._ask,
            report=self._report,
        )
        self._summariser = summariser
        try:
            outcome = self._compacted(summariser)
        except ProviderError as error:
            self._failed(error)
        if outcome.refused is not None:
            self._refuse(outcome.refused)
        outcome = weighed(outcome, self._state, self._session, self._wanted)
        verdict = outcome.made[-1].verdict
        if verdict is not None and not (verdict.pays or self._wanted.forced):
            self._refuse(Refusal.DOES_NOT_PAY)
        return self._install(outcome, summariser)

    # --- making ---

    def _ask(self, writer: Writer, prompt: Prompt, version: str) -> Completion:
        self._context.check()
        if not may_write(writer.provider, session_provider=self._state.plan.provider):
            raise ProviderError(
                "not_allowed",
                f"{writer.provider} is not listed in CTX_SUMMARY_PROVIDERS and is not the session's own provider.",
            )
        return side_call(
            tenant_id=self._context.actor.tenant_id,
            provider=writer.provider,
            prompt=prompt,
            purpose="summary",
            prompt_version=version,
            session_id=self._session.id,
            job_id=self._context.job.id,
            timeout_s=CALL_SECONDS,
            cancelled=self._context.cancelled,
        )

    def _report(self, done: int, count: int) -> None:
        at = f"part {min(done + 1, count)} of {count}"
        self._context.progress(
            f"asking the model, {at}" if done < count else "checking",
            5 + 85 * done // max(1, count),
        )

    def _compacted(self, summariser: ModelSummariser) -> Outcome:
        compactor = self._state.compactor(summariser)
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

    def _install(self, outcome: Outcome, summariser: ModelSummariser) -> dict[str, Any]:
        self._context.check()
        self._context.progress("installing", 95)
        spend = spend_of(self._context.job)
        writer = summariser.writer
        if writer is None:
            self._refuse(Refusal.NO_SUMMARISER)
        facts = {
            "model": writer.label,
            "chosen": writer.why,
            "prompt": SUMMARY,
            "window": writer.window,
            "session_window": self._state.plan.window,
            "fragments": summariser.fragments,
            "job": str(self._context.job.id),
            **spend,
        }
        written = Written(self._context, self._session, self._wanted, self._state)
        if not install(written, outcome, facts):
            self._refuse(Refusal.SOURCE_CHANGED)
        return installed_by(self._state.log, self._context.job) or {}

    def _failed(self, error: ProviderError) -> NoReturn:
        """Let a passing failure be tried again; tell the log about one that stays."""
        last = self._context.lease.attempt >= self._context.job.max_attempts
        if error.code == "cancelled" or (error.retryable and not last):
            raise error
        refusal = Refusal.SUMMARISER_FAILED
        if error.code in _UNREACHABLE:
            refusal = Refusal.NO_SUMMARISER
        self._refuse(refusal, code=error.code, detail=error.detail)

    def _refuse(self, refusal: Refusal, *, code: str = "", detail: str = "") -> NoReturn:
        writer = self._summariser.writer if self._summariser else None
        asked = {
            "job": str(self._context.job.id),
            "model": writer.label if writer else "",
            "code": code,
            **spend_of(self._context.job),
        }
        written = Written(self._context, self._session, self._wanted, self._state)
        record_refusal(written, refusal, asked)
        raise JobFailed(code or refusal.value, detail or WORDS[refusal])
