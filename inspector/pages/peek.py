"""One line of a list at a glance, in a drawer beside it: a part of a page, stored nowhere, never an address to keep (ui P2)."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.engine.events import EventType
from ctxengine.ledger.queries import session as read
from ctxengine.ledger.queries.plans import newest_epochs
from ctxengine.ledger.queries.request import RequestDetail, request_detail
from ctxengine.ledger.queries.requests import (
    RequestFilter,
    RequestLine,
    RequestQuery,
    list_requests,
    one_request,
)
from inspector.access import Viewer, member
from inspector.filters import free
from inspector.pages import request_frame, session_frame
from inspector.pages.request_walk import walk_of, within
from inspector.peek_contexts import OutlinedPeek, RequestGlance, RequestPeek, SessionPeek
from inspector.reasons import class_title
from inspector.render import fragment
from inspector.ruler import Ruler, ruler_of, track

_SHOWN = 4
"""Epochs and compactions, the newest; all of them stand under their tabs."""
_DRAWER_PX = 470
"""Width of the drawer's track."""
_RAN = "ran"


@require_safe
@member(asks={})
def session_peek(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """Head, newest request, epochs, compactions and bill of a session. Eight queries at most."""
    tenant, head = viewer.tenant_id, session_frame.head_or_404(viewer, session_id)
    where = RequestFilter(session_id=head.id)
    lines = list_requests(tenant, RequestQuery(where, size=1)).rows if head.requests else ()
    line = lines[0] if lines else None
    # A request that an import outlined is made when somebody opens it; a look beside the list makes none.
    made = request_detail(tenant, line.id) if line and not line.outlined else None
    page = SessionPeek(
        slug=viewer.slug,
        frame=session_frame.frame_of(viewer, head, ""),
        newest=_glance(made) if made else None,
        outlined=(line.id, line.label) if line and not made else None,
        epochs=newest_epochs(tenant, head.id, size=_SHOWN),
        compactions=read.newest_acts(tenant, head.id, EventType.COMPACTED, size=_SHOWN),
        bill=read.bill(tenant, head.id),
    )
    return fragment(request, "f/peek_session.html", page)


@require_safe
@member(asks={"in": free})
def request_peek(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """Ruler, cache and what yielded of one request; its links stay within the list that it stands in (`?in=`)."""
    line = one_request(viewer.tenant_id, request_id)
    if line is None:
        raise Http404("No such request.")
    if line.outlined:
        return _outlined(request, viewer, line)
    frame = request_frame.frame_of(viewer, request_id, "", request)
    page = RequestPeek(
        slug=viewer.slug,
        title=session_frame.session_title(frame.session),
        glance=_glance(frame.request, frame.ruler),
        tabs=frame.tabs,
        cache=frame.cache,
        cut=frame.cut,
        unattributed=frame.unattributed,
    )
    return fragment(request, "f/peek_request.html", page)


def _outlined(request: HttpRequest, viewer: Viewer, line: RequestLine) -> HttpResponse:
    walk = walk_of(viewer, line, request.GET.get("in", ""))
    page = OutlinedPeek(
        slug=viewer.slug,
        title=session_frame.session_title(session_frame.head_or_404(viewer, line.session_id)),
        line=line,
        address=within(request_frame.request_address(viewer.slug, line.id), walk),
    )
    return fragment(request, "f/peek_outlined.html", page)


def _glance(made: RequestDetail, ruler: Ruler | None = None) -> RequestGlance:
    ruler = ruler or ruler_of(made.manifest, made.budget, made.cache.predicted, made.usage)
    return RequestGlance(
        request=made,
        ruler=ruler,
        window=track(list(ruler.window), ruler.scale_tokens, _DRAWER_PX),
        yielded=tuple(
            class_title(step.budget_class) for step in made.manifest.yields if step.outcome == _RAN
        ),
    )
