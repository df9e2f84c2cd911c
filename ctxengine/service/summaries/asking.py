"""A job's way to the model that writes: its calls, what they cost, and what a failed one comes to (design 7.9 and 7.14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.models import SessionRow
from ctxengine.providers.adapters.contract import Completion, Prompt, ProviderError
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.side_calls import side_call
from ctxengine.service.summaries.install import spend_of
from ctxengine.service.summaries.model_choice import Writer, may_write, writer_of
from ctxengine.service.summaries.writer import ModelSummariser
from ctxengine.service.wiring import counter_of

CALL_SECONDS = 180.0
"""Longest one call to the writing model may take."""

_UNREACHABLE = frozenset({"no_key", "not_supported", "not_allowed"})


@dataclass(slots=True)
class Asking:
    """One attempt of one job, and the summariser that it has."""

    context: JobContext
    session: SessionRow
    plan: Plan
    summariser: ModelSummariser = field(init=False)

    def __post_init__(self) -> None:
        """Nobody is asked yet."""
        plan = self.plan
        self.summariser = ModelSummariser(
            counter=counter_of(plan.provider, plan.model),
            choose=lambda input_tokens, output_tokens: writer_of(
                plan, input_tokens=input_tokens, output_tokens=output_tokens
            ),
            ask=self._ask,
            report=self._report,
        )

    def facts(self, writer: Writer) -> dict[str, Any]:
        """Who wrote, from what, and for how much: what the event of a summary keeps under `writer`."""
        return {
            "model": writer.label,
            "chosen": writer.why,
            "prompt": self.summariser.prompt,
            "window": writer.window,
            "session_window": self.plan.window,
            "fragments": self.summariser.fragments,
            "job": str(self.context.job.id),
            **spend_of(self.context.job),
        }

    def asked(self, code: str) -> dict[str, Any]:
        """What the event of a refusal keeps of it."""
        writer = self.summariser.writer
        return {
            "job": str(self.context.job.id),
            "model": writer.label if writer else "",
            "code": code,
            **spend_of(self.context.job),
        }

    def refusal_of(self, error: ProviderError) -> Refusal:
        """What a failed call comes to; one that may pass is raised again, to be tried later."""
        last = self.context.lease.attempt >= self.context.job.max_attempts
        if error.code == "cancelled" or (error.retryable and not last):
            raise error
        return Refusal.NO_SUMMARISER if error.code in _UNREACHABLE else Refusal.SUMMARISER_FAILED

    def _ask(self, writer: Writer, prompt: Prompt, version: str) -> Completion:
        self.context.check()
        if not may_write(writer.provider, session_provider=self.plan.provider):
            raise ProviderError(
                "not_allowed",
                f"{writer.provider} is not listed in CTX_SUMMARY_PROVIDERS and is not the session's own provider.",
            )
        return side_call(
            tenant_id=self.context.actor.tenant_id,
            provider=writer.provider,
            prompt=prompt,
            purpose="summary",
            prompt_version=version,
            session_id=self.session.id,
            job_id=self.context.job.id,
            timeout_s=CALL_SECONDS,
            cancelled=self.context.cancelled,
        )

    def _report(self, done: int, count: int) -> None:
        at = f"part {min(done + 1, count)} of {count}"
        self.context.progress(
            f"asking the model, {at}" if done < count else "checking",
            5 + 85 * done // max(1, count),
        )
