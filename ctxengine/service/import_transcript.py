"""Importing a foreign transcript: read, repair, rebuild, write, all or nothing, once per content (design 7.17 and 8)."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import IntegrityError, transaction

from ctxengine.engine.errors import EngineError
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.report import all_repairs, items_in, items_set_aside
from ctxengine.engine.importers.transcript import ForeignSession, Transcript
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.bulk import write_log
from ctxengine.ledger.models import ImportRow, RequestRow, RunRow
from ctxengine.service.clock import utc_now
from ctxengine.service.reconstruct import Reconstructed, Reconstruction
from ctxengine.service.specs import Actor

MAX_FILE_BYTES = 256 * 1024 * 1024
"""Largest transcript that is read, unpacked."""

_GZIP = b"\x1f\x8b"

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


def import_file(
    *,
    actor: Actor,
    name: str,
    data: bytes,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportOutcome:
    """Import one file's content.

    The same content imported again changes nothing. A file that is no transcript is refused with the reason and nothing is
    written; a dry run writes nothing either and reports what would happen.
    """
    sha256, shown = hashlib.sha256(data).hexdigest(), model_view(name)
    known = ImportRow.objects.filter(tenant_id=actor.tenant_id, sha256=sha256).first()
    if known is not None:
        return _unchanged(known)
    try:
        transcript = read(_text(data), name=shown)
        built = _reconstruct(actor.tenant_id, transcript, sha256, utc_now(), progress)
    except (NotATranscript, _Unreadable) as error:
        return ImportOutcome("refused", shown, sha256, reason=str(error))
    except EngineError as error:
        return ImportOutcome("refused", shown, sha256, reason=f"It cannot be rebuilt: {error}")
    outcome = _outcome(shown, sha256, transcript, built)
    if outcome.items_in != outcome.items_kept + outcome.items_set_aside:
        reason = (
            f"Its items do not add up: {outcome.items_in} found, {outcome.items_kept} kept, "
            f"{outcome.items_set_aside} set aside. Nothing was written."
        )
        return ImportOutcome("refused", shown, sha256, format=transcript.format, reason=reason)
    if not dry_run:
        try:
            _write(actor, outcome, built)
        except IntegrityError:
            # Somebody else imported the same content at the same time; theirs stands.
            return _unchanged(ImportRow.objects.get(tenant_id=actor.tenant_id, sha256=sha256))
    return outcome


class _Unreadable(Exception):
    """The bytes are no text."""


def _text(data: bytes) -> str:
    if not data:
        raise _Unreadable("The file is empty.")
    if data[:2] == _GZIP:
        data = _unpacked(data)
    if len(data) > MAX_FILE_BYTES:
        raise _Unreadable(f"The file holds more than {MAX_FILE_BYTES:,} bytes; split it.")
    try:
        return data.decode("utf-8-sig", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _Unreadable(f"The file is binary or not UTF-8 (at byte {error.start:,}).") from error


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    out = io.BytesIO()
    try:
        # Unpacking stops at the limit, so that a small file cannot fill the memory.
        out.write(unpacker.decompress(data, MAX_FILE_BYTES + 1))
    except zlib.error as error:
        raise _Unreadable(f"The gzip data is damaged: {error}.") from error
    if not unpacker.eof and out.tell() <= MAX_FILE_BYTES:
        raise _Unreadable("The gzip data is truncated.")
    return out.getvalue()


def _reconstruct(
    tenant_id: UUID,
    transcript: Transcript,
    sha256: str,
    now: datetime,
    progress: Progress | None,
) -> list[Reconstructed]:
    total = sum(len(session.entries) for session in transcript.sessions)
    done = 0
    built: dict[str, Reconstructed] = {}
    for foreign in transcript.sessions:
        walk = Reconstruction(
            tenant_id,
            foreign,
            file_sha256=sha256,
            format=transcript.format,
            now=now,
            parent=_parent_id(foreign, built),
        )
        before = done

        def report(count: int, before: int = before) -> None:
            if progress is not None:
                progress("rebuilding", before + count, total)

        made = walk.run(report)
        if foreign.parent is not None and foreign.parent[0] in built:
            made.session.parent_run_id = _parent_run(foreign, built)
            made.session.occasion = "child"
        built[foreign.key] = made
        done += len(foreign.entries)
    return list(built.values())


def _parent_id(foreign: ForeignSession, built: dict[str, Reconstructed]) -> UUID | None:
    parent = built.get(foreign.parent[0]) if foreign.parent else None
    return parent.session.id if parent is not None else None


def _parent_run(foreign: ForeignSession, built: dict[str, Reconstructed]) -> UUID | None:
    runs = built[foreign.parent[0]].runs if foreign.parent else []
    return runs[-1].id if runs else None


def _outcome(
    name: str, sha256: str, transcript: Transcript, built: list[Reconstructed]
) -> ImportOutcome:
    return ImportOutcome(
        status="imported",
        name=name,
        sha256=sha256,
        format=transcript.format,
        session_ids=[made.session.id for made in built],
        items_in=items_in(transcript),
        items_kept=sum(made.kept_items for made in built),
        items_set_aside=items_set_aside(transcript),
        report=[
            {
                "action": repair.action.value,
                "code": repair.code,
                "where": model_view(repair.where),
                "detail": model_view(repair.detail),
                "items": repair.items,
            }
            for repair in all_repairs(transcript)
        ],
    )


def _write(actor: Actor, outcome: ImportOutcome, built: list[Reconstructed]) -> None:
    with transaction.atomic():
        for made in built:
            made.session.save(force_insert=True)
            write_log(actor.tenant_id, made.session.id, made.log.stored())
            made.plan.save(force_insert=True)
            RunRow.objects.bulk_create(made.runs, 500)
            RequestRow.objects.bulk_create(made.requests, 200)
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
