"""The events of a session, their payloads and bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.events import EVENT_RULES
from ctxengine.ledger.queries.events import (
    EventBody,
    EventLine,
    event_body,
    event_page,
    event_types,
)
from ctxengine.ledger.queries.session import SessionHead
from inspector.access import Viewer, member
from inspector.contexts import Crumb, EventBodyPage, EventRows, EventsPage, Shell
from inspector.filters import one_of, whole_number
from inspector.itemview import SHOWN_CHARS
from inspector.live import session_news
from inspector.pages.numbers import whole
from inspector.pages.session_frame import (
    frame_of,
    head_or_404,
    session_address,
    session_title,
    shell_of,
)
from inspector.render import Twin, csv_stream, fragment, json_stream, raw_download, show

MEANINGS = {rule.type.value: rule.meaning for rule in EVENT_RULES}
CSV_HEADER = (
    "sequence", "type", "run_id", "trust", "body_bytes", "prev_hash", "hash", "linked",
    "recorded_at", "payload",
)  # fmt: skip
SHOWN = 80
"""Events of one page: as many as keep it under 150 kB."""
ASKS = {
    "type": one_of(*(rule.type.value for rule in EVENT_RULES)),
    "at": whole_number,
    "before": whole_number,
    "follow": one_of("1"),
}
_NONE = 204


@require_safe
@member(asks=ASKS)
def session_events(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """Newest first, with the state of the chain; `?at=` unfolds one event."""
    head = head_or_404(viewer, session_id)
    kind = request.GET.get("type", "")
    if twin is Twin.CSV:
        rows = (_csv(event) for event in _every(viewer, head.id, kind))
        return csv_stream("events", CSV_HEADER, rows)
    if twin is Twin.JSON:
        return json_stream(_every(viewer, head.id, kind))
    opened = whole(request, "at")
    before = whole(request, "before")
    if opened is not None and before is None:
        before = opened + 20
    newest = before is None
    follow = newest and bool(request.GET.get("follow"))
    page = EventsPage(
        shell=shell_of(
            viewer,
            head,
            "Events",
            ""
            if follow or not newest
            else session_news(viewer, head.id, tab="events", seen=head.last_sequence, kind=kind),
        ),
        frame=frame_of(viewer, head, "session-events"),
        events=event_page(
            # What came since the head was read is the follower's to bring, or the next page's.
            viewer.tenant_id,
            head.id,
            before=head.last_sequence + 1 if before is None else before,
            kind=kind,
            size=SHOWN,
        ),
        types=event_types(viewer.tenant_id, head.id),
        chosen=kind,
        meanings=MEANINGS,
        opened=opened,
        newest=newest,
        follow=follow,
        **_addresses(viewer, head),
    )
    return show(request, "session_events.html", page)


@require_safe
@member(asks={"type": ASKS["type"], "before": whole_number, "after": whole_number})
def event_rows(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """Further lines: those before an event, or those that came after it; 204 where none came."""
    head, kind = head_or_404(viewer, session_id), request.GET.get("type", "")
    after, before = whole(request, "after"), whole(request, "before")
    seen = None if after is None else min(head.last_sequence, after + SHOWN)
    if after is not None and seen is not None:
        if seen <= after:
            return HttpResponse(status=_NONE)
        # The one that the page shows is read again, so that the next one's link to it is checked.
        found = event_page(
            viewer.tenant_id, head.id, at_least=after, before=seen + 1, kind=kind, size=SHOWN + 1
        )
        found = replace(
            found,
            events=tuple(event for event in found.events if event.sequence > after),
            broken=tuple(place for place in found.broken if place > after),
        )
    else:
        found = event_page(viewer.tenant_id, head.id, before=before, kind=kind, size=SHOWN)
    page = EventRows(
        slug=viewer.slug,
        session_id=head.id,
        events=found,
        chosen=kind,
        meanings=MEANINGS,
        seen=seen,
        **_addresses(viewer, head),
    )
    return fragment(request, "f/events.html", page)


def _addresses(viewer: Viewer, head: SessionHead) -> dict[str, str]:
    named = {"events_url": "session-events", "rows_url": "session-event-rows"}
    ends = {"events_url": [Twin.HTML], "rows_url": []}
    return {
        name: reverse(f"inspector:{route}", args=[viewer.slug, head.id, *ends[name]])
        for name, route in named.items()
    }


@require_safe
@member()
def body(request: HttpRequest, viewer: Viewer, session_id: UUID, sequence: int) -> HttpResponse:
    """The body of one event as text, the first part unless `?whole=1`."""
    head = head_or_404(viewer, session_id)
    found = _body_or_404(viewer, head.id, sequence)
    shown = found.text if request.GET.get("whole") else found.text[:SHOWN_CHARS]
    page = EventBodyPage(
        shell=Shell(
            viewer,
            f"Event {sequence} · {session_title(head)}",
            "sessions",
            (
                Crumb("Sessions", reverse("inspector:sessions", args=[viewer.slug, Twin.HTML])),
                Crumb(session_title(head), session_address(viewer.slug, head.id)),
                Crumb(f"event {sequence}"),
            ),
        ),
        session=head,
        sequence=sequence,
        text=shown,
        sha256=found.sha256,
        length=len(found.text),
        shown=len(shown),
        erased_at=found.erased_at,
    )
    return show(request, "event_body.html", page)


@require_safe
@member()
def raw_body(request: HttpRequest, viewer: Viewer, session_id: UUID, sequence: int) -> HttpResponse:
    """The body of one event, byte for byte."""
    head = head_or_404(viewer, session_id)
    found = _body_or_404(viewer, head.id, sequence)
    data = found.text.encode("utf-8", "surrogatepass")
    return raw_download(data, f"event-{head.id}-{sequence}.txt")


def _body_or_404(viewer: Viewer, session_id: UUID, sequence: int) -> EventBody:
    found = event_body(viewer.tenant_id, session_id, sequence)
    if found is None:
        raise Http404("No such event, or it has no body.")
    return found


def _every(viewer: Viewer, session_id: UUID, kind: str) -> Iterator[EventLine]:
    before: int | None = None
    while True:
        page = event_page(viewer.tenant_id, session_id, before=before, kind=kind, size=500)
        yield from page.events
        before = page.before
        if before is None:
            return


def _csv(event: EventLine) -> tuple[object, ...]:
    return (
        event.sequence, event.type, event.run_id, event.trust, event.body_length, event.prev_hash,
        event.hash, event.linked, event.recorded_at, event.payload,
    )  # fmt: skip
