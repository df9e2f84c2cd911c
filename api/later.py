"""`202 Accepted`: the answer waits for a job. Nothing is kept under the call's key, so that its repeat gets the answer."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from api.answers import json_response, to_json
from ctxengine.ledger.models import Job
from ctxengine.service.summaries.ask import RETRY_AFTER_S, AnswerLater


def later_json(job: Job) -> dict[str, Any]:
    """The job that an answer waits for, as plain data."""
    return {
        "job": {
            "id": str(job.id),
            "kind": job.kind,
            "state": job.state,
            "phase": job.phase,
            "percent": job.percent,
            "url": f"/api/v1/jobs/{job.id}",
        },
        "retry_after_s": RETRY_AFTER_S,
    }


def later_response(error: AnswerLater) -> HttpResponse:
    """The 202 with its `Retry-After`."""
    response = json_response(to_json(later_json(error.job)), error.status)
    response["Retry-After"] = str(error.retry_after_s)
    return response
