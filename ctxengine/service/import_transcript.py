"""Importing a foreign transcript: read, repair, rebuild, write, all or nothing, once per content (design 7.17 and 8)."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.db import DataError, IntegrityError, transaction

from ctxengine.engine.errors import EngineError
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.report import all_repairs, items_in, items_set_aside
from ctxengine.engine.importers.transcript import Repair, Transcript
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.bulk import refresh_statistics, write_lines
from ctxengine.ledger.copy_lines import REQUEST, request_line
from ctxengine.ledger.inserts import copy
from ctxengine.ledger.log_writer import LogWriter
from ctxengine.ledger.models import ImportRow, Rendering, RunRow
from ctxengine.service.clock import utc_now
from ctxengine.service.imports.ask_for_requests import ask_for_requests
from ctxengine.service.imports.made import Part, Reconstructed
from ctxengine.service.imports.source import Bytes, LongFile, Source, is_long, problem_of
from ctxengine.service.imports.unreadable import Unreadable
from ctxengine.service.reconstruct import Reconstruction
from ctxengine.service.renderings import rendering_rows
from ctxengine.service.specs import Actor

_LARGE_ITEMS = 5_000
"""Items from which the planner is told at once of what was written."""
_RAW_CHARS = 65_536
"""Characters of a set-aside text that a report line keeps; a longer one is cut and says so."""

Progress = Callable[[str, int, int], None]
"""Called with (phase, done, total)."""


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What became of one file."""

    status: Literal["imported", "unchanged", "refused"]
    name: str
    sha256: str
    format: str = ""
    reason: str = ""
    """Why it was refused."""
    session_ids: list[UUID] = field(default_factory=list)
    items_in: int = 0
    items_kept: int = 0
    items_set_aside: int = 0
    report: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain data for the command line and REST."""
        return {
            "status": self.status,
            "name": self.name,
            "sha256": self.sha256,
            "format": self.format,
            "reason": self.reason,
            "sessions": [str(session) for session in self.session_ids],
            "items_in": self.items_in,
            "items_kept": self.items_kept,
            "items_set_aside": self.items_set_aside,
            "report": self.report,
        }


BeforeCommit = Callable[[ImportOutcome], None]


def import_file(
    *,
    actor: Actor,
    name: str,
    data: bytes,
    dry_run: bool = False,
    progress: Progress | None = None,
    before_commit: BeforeCommit | None = None,
) -> ImportOutcome:
    """Import one file's content.

    The same content imported again changes nothing. A file that is no transcript is refused with the reason and nothing is
    written; a dry run writes nothing either and reports what would happen.

    Args:
        before_commit: called last inside the transaction with what came of it; what it raises undoes everything.
    """
    with Bytes(data) as source:
        # Nobody but the source holds the bytes, so that it can let go of them.
        del data
        return _import(
            actor, source, name, dry_run=dry_run, progress=progress, before_commit=before_commit
        )


def _import(
    actor: Actor,
    source: Source,
    name: str,
    *,
    dry_run: bool,
    progress: Progress | None,
    before_commit: BeforeCommit | None,
) -> ImportOutcome:
    sha256, shown = source.sha256, model_view(name)
    known = ImportRow.objects.filter(tenant_id=actor.tenant_id, sha256=sha256).first()
    if known is not None:
        return _unchanged(known)
    try:
        with _no_collection():
            if progress is not None:
                progress("reading", 0, 1)
            transcript = source.transcript(shown)
            # What reading held in circles is many times the file; nothing after it makes any. All of it is young: none of
            # it was looked at so far, and the process' older objects have no part in it.
            gc.collect(0)
            with transaction.atomic():
                outcome = _take(
                    actor, shown, sha256, transcript, dry_run=dry_run, progress=progress
                )
                if before_commit is not None:
                    before_commit(outcome)
            if outcome.items_kept >= _LARGE_ITEMS and not dry_run:
                refresh_statistics()
            return outcome
    except (NotATranscript, Unreadable) as error:
        return ImportOutcome("refused", shown, sha256, reason=str(error))
    except EngineError as error:
        return ImportOutcome("refused", shown, sha256, reason=f"It cannot be rebuilt: {error}")
    except (DataError, UnicodeEncodeError) as error:
        # What the driver says may hold the file's own text; the name of its error does not.
        kind = type(error.__cause__ or error).__name__
        reason = f"It holds a text or a figure that the database cannot keep ({kind}). Nothing was written."
        return ImportOutcome("refused", shown, sha256, reason=reason)
    except IntegrityError:
        known = ImportRow.objects.filter(tenant_id=actor.tenant_id, sha256=sha256).first()
        if known is None:
            raise
        # Somebody else imported the same content at the same time; theirs stands.
        return _unchanged(known)


def import_path(
    *,
    actor: Actor,
    path: Path,
    name: str = "",
    dry_run: bool = False,
    progress: Progress | None = None,
    before_commit: BeforeCommit | None = None,
) -> ImportOutcome:
    """Import a file; one that cannot be read, is too large or begins like no text is refused without reading on.

    Args:
        name: what the file is called; by default what its path says.
        before_commit: see `import_file`.
    """
    name = name or path.name
    try:
        problem = problem_of(path)
        if problem:
            return _refused(name, problem)
        source = LongFile(path) if is_long(path) else Bytes(path.read_bytes())
    except OSError as error:
        return _refused(name, f"The file cannot be read: {error.strerror or error}.")
    with source:
        return _import(
            actor, source, name, dry_run=dry_run, progress=progress, before_commit=before_commit
        )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let the collector of circular references rest: it looked at every object of a long transcript again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _refused(name: str, reason: str) -> ImportOutcome:
    return ImportOutcome("refused", model_view(name), "", reason=reason)


class _Placed(NamedTuple):
    """What a child session asks of the one it hangs on."""

    session: UUID
    runs: tuple[tuple[int, UUID], ...]
    """(index of the entry that opened it, id) of each run."""

    def run_at(self, place: int) -> UUID | None:
        """The run in which the entry at this index stands."""
        return next((run for first, run in reversed(self.runs) if first <= place), None)


def _take(
    actor: Actor,
    name: str,
    sha256: str,
    transcript: Transcript,
    *,
    dry_run: bool,
    progress: Progress | None,
) -> ImportOutcome:
    """Rebuild and write session after session, so that few are held at a time; the caller's transaction binds them.

    Raises:
        Unreadable: the items do not add up.
    """
    found = items_in(transcript)
    report = [_report_line(repair) for repair in all_repairs(transcript)]
    aside, kept = items_set_aside(transcript), 0
    session_ids: list[UUID] = []
    outlined: list[UUID] = []
    with LogWriter() as writer:
        for made in _reconstruct(
            actor.tenant_id, transcript, sha256, utc_now(), progress, None if dry_run else writer
        ):
            writer.wait()
            session_ids.append(made.session.id)
            kept += made.kept_items
            report += map(_report_line, made.repairs())
            if made.outlined:
                outlined.append(made.session.id)
            if not dry_run:
                if progress is not None:
                    progress("writing", len(session_ids), len(session_ids))
                _write_session(made)
    if found != kept + aside:
        raise Unreadable(
            f"Its items do not add up: {found} found, {kept} kept, {aside} set aside. Nothing was written."
        )
    outcome = ImportOutcome(
        "imported", name, sha256, transcript.format, "", session_ids, found, kept, aside, report
    )
    if not dry_run:
        _write_import(actor, outcome)
        if outlined:
            ask_for_requests(actor=actor, name=name, sessions=outlined)
    return outcome


def _reconstruct(
    tenant_id: UUID,
    transcript: Transcript,
    sha256: str,
    now: datetime,
    progress: Progress | None,
    writer: LogWriter | None,
) -> Iterator[Reconstructed]:
    """Every session in turn, parents before their children; what has been given is let go of."""
    total = sum(len(session.entries) for session in transcript.sessions)
    done = 0
    placed: dict[str, _Placed] = {}
    parents = {session.parent[0] for session in transcript.sessions if session.parent}
    waiting = transcript.sessions[::-1]
    transcript.sessions.clear()
    while waiting:
        foreign = waiting.pop()
        parent = placed.get(foreign.parent[0]) if foreign.parent else None
        walk = Reconstruction(
            tenant_id,
            foreign,
            file_sha256=sha256,
            format=transcript.format,
            now=now,
            parent=parent.session if parent else None,
            take=partial(_write_part, writer),
        )
        before, done = done, done + len(foreign.entries)

        def report(count: int, before: int = before) -> None:
            # Whoever is told may want the connection.
            if progress is not None and (writer is None or not writer.busy):
                progress("rebuilding", before + count, total)

        made = walk.run(report)
        if parent is not None and foreign.parent is not None:
            made.session.parent_run_id = parent.run_at(foreign.parent[1])
            made.session.occasion = "child"
        if foreign.key in parents:
            runs = zip(made.run_places, (run.id for run in made.runs), strict=True)
            placed[foreign.key] = _Placed(made.session.id, tuple(runs))
        yield made


def _report_line(repair: Repair) -> dict[str, Any]:
    """A line as the database keeps it: texts in the model's view and without secrets, for only bodies hold originals."""
    line: dict[str, Any] = {
        "action": repair.action.value,
        "code": repair.code,
        "where": model_view(repair.where),
        "detail": redact(model_view(repair.detail)).text,
        "items": repair.items,
    }
    if repair.raw:
        line["raw"] = redact(model_view(repair.raw[:_RAW_CHARS])).text
        if len(repair.raw) > _RAW_CHARS:
            line["raw_chars"] = len(repair.raw)
    return line


def _write_part(writer: LogWriter | None, part: Part) -> None:
    """Have a part written while the next one is made; a rehearsal has no use for it."""
    if writer is not None:
        write_lines(part.lines, writer.add)
        writer.add(REQUEST, map(request_line, part.requests))
        writer.send()


def _write_session(made: Reconstructed) -> None:
    made.session.save(force_insert=True)
    lines = made.log.hand_over(EventSeq(0), last=True)
    write_lines([*lines, (REQUEST, map(request_line, made.requests))])
    made.plan.save(force_insert=True)
    copy(RunRow, made.runs)
    copy(Rendering, rendering_rows(made.session, made.digests))


def _write_import(actor: Actor, outcome: ImportOutcome) -> None:
    ImportRow.objects.create(
        tenant_id=actor.tenant_id,
        sha256=outcome.sha256,
        name=outcome.name,
        format=outcome.format,
        sessions=[str(session) for session in outcome.session_ids],
        items_in=outcome.items_in,
        items_kept=outcome.items_kept,
        report=outcome.report,
        created_at=utc_now(),
    )


def _unchanged(row: ImportRow) -> ImportOutcome:
    return ImportOutcome(
        status="unchanged",
        name=row.name,
        sha256=row.sha256,
        format=row.format,
        session_ids=[UUID(session) for session in row.sessions],
        items_in=row.items_in,
        items_kept=row.items_kept,
        items_set_aside=row.items_in - row.items_kept,
        report=row.report,
    )
