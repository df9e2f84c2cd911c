"""`jobs`: what works in the background, and the operator's hand on it (design 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.auth import OPERATE, Scopes
from api.openapi import FLAG, FREE, TEXT, TIME, UUID_TEXT, WHOLE, listed, nullable, page_of, record
from api.reads.jobs import job_facts, job_page, require_job
from api.schema import Component, Operation, Operations, Parameters
from api.shapes.containers import Member, Record
from api.shapes.scalars import Text
from api.views import Done, JsonWrite, ReadView, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import Job, JobState
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.retry import retry_job
from ctxengine.service.specs import Actor

_STATES = [state.value for state in JobState]
_LINE: dict[str, Any] = {
    "id": UUID_TEXT,
    "kind": TEXT,
    "queue": TEXT,
    "state": {"type": "string", "enum": _STATES},
    "session_id": nullable(UUID_TEXT),
    "subject": TEXT,
    "cause": TEXT,
    "attempts": WHOLE,
    "max_attempts": WHOLE,
    "cancel_asked": FLAG,
    "phase": TEXT,
    "percent": WHOLE,
    "not_before": TIME,
    "created_at": TIME,
    "started_at": nullable(TIME),
    "finished_at": nullable(TIME),
    "error": nullable(record({"code": TEXT, "detail": TEXT})),
}
JOB_LINE = Component("JobLine", record(_LINE))
JOB = Component(
    "Job",
    record(
        _LINE
        | {
            "asked_by": TEXT,
            "arguments": FREE,
            "result": FREE,
            "log": listed(record({"at": TIME, "text": TEXT})),
        }
    ),
)
_MAX_NOTE_CHARS = 2000
NOTE = Record(Member("note", Text(maxLength=_MAX_NOTE_CHARS), note="Why, for the audit log."))


class JobsView(ReadView):
    """The jobs of a tenant."""

    parameters: ClassVar[Parameters] = {
        "state": pagination.word(
            "Only this state; `unfinished` for those that wait or run.", *_STATES, "unfinished"
        ),
        "kind": pagination.word("Only this kind."),
        "session": pagination.identifier("Only jobs of this session."),
        "limit": pagination.limit(),
        "cursor": pagination.cursor(datetime, UUID),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_jobs",
            summary="List jobs, the newest first",
            tag="jobs",
            answer=page_of("JobPage", JOB_LINE),
            answer_note="One page.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        )
    }

    def get(self, request: Request) -> HttpResponse:
        """One page of jobs."""
        return json_response(job_page(self.actor().tenant_id, self.query()).as_json())


class JobView(ReadView):
    """One job."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_job",
            summary="Look at a job: state, progress, log, result",
            tag="jobs",
            answer=JOB,
            answer_note="The job.",
        )
    }

    def get(self, request: Request, job: UUID) -> HttpResponse:
        """The job."""
        self.query()
        return json_response(to_json(job_facts(require_job(self.actor().tenant_id, job))))


class JobActWrite(JsonWrite[str]):
    """Cancelling, or trying again."""

    def __init__(self, act: Callable[..., Job]) -> None:
        """`act` is the use case."""
        self._act = act

    def parse(self, body: Node) -> str:
        """The note."""
        note: str = NOTE.read(body, "").get("note", "")
        return note

    def perform(self, actor: Actor, spec: str, ids: Mapping[str, Any]) -> Done:
        """Do it."""
        job = self._act(actor=actor, job_id=ids["job"], note=model_view(spec))
        return Done({"id": str(job.id)}, to_json(job_facts(job)))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The job as it stands now."""
        return to_json(job_facts(require_job(actor.tenant_id, UUID(resource["id"]))))


class CancelJobView(WriteView):
    """Cancelling a job."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = JobActWrite(cancel_job)
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="cancel_job",
            summary="Cancel a job that waits or runs",
            tag="jobs",
            answer=JOB,
            answer_note="The job: cancelled, or asked to end (`cancel_asked`) where it runs.",
            body=NOTE,
            problems=("job_ended",),
        )
    }


class RetryJobView(WriteView):
    """Trying a job again."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = JobActWrite(retry_job)
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="retry_job",
            summary="Try a job again that failed or was cancelled",
            tag="jobs",
            answer=JOB,
            answer_note="The job, queued.",
            body=NOTE,
            problems=("job_not_ended", "job_done", "job_in_flight", "job_kind_unknown"),
        )
    }
