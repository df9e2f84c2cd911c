"""Prove: rebuild a request from the ledger and compare its hash."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from ctxengine.ledger.queries.requests import RequestFilter, RequestQuery, list_requests
from ctxengine.service.prove import replay_request
from inspector.access import Viewer, member
from inspector.pages.request_frame import frame_of, shell_of
from inspector.pages.session_frame import frame_of as frame_of_session
from inspector.pages.session_frame import head_or_404
from inspector.pages.session_frame import shell_of as shell_of_session
from inspector.render import fragment, show
from inspector.request_contexts import ProofPage, ProofsPage

_NEWEST = 3


@require_POST
@member()
def prove_newest(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """Prove a session's newest requests, as after an act: what was recorded must not have changed."""
    head = head_or_404(viewer, session_id)
    rows = list_requests(
        viewer.tenant_id, RequestQuery(RequestFilter(session_id=head.id), None, _NEWEST)
    ).rows
    proofs = tuple(
        (row.id, row.label, replay_request(actor=viewer.actor, request_id=row.id)) for row in rows
    )
    page = ProofsPage(
        shell_of_session(viewer, head, "Proof"), frame_of_session(viewer, head, ""), proofs
    )
    if request.headers.get("HX-Request"):
        return fragment(request, "f/proofs.html", page)
    return show(request, "session_proof.html", page)


@require_POST
@member()
def prove(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponse:
    """The verdict with both hashes: in place, or as a page without JavaScript."""
    frame = frame_of(viewer, request_id, "request")
    replay = replay_request(actor=viewer.actor, request_id=request_id)
    page = ProofPage(shell_of(viewer, frame, "request", "Proof"), frame, replay)
    if request.headers.get("HX-Request"):
        return fragment(request, "f/proof.html", page)
    return show(request, "proof.html", page)
