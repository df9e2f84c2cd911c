"""P10: the list of personas, and one document with its editor, preview, revisions and differences."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ctxengine.ledger.queries.personas import (
    PersonaLine,
    RevisionLine,
    every_persona,
    persona_lines,
    principal_is_known,
    revision_lines,
)
from ctxengine.service.edit_persona import edit_persona, newest_persona, persona_revision
from ctxengine.service.plan_specs import EditPersona, PersonaView
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.filters import free, page_size, size_of
from inspector.pages.acts import reason_of
from inspector.pages.numbers import whole
from inspector.pages.persona_draft import draft_of, fields_of, preview_of
from inspector.persona_contexts import PersonaFragment, PersonaPage, PersonasPage
from inspector.render import Twin, csv_stream, fragment, json_stream, see_other, show
from inspector.textdiff import DiffLine, compare
from inspector.visible import one_line

CSV_HEADER = (
    "principal", "revision", "entries", "tokens", "open_sessions", "note", "saved_by", "saved_at",
)  # fmt: skip
REVISION_HEADER = ("revision", "entries", "tokens", "difference", "note", "saved_by", "saved_at")
ASKS = {"open": free, "size": page_size, "after": free}


class PrincipalConverter:
    """A principal's id in an address: any text."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        """The id as it stands."""
        return value

    def to_url(self, value: object) -> str:
        """The id as text."""
        return str(value)


@require_safe
@member(asks=ASKS)
def personas(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """Every principal; `?open=` goes to one, known or new."""
    wanted = request.GET.get("open", "").strip()
    if wanted:
        return see_other(_address(viewer, wanted[:200]))
    if twin is Twin.CSV:
        return csv_stream("personas", CSV_HEADER, map(_csv, every_persona(viewer.tenant_id)))
    if twin is Twin.JSON:
        return json_stream(every_persona(viewer.tenant_id))
    found = persona_lines(
        viewer.tenant_id, after=request.GET.get("after", ""), size=size_of(request)
    )
    page = PersonasPage(Shell(viewer, "Personas", "personas"), found)
    return show(request, "personas.html", page)


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def persona(request: HttpRequest, viewer: Viewer, principal: str, twin: Twin) -> HttpResponseBase:
    """The document; a POST saves the next revision, or with `preview` only shows what it would be."""
    if len(principal) > 200:
        raise Http404("No such principal.")
    if request.method == "POST":
        if "preview" in request.POST:
            return show(request, "persona.html", _page(request, viewer, principal))
        viewer.must_operate("Saving a persona")
        return _save(request, viewer, principal)
    if not viewer.is_operator and not principal_is_known(viewer.tenant_id, principal):
        raise Http404("No such persona.")
    if twin is Twin.CSV:
        lines = revision_lines(viewer.tenant_id, principal)
        return csv_stream("revisions", REVISION_HEADER, (_revision_csv(line) for line in lines))
    if twin is Twin.JSON:
        return json_stream(revision_lines(viewer.tenant_id, principal))
    return show(request, "persona.html", _page(request, viewer, principal))


@require_POST
@member()
def persona_preview(request: HttpRequest, viewer: Viewer, principal: str) -> HttpResponse:
    """Counts, rendered row and rotations of a draft, for the editor as one types."""
    base = _base(request, viewer, principal)
    entries = draft_of(request, base)
    preview = preview_of(viewer, principal, entries, base)
    return fragment(request, "f/persona_preview.html", PersonaFragment(preview, viewer.slug))


def _save(request: HttpRequest, viewer: Viewer, principal: str) -> HttpResponse:
    base = _base(request, viewer, principal)
    try:
        spec = EditPersona(
            revision=base.revision,
            entries=tuple(entry for entry in draft_of(request, base) if entry.strip()),
            note=reason_of(request),
        )
        saved = edit_persona(actor=viewer.actor, principal=principal, spec=spec)
    except ServiceError as refused:
        if refused.status not in (409, 422):
            raise
        page = _page(
            request,
            viewer,
            principal,
            problem=refused.detail,
            stale=refused.code == "persona_stale",
        )
        return show(request, "persona.html", page, status=refused.status)
    return see_other(f"{_address(viewer, principal)}?saved={saved.revision}")


def _page(
    request: HttpRequest, viewer: Viewer, principal: str, *, problem: str = "", stale: bool = False
) -> PersonaPage:
    document = newest_persona(viewer.tenant_id, principal)
    base = _base(request, viewer, principal)
    entries = draft_of(request, base) if request.method == "POST" else tuple(document.entries)
    revisions = revision_lines(viewer.tenant_id, principal)
    compared = (base.revision, document.revision) if stale else _asked(request)
    return PersonaPage(
        shell=Shell(
            viewer,
            f"Persona of {one_line(principal)}",
            "personas",
            (
                Crumb("Personas", reverse("inspector:personas", args=[viewer.slug, Twin.HTML])),
                Crumb(principal),
            ),
        ),
        principal=principal,
        document=document,
        fields=fields_of(entries, tuple(document.entries), blanks=viewer.is_operator),
        preview=preview_of(viewer, principal, entries, document),
        revisions=revisions,
        compared=compared,
        lines=_difference(viewer, principal, compared) if compared else (),
        note=request.POST.get("reason", "")[:2_000],
        problem=problem,
        stale=stale,
        saved=whole(request, "saved"),
        may_act=viewer.is_operator,
    )


def _base(request: HttpRequest, viewer: Viewer, principal: str) -> PersonaView:
    """The revision that a form was made from."""
    given = request.POST.get("revision", "")
    if not (given.isascii() and given.isdigit()) or int(given[:9]) == 0:
        newest = newest_persona(viewer.tenant_id, principal)
        return newest if not given else PersonaView(principal, 0, [], 0, "", "", None)
    return persona_revision(actor=viewer.actor, principal=principal, revision=int(given[:9]))


def _asked(request: HttpRequest) -> tuple[int, int] | None:
    before, after = whole(request, "before"), whole(request, "after")
    return None if before is None or after is None else (before, after)


def _difference(viewer: Viewer, principal: str, revisions: tuple[int, int]) -> tuple[DiffLine, ...]:
    texts = [
        "\n".join(f"- {entry}" for entry in _entries(viewer, principal, revision))
        for revision in revisions
    ]
    return compare(texts[0], texts[1])


def _entries(viewer: Viewer, principal: str, revision: int) -> list[str]:
    if revision == 0:
        return []
    return persona_revision(actor=viewer.actor, principal=principal, revision=revision).entries


def _address(viewer: Viewer, principal: str) -> str:
    return reverse("inspector:persona", args=[viewer.slug, principal, Twin.HTML])


def _csv(line: PersonaLine) -> tuple[object, ...]:
    return (
        line.principal, line.revision, line.entries, line.tokens, line.open_sessions, line.note,
        line.saved_by, line.saved_at,
    )  # fmt: skip


def _revision_csv(line: RevisionLine) -> tuple[object, ...]:
    return (
        line.revision, "\n".join(line.entries), line.tokens, line.difference, line.note,
        line.saved_by, line.saved_at,
    )  # fmt: skip
