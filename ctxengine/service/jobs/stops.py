"""Why a job stops before it is done. A kind's function raises these; anything else is judged by `verdict`."""

from __future__ import annotations


class JobStop(Exception):
    """Base of the reasons."""


class JobCancelled(JobStop):
    """Somebody asked for its end; what was begun is left as it was before."""


class LeaseLost(JobStop):
    """Another worker may have the job by now: this one writes nothing more of it."""


class JobFailed(JobStop):
    """It cannot succeed, however often it is tried.

    `code` is stable, `detail` is in our own words and safe to show.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class JobDelayed(JobStop):
    """It could not be done now and may be tried again, after `retry_after_s` seconds where that is known."""

    def __init__(self, code: str, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
