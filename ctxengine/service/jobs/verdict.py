"""What an error means for a job: try again after a while, or fail at once."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.db import InterfaceError, OperationalError

from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.service.jobs.kinds import UnknownKind
from ctxengine.service.jobs.stops import JobDelayed, JobFailed
from ctxengine.service.specs import ServiceError

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_LONGEST_ASKED_WAIT_S = 3600.0
_RACES = frozenset({"stale_head", "idempotency_in_progress"})
"""Refusals that say that somebody else was faster: the next try may win."""


class Verdict(NamedTuple):
    """What becomes of the attempt."""

    again: bool
    code: str
    detail: str
    retry_after_s: float | None = None


def verdict_on(error: Exception) -> Verdict:
    """Judge an error by its class. Its `detail` is safe to store: words of ours, never a foreign error's text."""
    match error:
        case JobDelayed():
            return Verdict(True, error.code, error.detail, error.retry_after_s)
        case JobFailed():
            return Verdict(False, error.code, error.detail)
        case ProviderError():
            return Verdict(error.retryable, error.code, error.detail, error.retry_after_s)
        case ServiceError():
            return Verdict(error.code in _RACES, error.code, error.detail)
        case UnknownKind():
            return Verdict(False, "unknown_kind", str(error))
        case OperationalError() | InterfaceError():
            return Verdict(True, "database_unavailable", "The database did not answer.")
        case ConnectionError() | TimeoutError():
            return Verdict(True, "transient", "A connection broke or took too long.")
        case _:
            kind = type(error).__name__
            return Verdict(False, "internal_error", f"A defect ({kind}); the log has its place.")


def wait_before(attempt: int, asked_s: float | None, job_id: UUID) -> float:
    """Seconds until the next try: doubling from one second, at least what the other side asked for.

    Part of the wait comes from the job's id, so that jobs that failed together do not come back together.
    """
    spread = 1.0 + (job_id.int % 256) / 1024
    wait: float = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(max(0, attempt - 1), 16)) * spread
    return max(wait, min(asked_s or 0.0, _LONGEST_ASKED_WAIT_S))
