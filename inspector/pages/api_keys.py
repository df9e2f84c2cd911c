"""P14: API keys. Admins make and revoke them; a key itself is shown once."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ctxengine.ledger.queries.people import KeyLine, list_keys
from ctxengine.service.issue_key import IssuedKey, issue_key
from ctxengine.service.revoke_key import revoke_key
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.console_contexts import KeysPage
from inspector.contexts import Shell
from inspector.pages.acts import reason_of
from inspector.pages.operations import operations_tabs
from inspector.render import Twin, csv_stream, json_stream, show

SCOPES = (
    ("runtime", "open sessions, assemble, report responses and results"),
    ("read", "read everything of the tenant"),
    ("operate", "rotate, compact, erase, edit personas"),
)
LIVES = (("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "never"))
_MOST_NAME_CHARS = 80
CSV_HEADER = (
    "name", "prefix", "state", "scopes", "created_by", "created_at", "expires_at", "revoked_at", "last_used_at",
)  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks={})
def api_keys(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """All keys; a POST of an admin makes or revokes one (`act`)."""
    if request.method == "POST":
        return _act(request, viewer)
    now = timezone.now()
    if twin is Twin.CSV:
        rows = (_csv(line, line.state(now)) for line in list_keys(viewer.tenant_id))
        return csv_stream("api-keys", CSV_HEADER, rows)
    if twin is Twin.JSON:
        return json_stream(list_keys(viewer.tenant_id))
    return show(request, "api_keys.html", _page(viewer))


def _act(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    viewer.must_administer("Making or revoking a key")
    try:
        if request.POST.get("act") == "revoke":
            revoke_key(actor=viewer.actor, key_id=_id(request), note=reason_of(request))
            return show(request, "api_keys.html", _page(viewer))
        issued = _issue(request, viewer)
    except ServiceError as refused:
        if refused.status != 422:
            raise
        given = {name: request.POST.get(name, "") for name in ("name", "days")}
        return show(request, "api_keys.html", _page(viewer, refused.detail, given), status=422)
    # Answered here and not by a redirect: the key is kept nowhere, so no other address could show it.
    return show(request, "api_keys.html", _page(viewer, issued=issued))


def _issue(request: HttpRequest, viewer: Viewer) -> IssuedKey:
    name, days = request.POST.get("name", "").strip(), request.POST.get("days", "")
    if not 1 <= len(name) <= _MOST_NAME_CHARS or "\x00" in name:
        raise ServiceError("invalid_field", 422, f"A name has 1 to {_MOST_NAME_CHARS} characters.")
    if days not in dict(LIVES):
        raise ServiceError("invalid_field", 422, "Choose one of the lives offered.")
    return issue_key(
        actor=viewer.actor,
        name=name,
        scopes=tuple(request.POST.getlist("scope")),
        expires_in=timedelta(days=int(days)) if days else None,
    )


def _id(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("key", ""))
    except ValueError as error:
        raise ServiceError("not_found", 404, "There is no such key.") from error


def _page(
    viewer: Viewer,
    problem: str = "",
    given: dict[str, str] | None = None,
    issued: IssuedKey | None = None,
) -> KeysPage:
    now = timezone.now()
    return KeysPage(
        shell=Shell(viewer, "API keys", "jobs"),
        tabs=operations_tabs(viewer, "api-keys"),
        keys=tuple((line, line.state(now)) for line in list_keys(viewer.tenant_id)),
        issued=issued,
        scopes=SCOPES,
        lives=LIVES,
        problem=problem,
        given=given or {},
        may_act=viewer.is_admin,
    )


def _csv(line: KeyLine, state: str) -> tuple[object, ...]:
    return (
        line.name, line.prefix, state, " ".join(line.scopes), line.created_by, line.created_at,
        line.expires_at, line.revoked_at, line.last_used_at,
    )  # fmt: skip
