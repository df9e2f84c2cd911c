"""The exact provider JSON of a recorded request, rebuilt from the ledger."""

from __future__ import annotations

from uuid import UUID

from ctxengine.service.access import request_of, session_of
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ServiceError


def request_body(*, actor: Actor, request_id: UUID) -> bytes:
    """The body as it was handed out.

    Raises:
        ServiceError: 404; 410 `content_gone` when opaque reasoning or erased content is no longer there to be shown.
    """
    row = request_of(actor, request_id)
    session = session_of(actor, row.session_id)
    with refusing():
        built = rebuild_request(session, row)
    if built.absent:
        what = " and ".join(built.absent)
        raise ServiceError(
            "content_gone",
            410,
            f"This request held {what} content that is no longer kept; its hash is still proven by recorded digests.",
            absent=list(built.absent),
        )
    return built.body
