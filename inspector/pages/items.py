"""One item with its content, as a page and as a part of a list."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.ids import parse_item_id
from ctxengine.ledger.queries.items import ItemContent, item_content
from inspector.access import Viewer, member
from inspector.contexts import Crumb, ItemFragment, ItemPage, Shell
from inspector.itemview import PartView, lookalikes, parts_of
from inspector.pages.session_frame import head_or_404, session_address, session_title
from inspector.render import Twin, fragment, show
from inspector.standing import standings


class ItemConverter:
    """An item id in an address."""

    regex = r"[0-9]{1,18}\.[0-9]{1,9}"

    def to_python(self, value: str) -> str:
        """The id as it stands."""
        return value

    def to_url(self, value: object) -> str:
        """The id as text."""
        return str(value)


@require_safe
@member()
def item(request: HttpRequest, viewer: Viewer, session_id: UUID, item_id: str) -> HttpResponse:
    """The item on a page of its own; `?whole=1` shows a long text to its end."""
    head = head_or_404(viewer, session_id)
    content = _content_or_404(viewer, session_id, item_id)
    whole = bool(request.GET.get("whole"))
    parts = parts_of(content, whole=whole)
    page = ItemPage(
        shell=Shell(
            viewer,
            f"Item {item_id} · {session_title(head)}",
            "sessions",
            (
                Crumb("Sessions", reverse("inspector:sessions", args=[viewer.slug, Twin.HTML])),
                Crumb(session_title(head), session_address(viewer.slug, head.id)),
                Crumb(f"item {item_id}"),
            ),
        ),
        session=head,
        content=content,
        parts=parts,
        whole=_all_shown(parts),
        lookalikes=lookalikes(content),
        standings=standings(viewer.tenant_id, head.id, content.line.id, content.line.kind),
    )
    return show(request, "item.html", page)


@require_safe
@member()
def item_fragment(
    request: HttpRequest, viewer: Viewer, session_id: UUID, item_id: str
) -> HttpResponse:
    """The item's content alone, for opening it in place."""
    head = head_or_404(viewer, session_id)
    content = _content_or_404(viewer, session_id, item_id)
    parts = parts_of(content, whole=False)
    page = ItemFragment(head, content, parts, _all_shown(parts), lookalikes(content), viewer.slug)
    return fragment(request, "f/item.html", page)


def _content_or_404(viewer: Viewer, session_id: UUID, item_id: str) -> ItemContent:
    found = item_content(viewer.tenant_id, session_id, parse_item_id(item_id))
    if found is None:
        raise Http404("No such item.")
    return found


def _all_shown(parts: tuple[PartView, ...]) -> bool:
    return not any(part.hidden for part in parts)
