"""Start an import that a worker carries out: the upload is kept, the job is written (design 10)."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import Job
from ctxengine.service.imports.staged import discard, stage
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor

KIND = "transcript.import"
_NAME_CHARS = 200


def start_import(
    *,
    actor: Actor,
    name: str,
    chunks: Iterable[bytes],
    dry_run: bool = False,
    single_flight: str = "",
) -> Job:
    """Keep an uploaded file and ask for the job that imports it.

    Args:
        actor: who asks.
        name: what the file is called.
        chunks: its content.
        dry_run: whether it is a rehearsal.
        single_flight: where an unfinished job of the tenant has this key, that one is returned and nothing is kept.

    Raises:
        OSError: the file cannot be kept.
    """
    shown = model_view(name)[:_NAME_CHARS] or "upload"
    kept = stage(chunks)
    try:
        with transaction.atomic():
            job = enqueue(
                actor=actor,
                kind=KIND,
                arguments={"staged": kept, "name": shown, "dry_run": dry_run},
                subject=shown,
                single_flight=single_flight,
                cause="rehearsal of an upload" if dry_run else "upload",
            )
    except BaseException:
        discard(kept)
        raise
    if job.arguments["staged"] != kept:
        discard(kept)
    return job
