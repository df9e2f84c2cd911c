"""P5: the provider JSON, rebuilt from the ledger for this view."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.service.body_of_request import request_body
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.jsonview import JsonPart, parts_of, pretty
from inspector.pages.comparison import GONE
from inspector.pages.numbers import whole
from inspector.pages.request_frame import detail_or_404, frame_of, shell_of
from inspector.render import fragment, raw_download, show
from inspector.request_contexts import JsonFragment, JsonLine, JsonPage
from inspector.visible import hidden_count

WINDOW = 60
AT_ONCE_TOKENS = 16_000
"""A request up to this size is rebuilt for the page; a larger one once the page stands, so that no page waits for it."""
_INLINE_BYTES = 4_000
"""A part up to this size stands in the page; a larger one is loaded when it is opened."""
_UNFOLDED_BYTES = 120
"""A part up to this size is unfolded at first."""
_INLINE_BUDGET_CHARS = 70_000
"""All parts of a page together as HTML, so that a page never grows with its session."""


@require_safe
@member()
def request_json(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The body in parts, in windows; `?part=` shows one alone. A large body is rebuilt when `?show=1` asks for it."""
    frame = frame_of(viewer, request_id, "request-json", request)
    asked = any(request.GET.get(name) for name in ("show", "from", "part"))
    waits = not asked and frame.request.total_tokens > AT_ONCE_TOKENS
    gone, body = "", b"{}"
    try:
        if not waits:
            body = request_body(actor=viewer.actor, request_id=request_id)
    except ServiceError as refused:
        if refused.status != GONE:
            raise
        gone = refused.detail
    parts = parts_of(_text(body))
    only = request.GET.get("part", "")
    if only:
        chosen = _part_or_404(parts, only)
        lines: tuple[JsonLine, ...] = (JsonLine(chosen, pretty(chosen.raw), True),)
        first = 0
    else:
        first = min(whole(request, "from") or 0, max(0, len(parts) - 1))
        lines = _lines(parts[first : first + WINDOW])
    page = JsonPage(
        shell=shell_of(viewer, frame, "request-json", "Provider JSON"),
        frame=frame,
        lines=lines,
        total_parts=len(parts),
        first=first,
        older=max(0, first - WINDOW) if first else None,
        newer=first + WINDOW if not only and first + WINDOW < len(parts) else None,
        only=only,
        waits=waits,
        gone=gone,
        length=len(body),
        markers_hidden=sum(hidden_count(line.part.raw) for line in lines),
    )
    return show(request, "request_json.html", page)


@require_safe
@member()
def json_part(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """One part on its own, for opening it in place."""
    detail_or_404(viewer, request_id)
    parts = parts_of(_text(request_body(actor=viewer.actor, request_id=request_id)))
    part = _part_or_404(parts, request.GET.get("part", ""))
    return fragment(request, "f/json_part.html", JsonFragment(pretty(part.raw)))


@require_safe
@member()
def request_raw(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The rebuilt body, byte for byte."""
    found = detail_or_404(viewer, request_id)
    body = request_body(actor=viewer.actor, request_id=request_id)
    return raw_download(body, f"request-{found.label}-{found.id}.json")


def _text(body: bytes) -> str:
    return body.decode("utf-8", "surrogatepass")


def _part_or_404(parts: tuple[JsonPart, ...], path: str) -> JsonPart:
    for part in parts:
        if part.path == path:
            return part
    raise Http404("The body has no such part.")


def _lines(parts: tuple[JsonPart, ...]) -> tuple[JsonLine, ...]:
    lines: list[JsonLine] = []
    left = _INLINE_BUDGET_CHARS
    for part in parts:
        html = pretty(part.raw) if part.length <= min(_INLINE_BYTES, left) else ""
        if len(html) > left:
            html = ""
        left -= len(html)
        lines.append(JsonLine(part, html, part.length <= _UNFOLDED_BYTES))
    return tuple(lines)
