"""Imported files: the list, one file's repair report, and the form that imports one."""

from __future__ import annotations

from collections import Counter

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from ctxengine.ledger.queries.imports import ImportLine, import_detail, list_imports
from ctxengine.service.import_transcript import ImportOutcome, import_file
from inspector.access import Viewer, member
from inspector.contexts import Crumb, ImportPage, ImportsPage, Shell
from inspector.figures import size
from inspector.render import Twin, csv_stream, show

FORMATS = (
    "openai_chat",
    "anthropic_messages",
    "openai_responses",
    "claude_code",
    "codex_rollout",
)
CSV_HEADER = ("sha256", "name", "format", "sessions", "items_in", "items_kept", "repairs", "at")


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def imports(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The list; a POST with a file imports it, or rehearses that."""
    if request.method == "POST":
        return _import(request, viewer)
    if twin is Twin.CSV:
        rows = (_csv(line) for line in list_imports(viewer.tenant_id))
        return csv_stream("imports", CSV_HEADER, rows)
    return show(request, "imports.html", _page(viewer), twin)


@require_safe
@member()
def import_report(request: HttpRequest, viewer: Viewer, sha256: str, twin: Twin) -> HttpResponse:
    """One file with what its repair added, remapped, joined, moved or set aside."""
    detail = import_detail(viewer.tenant_id, sha256)
    if detail is None:
        raise Http404("No such import.")
    page = ImportPage(
        shell=Shell(
            viewer,
            f"Import {detail.line.name}",
            "imports",
            (
                Crumb("Imports", reverse("inspector:imports", args=[viewer.slug, Twin.HTML])),
                Crumb(detail.line.name),
            ),
        ),
        detail=detail,
        by_action=tuple(sorted(Counter(line.action for line in detail.report).items())),
    )
    return show(request, "import.html", page, twin)


def _import(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    viewer.must_operate("Importing")
    file = request.FILES.get("file")
    rehearsed = bool(request.POST.get("rehearse"))
    problem = _problem(file)
    if problem or not isinstance(file, UploadedFile):
        status = 413 if isinstance(file, UploadedFile) and file.size else 400
        return show(request, "imports.html", _page(viewer, problem=problem), status=status)
    outcome = import_file(
        actor=viewer.actor, name=file.name or "upload", data=file.read(), dry_run=rehearsed
    )
    page = _page(viewer, outcome=outcome, rehearsed=rehearsed)
    return show(request, "imports.html", page, status=422 if outcome.status == "refused" else 200)


def _problem(file: object) -> str:
    if not isinstance(file, UploadedFile):
        return "Choose a file first."
    length = file.size or 0
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
    if not length:
        return "The file is empty."
    if limit and length > limit:
        return (
            f"The file has {size(length)}; {size(limit)} are allowed here. Import it with"
            " manage.py import_transcripts, which reads from disk."
        )
    return ""


def _page(
    viewer: Viewer,
    *,
    outcome: ImportOutcome | None = None,
    problem: str = "",
    rehearsed: bool = False,
) -> ImportsPage:
    return ImportsPage(
        shell=Shell(viewer, "Imports", "imports"),
        imports=list_imports(viewer.tenant_id),
        may_import=viewer.is_operator,
        limit_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0,
        outcome=outcome,
        problem=problem,
        rehearsed=rehearsed,
        formats=FORMATS,
    )


def _csv(line: ImportLine) -> tuple[object, ...]:
    sessions = " ".join(str(session) for session in line.sessions)
    return (
        line.sha256, line.name, line.format, sessions, line.items_in, line.items_kept,
        line.repairs, line.created_at,
    )  # fmt: skip
