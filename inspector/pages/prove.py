"""Prove: rebuild a request from the ledger and compare its hash."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from ctxengine.service.prove import replay_request
from inspector.access import Viewer, member
from inspector.pages.request_frame import frame_of, shell_of
from inspector.render import fragment, show
from inspector.request_contexts import ProofPage


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
