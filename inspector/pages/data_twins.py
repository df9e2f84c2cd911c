"""JSON twins of pages that are not made of one list: what they show, as data, whole where the page shows a window."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.ids import parse_item_id
from ctxengine.engine.items import TextPart
from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Form
from ctxengine.ledger.queries.events import event_body
from ctxengine.ledger.queries.imports import import_detail, import_job
from ctxengine.ledger.queries.items import ItemContent, item_content
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.body_of_request import request_body
from ctxengine.service.replay.read_replay import cell_of, replay_of
from ctxengine.service.replay.simulated import simulated_step
from ctxengine.service.wiring import log_of, plan_from
from inspector.access import Viewer, member
from inspector.filters import free
from inspector.itemview import lookalikes
from inspector.jsonview import parts_of
from inspector.pages.request_events import leading_events
from inspector.pages.request_frame import detail_or_404
from inspector.pages.request_rows import row_line
from inspector.pages.session_frame import head_or_404
from inspector.pages.take_away import FILES
from inspector.reasons import why
from inspector.render import json_stream, jsonable
from inspector.standing import standings
from inspector.visible import hidden_count


def answered(data: dict[str, Any]) -> HttpResponse:
    """An object as a twin answers it."""
    return JsonResponse(jsonable(data))


@require_safe
@member(asks={"in": free})
def request_json(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The parts of the body with their sizes, in order; the bytes are the `raw` file's."""
    detail_or_404(viewer, request_id)
    body = request_body(actor=viewer.actor, request_id=request_id)
    parts = [
        {
            "path": part.path,
            "caption": part.caption,
            "bytes": part.length,
            "hidden_characters": hidden_count(part.raw),
        }
        for part in parts_of(body.decode("utf-8", "surrogatepass"))
    ]
    raw = reverse("inspector:request-raw", args=[viewer.slug, request_id])
    return answered({"request": request_id, "bytes": len(body), "parts": parts, "raw": raw})


@require_safe
@member(asks={"in": free})
def request_events(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponseBase:
    """All events that led to the request and its answer, the newest first."""
    return json_stream(leading_events(viewer, detail_or_404(viewer, request_id)))


@require_safe
@member(asks={"in": free})
def take_away(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """What of a request can be taken along, and where it is."""
    found = detail_or_404(viewer, request_id)
    files = {
        name: reverse(f"inspector:request-{name}", args=[viewer.slug, request_id]) for name in FILES
    }
    return answered(
        {
            "request": request_id,
            "label": found.label,
            "request_sha256": found.request_sha256,
            "tokens": found.total_tokens,
            "files": files,
        }
    )


@require_safe
@member(asks={"whole": free})
def item(request: HttpRequest, viewer: Viewer, session_id: UUID, item_id: str) -> HttpResponse:
    """An item with its content as received, to its end, and how it stood in the newest requests."""
    head = head_or_404(viewer, session_id)
    content = item_content(viewer.tenant_id, session_id, parse_item_id(item_id))
    if content is None:
        raise Http404("No such item.")
    line = content.line
    return answered(
        {
            "session": head.id,
            "item": line,
            "event_type": content.event_type,
            "format": content.format,
            "recorded_at": content.recorded_at,
            "erased_at": content.erased_at,
            "problem": content.problem,
            "texts": _texts(content),
            "lookalikes": lookalikes(content),
            "standings": standings(viewer.tenant_id, head.id, line.id, line.kind),
        }
    )


def _texts(content: ItemContent) -> list[str]:
    """The item's own texts; the whole body where it could not be read."""
    decoded = content.decoded
    if decoded is None:
        return [content.raw] if content.raw else []
    arguments = [decoded.arguments] if decoded.arguments is not None else []
    return [*arguments, *(part.text for part in decoded.parts if isinstance(part, TextPart))]


@require_safe
@member(asks={"whole": free})
def event(request: HttpRequest, viewer: Viewer, session_id: UUID, sequence: int) -> HttpResponse:
    """The body of an event as text, to its end."""
    head = head_or_404(viewer, session_id)
    found = event_body(viewer.tenant_id, head.id, sequence)
    if found is None:
        raise Http404("No such event, or it has no body.")
    told = {"session": head.id, "characters": len(found.text)}
    return answered(told | jsonable(found))


@require_safe
@member(asks={"done": free})
def settings(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """What of a session may change while it lives, as it stands."""
    head = head_or_404(viewer, session_id)
    row = session_of(viewer.actor, head.id)
    policy = plan_from(log_of(row), plan_row_of(row)).policy
    return answered(
        {
            "session": head.id,
            "state": head.state,
            "policy": f"{policy.name}@{policy.version}",
            "history_ttl": row.settings.get("history_ttl", ""),
            "compaction": policy.compaction,
            "summary_model": policy.summary_model,
        }
    )


@require_safe
@member(asks={})
def lab_step(
    request: HttpRequest, viewer: Viewer, replay_id: UUID, number: int, step: int
) -> HttpResponse:
    """One simulated step: its figures, its rows, what it left out. It was never sent."""
    cell = cell_of(replay_of(actor=viewer.actor, replay_id=replay_id), number)
    found = simulated_step(actor=viewer.actor, replay_id=replay_id, cell=number, number=step)
    manifest = found.built.manifest
    raw = reverse("inspector:lab-step-raw", args=[viewer.slug, replay_id, number, step])
    return answered(
        {
            "replay": replay_id,
            "cell": number,
            "engine": cell.engine,
            "model": f"{cell.provider}/{cell.model}",
            "step": found.figures.as_json(),
            "rows": [row_line(row, manifest) for row in ROWS],
            "out": [
                {"span": span, "why": why(span, manifest.cut)}
                for span in manifest.spans
                if span.form is Form.OUT
            ],
            "tokens": found.built.budget.request,
            "bytes": len(found.body),
            "request_sha256": found.built.request_sha256,
            "raw": raw,
        }
    )


@require_safe
@member(asks={})
def import_progress(request: HttpRequest, viewer: Viewer, job_id: UUID) -> HttpResponse:
    """How far a job with an upload is."""
    job = import_job(viewer.tenant_id, job_id)
    if job is None:
        raise Http404("No such import.")
    return answered({"job": job, "over": job.over})


@require_safe
@member(asks={})
def repair_text(request: HttpRequest, viewer: Viewer, sha256: str, place: int) -> HttpResponse:
    """One line of a repair report with the whole text that it set aside."""
    detail = import_detail(viewer.tenant_id, sha256)
    if detail is None or not 1 <= place <= len(detail.report) or not detail.report[place - 1].raw:
        raise Http404("No such text.")
    return answered({"import": detail.line, "line": detail.report[place - 1]})
