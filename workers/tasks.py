"""The one task: run the job that a message names, if it is due."""

from __future__ import annotations

import os
import socket
from uuid import UUID

from ctxengine.service.jobs.run import run_job
from workers.app import app

RUN_JOB = "ctxengine.run_job"


@app.task(name=RUN_JOB)  # type: ignore[untyped-decorator]
def run(tenant: str, job: str) -> str:
    """Run it, and say how the attempt ended. A second message for the same job does nothing."""
    return run_job(UUID(tenant), UUID(job), f"{socket.gethostname()}:{os.getpid()}")
