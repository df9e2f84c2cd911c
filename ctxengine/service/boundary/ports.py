"""Providers behind the engine's ports: native compaction and notes, each call recorded, each error typed.

No call has a deadline of ours: a healthy one may take as long as it takes, and a cancelled one is let go (boundary spec).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar
from uuid import UUID

from ctxengine.engine.boundary.failures import FAILURE_OF, MENDED_OUTSIDE, CompactionError
from ctxengine.engine.boundary.note import NoteAnswer
from ctxengine.engine.boundary.work import NativeAnswer, Work
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.providers.adapters.contract import (
    Cancelled,
    Prompt,
    PromptMessage,
    ProviderError,
    Stop,
    never_cancelled,
)
from ctxengine.providers.adapters.registry import adapter_for, compactor_for
from ctxengine.service.side_calls import compaction_call, exact_count_call, side_call
from ctxengine.service.summaries.model_choice import Writer, may_write, writer_of
from ctxengine.service.summaries.prompts import BOUNDARY_NOTE, system_prompt
from ctxengine.service.wiring import counter_of

NO_DEADLINE_S = 7 * 86_400.0
"""Seconds. HTTP clients want a figure; this one ends no healthy call."""
COUNT_S = 60.0
"""Seconds that one count may take."""
_POLL_S = 0.05
_NO_SUCH_CALL = frozenset({404, 405, 501})
"""Statuses of an endpoint that knows only a part of its provider's API."""
_CODES = {
    "no_key": "missing_configuration",
    "not_allowed": "missing_configuration",
    "not_supported": "native_unsupported",
}

T = TypeVar("T")


class _Who(TypedDict):
    """For whom a call is made."""

    tenant_id: UUID
    session_id: UUID
    job_id: UUID | None


def typed(error: ProviderError) -> CompactionError:
    """A provider's failure as the engine's: the most exact code there is, never the provider's text."""
    named = error.detail.replace(",", " ").replace(":", " ").split()
    exact = next(
        (word for word in named if word in FAILURE_OF and word.startswith("compaction")), ""
    )
    if error.code == "not_allowed" and error.status is not None:
        # An address that may be called, and points elsewhere: something was sent.
        return CompactionError("redirected")
    code = exact or _CODES.get(error.code, error.code)
    return CompactionError(code, retry_after_s=error.retry_after_s)


def reachable(provider: str) -> None:
    """See that the provider could be asked to compact and to count; nothing is sent.

    Raises:
        CompactionError: it could not.
    """
    try:
        compactor_for(provider)
    except ProviderError as error:
        raise typed(error) from None


def note_writer(work: Work) -> Writer:
    """The model that would write a note; nothing is sent.

    Raises:
        CompactionError: `missing_configuration` where it may not or cannot be called.
    """
    plan = work.session.plan
    writer = chosen_writer(work)
    if not may_write(writer.provider, session_provider=plan.provider):
        raise CompactionError("missing_configuration")
    try:
        adapter_for(writer.provider)
    except ProviderError as error:
        raise typed(error) from None
    return writer


def chosen_writer(work: Work) -> Writer:
    """The model that the policy wants for a note, whether it can be called or not."""
    return writer_of(
        work.session.plan,
        input_tokens=work.covered.tokens,
        output_tokens=work.session.plan.policy.summary_max_output_tokens,
    )


def at_work(error: CompactionError) -> CompactionError:
    """What a failure means once an operation has begun: its asker could call, so what is missing the worker lacks."""
    return CompactionError("worker_unconfigured") if error.reason in MENDED_OUTSIDE else error


def uncallable(work: Work, *, native: bool) -> CompactionError | None:
    """Why nobody can be asked to make this compaction now; None where somebody can. Nothing is sent."""
    try:
        if native:
            reachable(work.session.plan.provider)
        else:
            note_writer(work)
    except CompactionError as error:
        return error
    return None


class ServiceNative:
    """Native compaction of a session's own provider."""

    def __init__(
        self,
        *,
        tenant_id: UUID,
        session_id: UUID,
        job_id: UUID | None,
        plan: Plan,
        cancelled: Cancelled = never_cancelled,
    ) -> None:
        """For one operation."""
        self._who = _Who(tenant_id=tenant_id, session_id=session_id, job_id=job_id)
        self._plan = plan
        self._cancelled = cancelled

    def count(self, body: bytes) -> int:
        """Exact input tokens of a body."""
        try:
            return exact_count_call(
                **self._who, provider=self._plan.provider, body=json.loads(body), timeout_s=COUNT_S
            )
        except ProviderError as error:
            if error.code == "over_length":
                raise CompactionError("native_input_oversized") from None
            if error.code == "count_unavailable" or error.retryable or _unserved(error):
                # Without an endpoint there never will be a count; one that is down or busy may come back.
                raise CompactionError(
                    "count_unavailable",
                    retry_after_s=error.retry_after_s,
                    retryable=error.retryable,
                ) from None
            raise typed(error) from None

    def compact(self, body: bytes) -> NativeAnswer:
        """The provider's window for what the body holds."""
        asked = json.loads(body)

        def call() -> NativeAnswer:
            made = compaction_call(
                **self._who,
                provider=self._plan.provider,
                body=asked,
                timeout_s=NO_DEADLINE_S,
                run=lambda send: _until_cancelled(send, self._cancelled),
            )
            return NativeAnswer(made.items, made.stop_raw)

        try:
            return call()
        except ProviderError as error:
            if _unserved(error) and not _misses_the_model(self._plan.provider, error):
                raise CompactionError("native_unsupported") from None
            raise typed(error) from None


class ServiceNotes:
    """A note's writer: the session's own provider, or the one that its policy names."""

    counter: TokenCounter

    def __init__(
        self,
        work: Work,
        *,
        tenant_id: UUID,
        session_id: UUID,
        job_id: UUID | None,
        kept: Callable[[int, int, str], str | None],
        keep: Callable[[int, int, str, str], None],
        cancelled: Cancelled = never_cancelled,
    ) -> None:
        """Choose the writer.

        Args:
            kept: looks a partial note up by place, number of fragments and writer.
            keep: stores one.

        Raises:
            CompactionError: `missing_configuration` where no model can be called.
        """
        plan = work.session.plan
        self._output = plan.policy.summary_max_output_tokens
        self.writer = note_writer(work)
        self._who = _Who(tenant_id=tenant_id, session_id=session_id, job_id=job_id)
        self._kept, self._keep = kept, keep
        self._cancelled = cancelled
        self.counter = counter_of(self.writer.provider, self.writer.model)
        self._system = system_prompt(BOUNDARY_NOTE, self._output)

    @property
    def version(self) -> str:
        """Who writes, told by which prompt."""
        return f"{self.writer.label} {BOUNDARY_NOTE}"

    def room(self) -> int:
        """Tokens of one source."""
        return max(1, self.writer.room(self._answer) - self.counter.text(self._system) - 64)

    def limit(self) -> int:
        """Tokens of a whole prompt."""
        return max(1, self.writer.window - self._answer)

    @property
    def _answer(self) -> int:
        return min(self._output, self.writer.max_output)

    def count(self, lines: str) -> int | None:
        """Exact tokens of the whole prompt, where the writer's provider counts."""
        try:
            adapter = adapter_for(self.writer.provider)
            body = adapter.render(self._prompt(lines))
            return exact_count_call(
                **self._who, provider=self.writer.provider, body=body, timeout_s=COUNT_S
            )
        except ProviderError:
            # An unavailable count is no failure of a note: its source is then read in fragments by our own count.
            return None

    def kept(self, place: int, of: int) -> str | None:
        """A partial note of an earlier attempt."""
        return self._kept(place, of, self.version)

    def keep(self, place: int, of: int, text: str) -> None:
        """Store a partial note."""
        self._keep(place, of, self.version, text)

    def write(self, lines: str) -> NoteAnswer:
        """Ask for a note."""
        try:
            said = side_call(
                **self._who,
                provider=self.writer.provider,
                prompt=self._prompt(lines),
                purpose="note",
                prompt_version=BOUNDARY_NOTE,
                timeout_s=NO_DEADLINE_S,
                cancelled=self._cancelled,
            )
        except ProviderError as error:
            raise typed(error) from None
        stop = "end" if said.stop is Stop.END else said.stop.value
        return NoteAnswer(said.text, "end" if said.calls else stop, len(said.calls))

    def _prompt(self, lines: str) -> Prompt:
        return Prompt(
            model=self.writer.model,
            messages=(PromptMessage("user", lines),),
            system=self._system,
            max_output_tokens=self._answer,
        )


def _unserved(error: ProviderError) -> bool:
    """Whether the address that was called serves no such call at all."""
    return error.status in _NO_SUCH_CALL and "model_not_found" not in error.detail


def _misses_the_model(provider: str, error: ProviderError) -> bool:
    """Whether a 404 is Anthropic's own: it compacts where it takes messages, so that what it has not found is the model."""
    return PROVIDER_API[provider] is WireApi.ANTHROPIC and "not_found_error" in error.detail


def _until_cancelled(send: Callable[[], T], cancelled: Cancelled) -> T:
    """Wait for a call that cannot be interrupted, and let it go when its end is asked for."""
    done: dict[str, Any] = {}

    def work() -> None:
        try:
            done["answer"] = send()
        except BaseException as error:
            done["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    asked = time.monotonic()
    while thread.is_alive():
        thread.join(_POLL_S)
        if time.monotonic() - asked > 1.0:
            asked = time.monotonic()
            if cancelled():
                raise ProviderError("cancelled", "The compaction was cancelled.")
    if "error" in done:
        raise done["error"]
    answer: T = done["answer"]
    return answer
