"""Calls of our own to a provider, each with a row that says what it cost and how it went (design 7.14)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection

from ctxengine.engine.tokens.usage import Usage
from ctxengine.ledger.models import SideCallRow
from ctxengine.providers.adapters.contract import (
    Adapter,
    Cancelled,
    Completion,
    NativeWindow,
    Prompt,
    ProviderError,
    never_cancelled,
)
from ctxengine.providers.adapters.registry import adapter_for, compactor_for
from ctxengine.service.clock import utc_now
from ctxengine.service.prices import usage_cost
from ctxengine.service.usage import usage_json
from ctxengine.service.wiring import new_id

T = TypeVar("T")

COMPLETED = "completed"
_MOST_MODEL_CHARS = 200
_DATABASE_PATIENCE_S = 10.0
_DATABASE_REST_S = 0.3


def side_call(
    *,
    tenant_id: UUID,
    provider: str,
    prompt: Prompt,
    purpose: str,
    prompt_version: str = "",
    session_id: UUID | None = None,
    job_id: UUID | None = None,
    timeout_s: float,
    cancelled: Cancelled = never_cancelled,
) -> Completion:
    """Send a prompt and record the call, whatever comes of it. No transaction is held while it runs.

    Args:
        purpose: `summary`, `probe`, `count`, `note` or `compaction`.
        prompt_version: version of the prompt file, where the prompt came from one.
        timeout_s: seconds for the whole call.

    Raises:
        ProviderError: the call failed; the row carries its code.
    """
    row = _row(
        tenant_id,
        provider,
        prompt.model,
        purpose,
        prompt_version,
        session_id=session_id,
        job_id=job_id,
    )

    def send(adapter: Adapter) -> Completion:
        body = adapter.render(prompt)
        return adapter.send(body, timeout_s=timeout_s, cancelled=cancelled)

    return _recorded(row, send, lambda completion: completion.usage)


def counting_call(
    *,
    tenant_id: UUID,
    provider: str,
    body: dict[str, Any],
    session_id: UUID | None = None,
    job_id: UUID | None = None,
    timeout_s: float,
) -> int | None:
    """Ask the provider's counting endpoint for the input tokens of a wire body; None where it has none.

    Raises:
        ProviderError: it has one and it failed; the row carries its code.
    """
    model = str(body.get("model", ""))
    row = _row(tenant_id, provider, model, "count", "", session_id=session_id, job_id=job_id)
    return _recorded(row, lambda adapter: adapter.count(body, timeout_s=timeout_s), lambda _: None)


def exact_count_call(
    *,
    tenant_id: UUID,
    provider: str,
    body: dict[str, Any],
    session_id: UUID | None = None,
    job_id: UUID | None = None,
    timeout_s: float,
) -> int:
    """Input tokens of a body by the provider's own count.

    Raises:
        ProviderError: `count_unavailable` where it has none; otherwise why it failed. The row carries its code.
    """
    model = str(body.get("model", ""))
    row = _row(tenant_id, provider, model, "count", "", session_id=session_id, job_id=job_id)

    def count(adapter: Adapter) -> int:
        counted = adapter.count(body, timeout_s=timeout_s)
        if counted is None:
            raise ProviderError("count_unavailable", f"{provider} has no counting endpoint.")
        return counted

    return _recorded(row, count, lambda _: None)


def compaction_call(
    *,
    tenant_id: UUID,
    provider: str,
    body: dict[str, Any],
    session_id: UUID | None = None,
    job_id: UUID | None = None,
    timeout_s: float,
    run: Callable[[Callable[[], NativeWindow]], NativeWindow],
) -> NativeWindow:
    """Have the provider compact what a body holds, by its own contract.

    Args:
        run: carries the call out, so that a caller may let it go.

    Raises:
        ProviderError: `not_supported` where the provider has no such call; otherwise why it failed.
    """
    model = str(body.get("model", ""))
    row = _row(tenant_id, provider, model, "compaction", "", session_id=session_id, job_id=job_id)
    native = compactor_for(provider)

    def compact(_: Adapter) -> NativeWindow:
        return run(lambda: native.compact(body, timeout_s=timeout_s))

    return _recorded(row, compact, lambda window: window.usage)


def _row(
    tenant_id: UUID,
    provider: str,
    model: str,
    purpose: str,
    prompt_version: str,
    *,
    session_id: UUID | None,
    job_id: UUID | None,
) -> SideCallRow:
    return SideCallRow(
        tenant_id=tenant_id,
        id=new_id(),
        at=utc_now(),
        provider=provider,
        model=model[:_MOST_MODEL_CHARS],
        purpose=purpose,
        prompt_version=prompt_version,
        session_id=session_id,
        job_id=job_id,
    )


def _recorded(
    row: SideCallRow, call: Callable[[Adapter], T], usage_of: Callable[[T], Usage | None]
) -> T:
    start = time.monotonic()
    try:
        answer = call(adapter_for(row.provider))
    except BaseException as error:
        row.outcome = error.code if isinstance(error, ProviderError) else "interrupted"
        row.latency_ms = _milliseconds_since(start)
        _keep(row)
        raise
    row.outcome = COMPLETED
    row.latency_ms = _milliseconds_since(start)
    usage = usage_of(answer)
    if usage is not None:
        row.usage = {
            **usage_json(usage),
            "extra_input": usage.extra_input,
            "extra_output": usage.extra_output,
        }
        row.cost_microdollars = usage_cost(row.provider, row.model, usage, at=row.at)
    _keep(row)
    return answer


def _keep(row: SideCallRow) -> None:
    """Write the row. It stands for money spent, so a database that is away for a moment is waited for."""
    patience = time.monotonic() + _DATABASE_PATIENCE_S
    while True:
        try:
            row.save(force_insert=True)
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block or time.monotonic() > patience:
                raise
            connection.close()
            time.sleep(_DATABASE_REST_S)
        else:
            return


def _milliseconds_since(start: float) -> int:
    return round((time.monotonic() - start) * 1000)
