"""Waiting a while for a job to end, for doors that would rather answer whole than with a job."""

from __future__ import annotations

import time

from ctxengine.ledger.models import Job, JobState

FINAL = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})
_FIRST_REST_S = 0.05
_LONGEST_REST_S = 0.5


def wait_for(job: Job, seconds: float) -> Job:
    """The job's row once it has ended, or as it stands after `seconds`. Never call it inside a transaction."""
    deadline = time.monotonic() + seconds
    rest = _FIRST_REST_S
    while True:
        row = Job.objects.get(tenant_id=job.tenant_id, id=job.id)
        left = deadline - time.monotonic()
        if row.state in FINAL or left <= 0:
            return row
        time.sleep(min(rest, left))
        rest = min(_LONGEST_REST_S, rest * 1.5)
