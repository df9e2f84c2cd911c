"""P9: a stored tool result once, the forms it takes, the requests it stood in, and recall tried out with its cost."""

from __future__ import annotations

import re
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.evidence.window import LineRange
from ctxengine.engine.ids import parse_item_id
from ctxengine.engine.items import ItemKind
from ctxengine.service.turns.evidence import evidence_of
from ctxengine.service.wiring import counter_of
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.filters import free
from inspector.pages.session_frame import head_or_404, session_address, session_title
from inspector.render import Twin, show
from inspector.standing import standings
from inspector.turn_contexts import EvidencePage

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


@require_safe
@member(asks={"lines": free})
def evidence(
    request: HttpRequest, viewer: Viewer, session_id: UUID, item_id: str, twin: Twin
) -> HttpResponse:
    """The result and its forms; `?lines=10-40` is what a recall of those lines gives."""
    head = head_or_404(viewer, session_id)
    item = parse_item_id(item_id)
    wish = request.GET.get("lines", "").strip()
    lines, problem = _lines(wish)
    found = evidence_of(actor=viewer.actor, session_id=head.id, item=item, lines=lines)
    counter = counter_of(head.provider, head.model)
    page = EvidencePage(
        shell=Shell(
            viewer,
            f"Evidence {item_id} · {session_title(head)}",
            "sessions",
            (
                Crumb("Sessions", reverse("inspector:sessions", args=[viewer.slug, Twin.HTML])),
                Crumb(session_title(head), session_address(viewer.slug, head.id)),
                Crumb(f"evidence {item_id}"),
            ),
        ),
        session=head,
        session_id=head.id,
        evidence=found,
        standings=standings(viewer.tenant_id, head.id, item, ItemKind.TOOL_RESULT),
        lines=wish,
        part_tokens=counter.text(found.part),
        problem=problem,
    )
    return show(request, "evidence.html", page, twin, 400 if problem else 200)


def _lines(text: str) -> tuple[LineRange | None, str]:
    if not text:
        return None, ""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None, f"Write lines as 10 or 10-40, not “{text[:40]}”."
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last:
        return None, "Lines count from 1, the first not behind the last."
    return LineRange(first, last), ""
