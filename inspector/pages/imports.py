"""Imported files: the list, one file's repair report, the form that imports one, and the job that reads a large one."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from ctxengine.engine.importers.registry import FORMATS
from ctxengine.ledger.queries.imports import (
    ImportLine,
    every_import,
    import_detail,
    import_job,
    list_imports,
)
from ctxengine.ledger.queries.paging import PAGE_SIZES, BadCursor
from ctxengine.service.import_transcript import ImportOutcome, import_file
from ctxengine.service.imports.packed import MAGIC_BYTES, is_packed
from ctxengine.service.imports.source import MAX_FILE_BYTES
from ctxengine.service.imports.start_import import start_import
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.contexts import (
    Crumb,
    ImportJobPage,
    ImportPage,
    ImportsPage,
    RepairTextPage,
    Shell,
)
from inspector.filters import free, page_size, size_of
from inspector.render import Twin, csv_stream, fragment, json_stream, see_other, show

AT_ONCE_BYTES = 2_000_000
"""Smaller files are imported while the browser waits; the others by a job, and packed ones, whose length says nothing."""
CSV_HEADER = ("sha256", "name", "format", "sessions", "items_in", "items_kept", "repairs", "at")


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks={"size": page_size, "after": free})
def imports(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The list; a POST with a file imports it, or rehearses that."""
    if request.method == "POST":
        return _import(request, viewer)
    if twin is Twin.CSV:
        return csv_stream("imports", CSV_HEADER, map(_csv, every_import(viewer.tenant_id)))
    if twin is Twin.JSON:
        return json_stream(every_import(viewer.tenant_id))
    return show(
        request,
        "imports.html",
        _page(viewer, after=request.GET.get("after", ""), size=size_of(request)),
    )


@require_safe
@member()
def import_report(request: HttpRequest, viewer: Viewer, sha256: str, twin: Twin) -> HttpResponse:
    """One file with what its repair added, remapped, joined, moved or set aside."""
    detail = import_detail(viewer.tenant_id, sha256)
    if detail is None:
        raise Http404("No such import.")
    page = ImportPage(
        shell=_shell_below(viewer, f"Import {detail.line.name}", detail.line.name),
        detail=detail,
        by_action=tuple(sorted(Counter(line.action for line in detail.report).items())),
    )
    return show(request, "import.html", page, twin)


@require_safe
@member()
def repair_text(request: HttpRequest, viewer: Viewer, sha256: str, place: int) -> HttpResponse:
    """The whole text that one line of a repair report set aside."""
    detail = import_detail(viewer.tenant_id, sha256)
    if detail is None or not 1 <= place <= len(detail.report) or not detail.report[place - 1].raw:
        raise Http404("No such text.")
    line = detail.report[place - 1]
    shell = _shell_below(viewer, f"Text of {line.where}", detail.line.name)
    return show(request, "import_text.html", RepairTextPage(shell, detail.line, line))


@require_safe
@member()
def import_progress(request: HttpRequest, viewer: Viewer, job_id: UUID) -> HttpResponse:
    """How far the job with an upload is, and at its end the report: a page, or the part of it that asks again."""
    job = import_job(viewer.tenant_id, job_id)
    if job is None:
        raise Http404("No such import.")
    detail = (
        import_detail(viewer.tenant_id, job.sha256) if job.sha256 and not job.rehearsed else None
    )
    page = ImportJobPage(_shell_below(viewer, f"Import {job.name}", job.name), job, detail)
    if request.headers.get("HX-Request"):
        return fragment(request, "f/import_job.html", page)
    return show(request, "import_job.html", page)


def _shell_below(viewer: Viewer, title: str, name: str) -> Shell:
    above = reverse("inspector:imports", args=[viewer.slug, Twin.HTML])
    return Shell(viewer, title, "imports", (Crumb("Imports", above), Crumb(name)))


def _import(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    viewer.must_operate("Importing")
    file = request.FILES.get("file")
    rehearsed = bool(request.POST.get("rehearse"))
    problem = _problem(file)
    if problem or not isinstance(file, UploadedFile):
        status = 413 if isinstance(file, UploadedFile) and file.size else 400
        return show(request, "imports.html", _page(viewer, problem=problem), status=status)
    if _needs_job(file):
        job = start_import(
            actor=viewer.actor, name=file.name or "upload", chunks=file.chunks(), dry_run=rehearsed
        )
        return see_other(reverse("inspector:import-job", args=[viewer.slug, job.id]))
    outcome = import_file(
        actor=viewer.actor, name=file.name or "upload", data=file.read(), dry_run=rehearsed
    )
    page = _page(viewer, outcome=outcome, rehearsed=rehearsed)
    return show(request, "imports.html", page, status=422 if outcome.status == "refused" else 200)


def _needs_job(file: UploadedFile[bytes]) -> bool:
    packed = is_packed(file.read(MAGIC_BYTES))
    file.seek(0)
    return packed or (file.size or 0) >= AT_ONCE_BYTES


def _problem(file: object) -> str:
    if not isinstance(file, UploadedFile):
        return "Choose a file first."
    length = file.size or 0
    if not length:
        return "The file is empty."
    if length > _limit():
        return (
            f"The file has {_megabytes(length)}; at most {_megabytes(_limit())} are read here. Split it, or import it with"
            " manage.py import_transcripts, which reads from disk."
        )
    return ""


def _limit() -> int:
    """Largest file that is taken (bytes)."""
    return min(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or MAX_FILE_BYTES, MAX_FILE_BYTES)


def _megabytes(length: int) -> str:
    return f"{length / 1_000_000:,.1f} MB"


def _page(
    viewer: Viewer,
    *,
    outcome: ImportOutcome | None = None,
    problem: str = "",
    rehearsed: bool = False,
    after: str = "",
    size: int = PAGE_SIZES[0],
) -> ImportsPage:
    try:
        found = list_imports(viewer.tenant_id, after=after, size=size)
    except BadCursor as error:
        raise ServiceError("invalid_parameter", 400, str(error)) from error
    return ImportsPage(
        shell=Shell(viewer, "Imports", "imports"),
        page=found,
        may_import=viewer.is_operator,
        limit=_megabytes(_limit()),
        outcome=outcome,
        problem=problem,
        rehearsed=rehearsed,
        known_sha256=_kept_sha256(outcome, rehearsed),
        formats=FORMATS,
    )


def _kept_sha256(outcome: ImportOutcome | None, rehearsed: bool) -> str:
    if (
        outcome is None
        or outcome.status == "refused"
        or (rehearsed and outcome.status != "unchanged")
    ):
        return ""
    return outcome.sha256


def _csv(line: ImportLine) -> tuple[object, ...]:
    sessions = " ".join(str(session) for session in line.sessions)
    return (
        line.sha256, line.name, line.format, sessions, line.items_in, line.items_kept,
        line.repairs, line.created_at,
    )  # fmt: skip
