"""Checkpoints of a `boundary` session: covered range, identity, provenance, recovery notices, typed errors, and undo."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from ctxengine.ledger.queries.jobs import JobFilter, JobQuery, list_jobs
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.boundary.read import CheckpointLine, OperationLine, checkpoints_of
from ctxengine.service.boundary.wanted import KIND
from ctxengine.service.specs import UndoCompaction
from ctxengine.service.undo_compaction import undo_compaction
from inspector.access import Viewer, member
from inspector.act_contexts import ActPage, Figure
from inspector.checkpoint_contexts import CheckpointsPage, OperationView
from inspector.figures import signed
from inspector.filters import free, one_of, page_size, size_of, whole_number
from inspector.forecast import cost_of_undoing
from inspector.pages.acts import answer
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.windows import window

CSV_HEADER = (
    "event", "at", "kind", "state", "first", "through", "turns", "units", "tokens_before",
    "tokens_after", "counted", "bytes", "written_by", "recovered", "source_sha256", "contract_sha256",
)  # fmt: skip
_DONE = {
    "undone": "The checkpoint is undone; the one before it counts again.",
    "queued": "A job asks the provider; the checkpoint stands here once it is installed.",
}
ASKS = {"at": whole_number, "done": one_of(*_DONE), "size": page_size, "after": free}
_OPERATIONS = 20


@require_safe
@member(asks=ASKS)
def session_checkpoints(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """All checkpoints, newest first; `?at=` opens one, by default the one in force."""
    head = head_or_404(viewer, session_id)
    found = checkpoints_of(actor=viewer.actor, session_id=head.id)
    if twin is Twin.CSV:
        rows = (line.as_json() for line in found.lines)
        return csv_stream(
            "checkpoints", CSV_HEADER, (tuple(row[name] for name in CSV_HEADER) for row in rows)
        )
    if twin is Twin.JSON:
        return json_stream(line.as_json() for line in found.lines)
    after, size = request.GET.get("after", ""), size_of(request)
    shown = window(found.lines, after, lambda line: line.event.sequence, size)
    operations = tuple(_operation(line) for line in found.operations[:_OPERATIONS])
    page = CheckpointsPage(
        shell=shell_of(viewer, head, "Checkpoints"),
        frame=frame_of(viewer, head, "session-checkpoints"),
        lines=shown.rows,
        after=shown.after,
        detail=_detail(found.lines, whole(request, "at")),
        operations=operations,
        failed=next((view for view in operations[:1] if view.outcome == "failed"), None),
        jobs=list_jobs(
            viewer.tenant_id,
            JobQuery(JobFilter(state="unfinished", kind=KIND, session_id=head.id)),
        ).rows,
        may_act=viewer.is_operator and head.state == "open",
        done=_DONE.get(request.GET.get("done", ""), ""),
    )
    return show(request, "session_checkpoints.html", page)


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def undo(request: HttpRequest, viewer: Viewer, session_id: UUID, event: int) -> HttpResponse:
    """GET says what comes back; POST undoes."""
    head = head_or_404(viewer, session_id)
    return answer(
        request,
        viewer,
        template="act.html",
        name="Undoing a checkpoint",
        page=lambda: _undo_page(viewer, head, event),
        act=lambda reason: _undo(viewer, head, event, reason),
    )


def _undo(viewer: Viewer, head: SessionHead, event: int, reason: str) -> str:
    spec = UndoCompaction(note=reason)
    undo_compaction(actor=viewer.actor, session_id=head.id, event=event, spec=spec)
    return f"{_address(viewer, head)}?done=undone"


def _undo_page(viewer: Viewer, head: SessionHead, event: int) -> ActPage:
    line = _line(checkpoints_of(actor=viewer.actor, session_id=head.id).lines, event)
    point = line.point
    cost = cost_of_undoing(actor=viewer.actor, session_id=head.id, made=line.event)
    blocked = "It is undone already." if line.state == "undone" else ""
    blocked = blocked or (line.bar.says if line.bar else "")
    return ActPage(
        shell=shell_of(viewer, head, f"Undo checkpoint {event}"),
        frame=frame_of(viewer, head, "session-checkpoints"),
        heading=f"Undo checkpoint {event}",
        explains=(
            "The next step stands on the checkpoint before it, or on the whole history. Where that reaches the trigger, a"
            " new compaction comes first and costs what it costs; where it does not fit, the request is refused whole."
        ),
        figures=(
            Figure("Comes back", f"events 1 to {point.replaced:,}", f"{point.turns:,} turns"),
            Figure(
                "Each later request",
                f"{signed(-cost.saved_tokens)} tokens",
                "at most, while it fits",
            ),
        ),
        blocked=blocked or ("" if head.state == "open" else "The session has ended."),
        hidden=(),
        button=f"Undo checkpoint {event}",
        back=f"{_address(viewer, head)}?at={event}",
        allowed=viewer.is_operator,
    )


def _address(viewer: Viewer, head: SessionHead) -> str:
    return reverse("inspector:session-checkpoints", args=[viewer.slug, head.id, Twin.HTML])


def _detail(lines: tuple[CheckpointLine, ...], asked: int | None) -> CheckpointLine | None:
    if asked is not None:
        return _line(lines, asked)
    standing = (line for line in lines if line.state == "in_force")
    return next(standing, lines[0] if lines else None)


def _line(lines: tuple[CheckpointLine, ...], event: int) -> CheckpointLine:
    for line in lines:
        if line.event.sequence == event:
            return line
    raise Http404("No such checkpoint.")


def _operation(line: OperationLine) -> OperationView:
    told = line.as_json()
    return OperationView(
        event=told["event"],
        outcome=told["outcome"],
        code=told["code"] or "",
        says=told["says"],
        remedy=told["remedy"],
        retryable=bool(told["retryable"]),
    )
