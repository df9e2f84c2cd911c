"""What the pages of jobs receive."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ctxengine.ledger.models import Job, JobState
from ctxengine.ledger.queries.jobs import JobCounts, job_counts
from ctxengine.ledger.queries.paging import Page
from ctxengine.service.jobs.context import ASKED_BY
from ctxengine.service.jobs.kinds import UnknownKind, kind_of
from ctxengine.service.jobs.presence import workers_present
from ctxengine.service.jobs.wait_for import FINAL
from inspector.contexts import JobsTile, Shell, Tab

_MARKS = {"done": ("ok", "✓"), "failed": ("bad", "✕"), "running": ("plain", "▶"), "queued": ("plain", "…")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a job's log."""

    at: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as pages show it."""

    id: UUID
    kind: str
    words: str
    """What such a job does."""
    queue: str
    state: str
    mark: str
    css: str
    over: bool
    subject: str
    cause: str
    session_id: UUID | None
    attempts: int
    max_attempts: int
    phase: str
    percent: int
    cancel_asked: bool
    worker: str
    """Who holds it, while it runs."""
    error_code: str
    error_detail: str
    not_before: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobsPage:
    """Jobs, filtered; the address holds the whole state."""

    shell: Shell
    tabs: tuple[Tab, ...]
    problem: str
    chosen: dict[str, str]
    states: tuple[str, ...]
    kinds: tuple[str, ...]
    counts: JobCounts
    workers: int
    page: Page[JobView]
    filtered: bool
    live: bool
    """Whether something on the page may change by itself."""
    address: str


@dataclass(frozen=True, slots=True)
class JobPage:
    """One job: cause, attempts, progress, log, result, and the operator's hand."""

    shell: Shell
    job: JobView
    log: tuple[LogLine, ...]
    asked_by: str
    arguments: str
    """JSON text."""
    result: str
    """JSON text; empty before there is one."""
    session_title: str
    workers: int
    act: str
    """What an operator may do: `cancel`, `retry`, or nothing."""
    allowed: bool
    problem: str = ""
    reason: str = ""


def view_of(job: Job) -> JobView:
    """A job's row for a page."""
    css, mark = _MARKS.get(job.state, ("plain", "–"))
    return JobView(
        id=job.id,
        kind=job.kind,
        words=_words(job.kind),
        queue=job.queue,
        state=job.state,
        mark=mark,
        css=css,
        over=job.state in FINAL,
        subject=job.subject,
        cause=job.cause,
        session_id=job.session_id,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        phase=job.phase,
        percent=job.percent,
        cancel_asked=job.cancel_asked,
        worker=job.worker.partition("#")[0] if job.state == JobState.RUNNING else "",
        error_code=str(job.error.get("code", "")),
        error_detail=str(job.error.get("detail", "")),
        not_before=job.not_before,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def log_of(job: Job) -> tuple[LogLine, ...]:
    """A job's log, oldest line first."""
    return tuple(
        LogLine(_moment(line.get("at", "")), str(line.get("text", ""))) for line in job.log
    )


def asked_by(job: Job) -> str:
    """The label of who asked for the job."""
    return str(job.arguments.get(ASKED_BY, ""))


def pretty(values: dict[str, object]) -> str:
    """JSON text of a job's arguments or result; empty where there are none."""
    kept = {name: value for name, value in values.items() if name != ASKED_BY}
    return json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) if kept else ""


def jobs_tile(tenant_id: UUID) -> JobsTile:
    """Whether jobs get done. Three queries."""
    counts, workers = job_counts(tenant_id), workers_present()
    waiting, failed = counts.by_state["queued"], counts.by_state["failed"]
    if waiting and not workers:
        state, verdict = "bad", "No worker runs; jobs wait."
    elif failed:
        state, verdict = "warn", f"{failed:,} failed."
    else:
        state, verdict = "ok", "Nothing failed."
    return JobsTile(counts, workers, state, verdict)


def _words(kind: str) -> str:
    try:
        return kind_of(kind).describe
    except UnknownKind:
        return "A kind of job that this version does not know"


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
