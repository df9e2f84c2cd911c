"""P3: a session's strip and runs."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries import session as read
from ctxengine.ledger.queries.events import event_page
from ctxengine.service.imports.complete import complete_requests
from inspector.access import Viewer, member
from inspector.contexts import SessionPage
from inspector.filters import whole_number
from inspector.live import session_news
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin, show
from inspector.strip import strip_view

STRIP_COLUMNS = 80
ASKS = {"from": whole_number, "before": whole_number}


@require_safe
@member(asks=ASKS)
def session(request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin) -> HttpResponse:
    """Every request as a column, the runs below, the newest events."""
    tenant = viewer.tenant_id
    head = head_or_404(viewer, session_id)
    start = whole(request, "from")
    first = max(
        1, min(head.requests - STRIP_COLUMNS + 1 if start is None else start, head.requests)
    )
    if head.import_sha256:
        complete_requests(
            tenant_id=tenant, session_id=head.id, first=first, last=first + STRIP_COLUMNS - 1
        )
    strip = read.strip(tenant, head.id, total=head.requests, start=first, size=STRIP_COLUMNS)
    first = strip.first_number
    page = SessionPage(
        shell=shell_of(
            viewer,
            head,
            news=""
            if request.GET.get("before")
            else session_news(viewer, head.id, tab="runs", seen=head.last_sequence),
        ),
        frame=frame_of(viewer, head, "session"),
        strip=strip,
        view=strip_view(strip, read.epoch_tokens(tenant, head.id)),
        older=max(1, first - STRIP_COLUMNS) if first > 1 else None,
        newer=first + STRIP_COLUMNS if strip.last_number < head.requests else None,
        runs=read.run_page(tenant, head.id, before=whole(request, "before")),
        bill=read.bill(tenant, head.id),
        children=read.child_sessions(tenant, head.id),
        recent=event_page(tenant, head.id, size=6),
        may_act=viewer.is_operator and head.state == "open",
    )
    return show(request, "session.html", page, twin)
