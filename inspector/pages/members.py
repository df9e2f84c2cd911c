"""P14: members and their roles. Admins let people in, change roles and let them go."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ctxengine.ledger.queries.people import list_members
from ctxengine.service.add_person import add_person, person_is_known
from ctxengine.service.members import change_role, remove_member
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.console_contexts import MembersPage
from inspector.contexts import Shell
from inspector.filters import free
from inspector.pages.acts import reason_of
from inspector.pages.operations import operations_tabs
from inspector.render import Twin, csv_stream, json_stream, see_other, show

ROLES = (
    ("viewer", "reads everything of the tenant"),
    ("operator", "also acts: rotates, compacts, edits, probes, imports"),
    ("admin", "also makes keys and says who belongs to the tenant"),
)
CSV_HEADER = ("name", "role", "joined_at", "signed_in_at", "active")
_SHOWN_AGAIN = frozenset({404, 409, 422})


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks={"done": free})
def members(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """All members; a POST of an admin adds one, changes a role or removes one (`act`)."""
    if request.method == "POST":
        return _act(request, viewer)
    lines = list_members(viewer.tenant_id)
    if twin is Twin.CSV:
        rows = (tuple(getattr(line, name) for name in CSV_HEADER) for line in lines)
        return csv_stream("members", CSV_HEADER, rows)
    if twin is Twin.JSON:
        return json_stream(lines)
    return show(request, "members.html", _page(viewer, done=request.GET.get("done", "")))


def _act(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    viewer.must_administer("Changing members")
    acts = {"add": _add, "role": _role, "remove": _remove}
    act = acts.get(request.POST.get("act", ""))
    if act is None:
        raise ServiceError("invalid_act", 400, f"`act` is one of {', '.join(acts)}.")
    try:
        done = act(request, viewer)
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        given = {name: request.POST.get(name, "")[:150] for name in ("name", "role")}
        page = _page(viewer, refused.detail, given)
        return show(request, "members.html", page, status=refused.status)
    here = reverse("inspector:members", args=[viewer.slug, Twin.HTML])
    return see_other(f"{here}?done={done}")


def _add(request: HttpRequest, viewer: Viewer) -> str:
    name, password = request.POST.get("name", "").strip(), request.POST.get("password", "")
    if person_is_known(name) and password:
        # Said in the same words for a name of another tenant: who belongs there is nobody's business.
        raise ServiceError("invalid_field", 422, "This name cannot be given a password here.")
    add_person(
        actor_label=viewer.actor.label,
        name=name,
        tenant=viewer.slug,
        role=request.POST.get("role", ""),
        password=password,
    )
    return "added"


def _role(request: HttpRequest, viewer: Viewer) -> str:
    name, role = request.POST.get("name", ""), request.POST.get("role", "")
    change_role(actor=viewer.actor, name=name, role=role, note=reason_of(request))
    return "changed"


def _remove(request: HttpRequest, viewer: Viewer) -> str:
    remove_member(actor=viewer.actor, name=request.POST.get("name", ""), note=reason_of(request))
    return "removed"


def _page(
    viewer: Viewer, problem: str = "", given: dict[str, str] | None = None, done: str = ""
) -> MembersPage:
    return MembersPage(
        shell=Shell(viewer, "Members", "jobs"),
        tabs=operations_tabs(viewer, "members"),
        members=list_members(viewer.tenant_id),
        roles=ROLES,
        problem=problem,
        done=done if done in {"added", "changed", "removed"} else "",
        given=given or {},
        may_act=viewer.is_admin,
    )
