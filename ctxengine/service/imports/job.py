"""The job `transcript.import`: read a staged file into sessions, all of it or nothing (design 10).

A worker that dies leaves nothing, for everything is written in one transaction, the job's own outcome included; the next
attempt begins anew. The file goes once the job is done. Where it was refused, cancelled or has failed, it stays for a while,
so that it can be tried again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import transaction

from ctxengine.service.import_transcript import ImportOutcome, import_path
from ctxengine.service.imports.staged import discard, staged
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.stops import JobFailed

_FIRST_PERCENT, _LAST_PERCENT = 5, 95
"""What reading and writing take of the bar; rebuilding has the rest."""


def run(context: JobContext) -> dict[str, Any]:
    """Import the file and forget it; the result holds ids and figures, the report stands with the import.

    Raises:
        JobFailed: `refused` with the reason, or `upload_gone`.
    """
    arguments = context.arguments
    name = str(arguments["staged"])
    path = staged(name)
    if not path.exists():
        raise JobFailed("upload_gone", "The uploaded file is no longer there; upload it again.")
    dry_run = bool(arguments["dry_run"])

    def conclude(outcome: ImportOutcome) -> None:
        context.conclude(_result(outcome, dry_run=dry_run))

    outcome = import_path(
        actor=context.actor,
        path=path,
        name=str(arguments["name"]),
        dry_run=dry_run,
        progress=_Reporter(context).report,
        before_commit=conclude,
    )
    if outcome.status == "refused":
        raise JobFailed("refused", outcome.reason)
    if outcome.status == "unchanged":
        # Nothing was written for the outcome to be written with.
        with transaction.atomic():
            conclude(outcome)
    discard(name)
    return _result(outcome, dry_run=dry_run)


class _Reporter:
    """Turns what the import says into the job's progress, and ends the work when it is no longer wanted."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._said: tuple[str, int] = ("", -1)

    def report(self, phase: str, done: int, total: int) -> None:
        share = done / max(1, total)
        so_far = max(0, self._said[1])
        # Sessions are rebuilt and written in turn: writing one is no step forward, and nothing ever goes back.
        percent = {"reading": 0, "writing": so_far}.get(
            phase, max(so_far, round(_FIRST_PERCENT + share * (_LAST_PERCENT - _FIRST_PERCENT)))
        )
        if self._said == (phase, percent):
            return
        self._said = phase, percent
        self._context.check()
        self._context.progress(phase, percent)


def _result(outcome: ImportOutcome, *, dry_run: bool) -> dict[str, Any]:
    repairs = Counter((line["action"], line["code"]) for line in outcome.report)
    return {
        "status": outcome.status,
        "dry_run": dry_run,
        "sha256": outcome.sha256,
        "format": outcome.format,
        "sessions": [] if dry_run else [str(session) for session in outcome.session_ids],
        "items_in": outcome.items_in,
        "items_kept": outcome.items_kept,
        "items_set_aside": outcome.items_set_aside,
        "repairs": [
            {"action": action, "code": code, "lines": lines}
            for (action, code), lines in sorted(repairs.items())
        ],
    }
