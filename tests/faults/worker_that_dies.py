"""The worker's application, with the places at which a test lets it die: `celery -A tests.faults.worker_that_dies worker`."""

from __future__ import annotations

from typing import Any

import django

django.setup()

from tests.faults import deaths  # noqa: E402
from workers import tasks  # noqa: E402
from workers.app import app  # noqa: E402

__all__ = ["app"]

deaths.install("ctxengine.service.jobs.run:take_lease", "ctxengine.service.jobs.run:_end")
deaths.bend_clock()
_run_job = tasks.run_job


def run_job(*arguments: Any, **options: Any) -> Any:
    """Run a job, unless a test wants it otherwise."""
    deaths.begin(str(arguments[0]))
    return _run_job(*arguments, **options)


tasks.run_job = run_job
