"""Taking a request along: one HTML file for a ticket, a shell command without a key, the raw body."""

from __future__ import annotations

from typing import TypedDict
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_safe

from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Form, Manifest, Span
from ctxengine.service.body_of_request import request_body
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.curl import curl_of
from inspector.figures import size
from inspector.filters import free
from inspector.markdown import markdown_of
from inspector.masking import Masking
from inspector.pages.comparison import GONE
from inspector.pages.request_frame import frame_of, shell_of
from inspector.pages.request_rows import row_line
from inspector.reasons import why
from inspector.render import raw_download, show
from inspector.request_contexts import RequestFrame, RowLine, TakeAwayPage

FILES = ("ticket", "markdown", "raw", "curl")
"""What can be downloaded of a request, by the end of the route's name."""
_SHOWN_TOKENS = 5_000
"""Of a request whose command stands on the page; the command of a larger one is made when it is downloaded."""
_SHOWN_CHARS = 40_000
_TICKET_BYTES = 400_000
"""Of a body that goes into a ticket's file; a longer one is left out, with its size."""


@require_safe
@member(asks={"in": free})
def take_away(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The ways to take a request along, and what is in each."""
    frame = frame_of(viewer, request_id, "request-take-away", request)
    gone, command = "", ""
    try:
        if frame.request.total_tokens <= _SHOWN_TOKENS:
            command = _command(viewer, frame)
    except ServiceError as refused:
        if refused.status != GONE:
            raise
        gone = refused.detail
    page = TakeAwayPage(
        shell=shell_of(viewer, frame, "request-take-away", "Take away"),
        frame=frame,
        gone=gone,
        command=command if len(command) <= _SHOWN_CHARS else "",
        command_size=size(len(command.encode("utf-8", "surrogatepass"))) if command else "",
    )
    return show(request, "request_take_away.html", page)


@require_safe
@member(asks={})
def curl(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The command as a file."""
    frame = frame_of(viewer, request_id, "request-take-away", request)
    command = _command(viewer, frame).encode("utf-8", "surrogatepass")
    return raw_download(command, f"request-{frame.request.label}-{request_id}.sh")


@require_safe
@member(asks={})
def ticket(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """One HTML file with everything that explains the request, secrets masked; it loads nothing."""
    told = _explained(request, viewer, request_id)
    around = {"made_at": timezone.now(), "tenant": viewer.slug}
    text = render_to_string("ticket.html", told | around)
    data = text.encode("utf-8", "replace")
    return raw_download(data, f"request-{told['frame'].request.label}-{request_id}.html")


@require_safe
@member(asks={})
def markdown(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The same in Markdown, secrets masked."""
    told = _explained(request, viewer, request_id)
    data = markdown_of(**told).encode("utf-8", "replace")
    return raw_download(data, f"request-{told['frame'].request.label}-{request_id}.md")


class _Explained(TypedDict):
    """A request as both files explain it, recognised secrets masked."""

    frame: RequestFrame
    rows: list[RowLine]
    out: list[tuple[Span, str]]
    body: str
    note: str
    masked: int


def _explained(request: HttpRequest, viewer: Viewer, request_id: UUID) -> _Explained:
    frame = frame_of(viewer, request_id, "request-take-away", request)
    manifest = frame.request.manifest
    raw, note = _body(viewer, request_id)
    masking = Masking()
    told = _Explained(
        frame=masking.frame(frame),
        rows=masking.rows(row_line(row, manifest) for row in ROWS),
        out=masking.left_out(_left_out(manifest)),
        body=masking.text(raw),
        note=masking.text(note),
        masked=0,
    )
    return {**told, "masked": masking.masked}


def _body(viewer: Viewer, request_id: UUID) -> tuple[str, str]:
    """The body, and why there is none."""
    try:
        raw = request_body(actor=viewer.actor, request_id=request_id)
    except ServiceError as refused:
        if refused.status != GONE:
            raise
        return "", refused.detail
    if len(raw) > _TICKET_BYTES:
        note = (
            f"The body has {size(len(raw))} and is not in this file; download it from the console."
        )
        return "", note
    return raw.decode("utf-8", "surrogatepass"), ""


def _left_out(manifest: Manifest) -> list[tuple[Span, str]]:
    return [(s, why(s, manifest.cut)) for s in manifest.spans if s.form is Form.OUT]


def _command(viewer: Viewer, frame: RequestFrame) -> str:
    row = frame.request
    body = request_body(actor=viewer.actor, request_id=row.id)
    return curl_of(
        provider=row.built_for[0],
        model=row.built_for[1],
        body=body.decode("utf-8", "surrogatepass"),
        digest=row.request_sha256,
    )
