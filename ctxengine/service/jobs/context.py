"""What a running job knows of itself: its arguments, how to report progress, and whether it should go on."""

from __future__ import annotations

import threading
import time
from typing import Any

from django.db.models.functions import Now

from ctxengine.ledger.models import Job, JobState
from ctxengine.service.jobs.lease import Lease, log_line, log_with
from ctxengine.service.jobs.stops import JobCancelled, LeaseLost
from ctxengine.service.specs import Actor

ASKED_BY = "asked_by"
"""The argument that `enqueue` adds: the label of who asked."""


class JobContext:
    """The running attempt of a job, as its function sees it.

    Progress and log lines are written by the heartbeat on a connection of its own: a function inside a transaction neither
    hides them until its commit nor locks its own row.
    """

    def __init__(self, job: Job, lease: Lease, *, beats: bool) -> None:
        """Wrap an attempt.

        Args:
            job: the row as it was when the lease was taken.
            lease: the hold on it.
            beats: whether a heartbeat writes what is reported; otherwise each report is written at once.
        """
        self.job = job
        self.lease = lease
        self._beats = beats
        self._lock = threading.Lock()
        self._reported: dict[str, Any] = {}
        self._lines: list[dict[str, str]] = []
        self._cancel_asked = False
        self._lost = False
        self._valid_until = time.monotonic() + lease.seconds

    @property
    def actor(self) -> Actor:
        """Whoever asked for the job, acting for its tenant."""
        return Actor(self.job.tenant_id, str(self.job.arguments.get(ASKED_BY) or "system"))

    @property
    def arguments(self) -> dict[str, Any]:
        """What the job was given."""
        return {name: value for name, value in self.job.arguments.items() if name != ASKED_BY}

    def progress(self, phase: str, percent: int) -> None:
        """Say how far it is, 0 to 100."""
        with self._lock:
            self._reported = {"phase": phase, "percent": max(0, min(100, percent))}
        self._written_at_once()

    def note(self, text: str) -> None:
        """Add a line to the job's log: ids and figures, never content."""
        with self._lock:
            self._lines.append(log_line(text))
        self._written_at_once()

    def cancelled(self) -> bool:
        """Whether the work should stop, because somebody asked for that or the lease is lost."""
        self._written_at_once()
        return self._cancel_asked or self._gone()

    def cancelled_by_somebody(self) -> bool:
        """Whether an end was asked for, as last read."""
        return self._cancel_asked

    def check(self) -> None:
        """Go on only if the work is still wanted and still ours. Call it between the parts of long work.

        Raises:
            LeaseLost: another worker has the job, or may have.
            JobCancelled: somebody asked for its end.
        """
        self._written_at_once()
        if self._gone():
            raise LeaseLost
        if self._cancel_asked:
            raise JobCancelled

    def hold(self) -> None:
        """Inside the transaction that writes what the job made: keep the job ours until the commit.

        Raises:
            LeaseLost: another worker has it; the transaction must not commit.
        """
        self.lease.lock()

    def conclude(self, result: dict[str, Any]) -> None:
        """At the end of the transaction that writes what the job made: write its outcome with it.

        Both stand or neither does, so that a worker that dies right after the commit leaves a job that is done.

        Args:
            result: ids and figures, never content.

        Raises:
            LeaseLost: another worker has the job; the transaction must not commit.
            JobCancelled: somebody asked for its end; the transaction must not commit.
        """
        self.hold()
        if self.lease.rows().filter(cancel_asked=True).exists():
            raise JobCancelled
        reported = self.take_reported()
        reported.lines.append(log_line("Done."))
        self.lease.write(
            **reported.as_update()
            | {
                "state": JobState.DONE,
                "percent": 100,
                "result": result,
                "error": {},
                "lease_until": None,
                "finished_at": Now(),
            }
        )

    # --- for the heartbeat and the runner ---

    def unwritten(self) -> bool:
        """Whether something was reported that is not written yet."""
        with self._lock:
            return bool(self._reported or self._lines)

    def flush(self) -> None:
        """Renew the lease and write what was reported."""
        fields = self.take_reported()
        try:
            asked = self.lease.renew(**fields.as_update())
        except Exception:
            self._put_back(fields)
            raise
        self._valid_until = time.monotonic() + self.lease.seconds
        if asked is None:
            self._lost = True
        else:
            self._cancel_asked = asked

    def take_reported(self) -> Reported:
        """What is not written yet, and from now on the caller's to write."""
        with self._lock:
            taken = Reported(self._reported, self._lines)
            self._reported, self._lines = {}, []
        return taken

    def _put_back(self, taken: Reported) -> None:
        with self._lock:
            self._reported = taken.fields | self._reported
            self._lines = taken.lines + self._lines

    def _written_at_once(self) -> None:
        if not self._beats:
            self.flush()

    def _gone(self) -> bool:
        return self._lost or time.monotonic() > self._valid_until


class Reported:
    """Progress and log lines on their way to the row."""

    def __init__(self, fields: dict[str, Any], lines: list[dict[str, str]]) -> None:
        self.fields = fields
        self.lines = lines

    def as_update(self) -> dict[str, Any]:
        """As values for an update of the row."""
        return {**self.fields, **({"log": log_with(self.lines)} if self.lines else {})}
