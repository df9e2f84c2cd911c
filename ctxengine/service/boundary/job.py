"""The job `compaction.boundary`: read a head, ask without holding anything, install by compare-and-set (design 7.9).

It fails once and says so: another try is made when a request asks for it, after the rest that its failures ask for.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

from django.db import InterfaceError, OperationalError, transaction

from ctxengine.engine.boundary.failures import CompactionError, outcome_of
from ctxengine.engine.boundary.native import make_window
from ctxengine.engine.boundary.note import make_note
from ctxengine.engine.boundary.prepare import work_of
from ctxengine.engine.boundary.work import Made, Work
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow
from ctxengine.service.access import session_of
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.boundary.install import begun, finish, install
from ctxengine.service.boundary.look import look
from ctxengine.service.boundary.ports import ServiceNative, ServiceNotes, at_work
from ctxengine.service.boundary.wanted import WantedCheckpoint
from ctxengine.service.clock import utc_now
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobCancelled, JobDelayed, JobFailed, LeaseLost
from ctxengine.service.jobs.verdict import verdict_on
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.prompts import BOUNDARY_NOTE
from ctxengine.service.wiring import log_of, renderer_of

_log = logging.getLogger(__name__)
_LATEST = 50
"""So many of the newest starts and ends are looked through for a start without an end."""


def run(context: JobContext) -> dict[str, Any]:
    """Make one checkpoint and install it; the result names the event and the figures.

    Raises:
        JobFailed: nothing was installed; the session's log says why.
        JobCancelled: somebody asked for its end; nothing was installed.
        LeaseLost: another worker has the job; this one wrote nothing since.
    """
    return _Operation(context).run()


class _Operation:
    """One attempt. Whatever ends it, the log says so, unless another worker has the job by then."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._wanted = WantedCheckpoint.model_validate(context.arguments)
        self._id = str(uuid4())
        if context.job.session_id is None:
            raise JobFailed("not_found", "The job names no session.")
        try:
            self._session = session_of(context.actor, context.job.session_id)
        except ServiceError as error:
            raise JobFailed(error.code, error.detail) from error
        self._log = log_of(self._session)
        self._run: RunRow | None = open_run(self._session)

    def run(self) -> dict[str, Any]:
        """Make and install."""
        try:
            self._end_abandoned()
            return self._installed()
        except LeaseLost:
            raise  # Another worker has the job: it ends what this one began.
        except JobCancelled:
            self._end(CompactionError("cancelled"))
            raise
        except CompactionError as error:
            if error.reason == "cancelled":
                self._broken_off()
            ended = at_work(error)
            self._end(ended)
            raise JobFailed(ended.reason, ended.message) from error
        except BaseException as error:
            self._end_at_last(error)
            raise

    def _installed(self) -> dict[str, Any]:
        work, native = self._work()
        self._begin(work, native)
        self._context.progress("asking the provider" if native else "writing the note", 10)
        made = self._made(work, native)
        self._context.check()
        self._context.progress("installing", 95)
        done = install(
            self._context,
            self._session,
            work,
            made,
            operation=self._id,
            native=native,
            wanted=self._wanted,
        )
        if done is None:
            raise CompactionError("superseded")
        return done

    def _work(self) -> tuple[Work, bool]:
        situation = look(self._session, self._run, log=self._log).situation
        work = work_of(
            situation,
            renderer_of(self._session.provider),
            keep_turns=self._wanted.keep_turns,
            through=self._wanted.through,
        )
        if work is None or work.prefix != self._wanted.prefix:
            raise CompactionError("superseded")
        return work, situation.native

    def _begin(self, work: Work, native: bool) -> None:
        self._append(begun(operation=self._id, work=work, native=native, run=self._wanted.run))

    def _made(self, work: Work, native: bool) -> Made:
        job = self._context.job
        if native:
            port = ServiceNative(
                tenant_id=self._session.tenant_id,
                session_id=self._session.id,
                job_id=job.id,
                plan=work.session.plan,
                cancelled=self._context.cancelled,
            )
            return make_window(work, port, recovers=work.session.plan.policy.archive_recovery)
        notes = ServiceNotes(
            work,
            tenant_id=self._session.tenant_id,
            session_id=self._session.id,
            job_id=job.id,
            kept=lambda place, of, writer: self._kept(work, place, of, writer),
            keep=lambda place, of, writer, text: self._keep(work, place, of, writer, text),
            cancelled=self._context.cancelled,
        )
        writer = {
            "model": notes.writer.label,
            "chosen": notes.writer.why,
            "prompt": BOUNDARY_NOTE,
        }
        return make_note(work, self._log, notes, writer=writer)

    # --- partial notes ---

    def _kept(self, work: Work, place: int, of: int, writer: str) -> str | None:
        wanted = {"prefix_sha256": work.prefix, "place": place, "of": of, "writer": writer}
        for event in self._log.latest({EventType.BOUNDARY_FRAGMENT}, limit=200):
            if event.body is not None and wanted.items() <= event.payload.items():
                return self._log.body(event.body.id)
        return None

    def _keep(self, work: Work, place: int, of: int, writer: str, text: str) -> None:
        self._context.check()
        self._context.progress(f"part {place} of {of}", 10 + 80 * place // of)
        self._append(
            EventDraft(
                type=EventType.BOUNDARY_FRAGMENT,
                trust=Trust.MODEL,
                run=self._wanted.run,
                payload={
                    "prefix_sha256": work.prefix,
                    "place": place,
                    "of": of,
                    "writer": writer,
                },
                body=text,
                owner=self._session.principal,
            )
        )

    # --- ending ---

    def _append(self, *drafts: EventDraft) -> None:
        """Append while the job is ours.

        Raises:
            LeaseLost: another worker has it; nothing was written.
        """
        with transaction.atomic():
            self._context.hold()
            self._log.append(list(drafts), expected=None, at=utc_now())

    def _end(self, error: CompactionError) -> None:
        self._append(
            finish(
                operation=self._id,
                outcome=outcome_of(error),
                prefix=self._wanted.prefix,
                run=self._wanted.run,
                error=error,
            )
        )

    def _end_at_last(self, error: BaseException) -> None:
        """Say how an attempt ended that met what nobody foresaw: a defect, a race, a database that went away."""
        try:
            self._end(CompactionError(_reason_of(error)))
        except (OperationalError, InterfaceError):
            # The next attempt, or the next job of the session, ends it: see `_end_abandoned`.
            _log.warning("the end of operation %s could not be written", self._id)

    def _end_abandoned(self) -> None:
        """End operations that a lost worker began: only one job of a session runs at once, and this one does."""
        latest = self._log.latest(
            {EventType.BOUNDARY_STARTED, EventType.BOUNDARY_FINISHED}, limit=_LATEST
        )
        ended = {
            event.payload["operation"]
            for event in latest
            if event.type is EventType.BOUNDARY_FINISHED
        }
        left = [event for event in latest if event.payload["operation"] not in ended]
        drafts = [
            finish(
                operation=event.payload["operation"],
                outcome="failed",
                prefix=event.payload["prefix_sha256"],
                run=event.run,
                error=CompactionError("interrupted"),
            )
            for event in reversed(left)
        ]
        if drafts:
            self._append(*drafts)

    def _broken_off(self) -> None:
        """What a call that was let go means: the lease is lost, or somebody asked for the end, or neither after all.

        Raises:
            LeaseLost: another worker has the job.
            JobCancelled: somebody asked for its end; that is written.
            JobDelayed: neither holds; the work is still wanted.
        """
        try:
            self._context.check()
        except JobCancelled:
            self._end(CompactionError("cancelled"))
            raise
        error = CompactionError("interrupted")
        self._end(error)
        raise JobDelayed(error.reason, error.message)


def _reason_of(error: BaseException) -> str:
    """The code of the table for what is no failure of a compaction."""
    if not isinstance(error, Exception):
        return "interrupted"
    if isinstance(error, ServiceError) and error.code == "stale_head":
        return "superseded"
    return "interrupted" if verdict_on(error).again else "internal"
