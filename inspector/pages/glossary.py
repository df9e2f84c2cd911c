"""The glossary, and the tour of the sample sessions for a first visit."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.requests import RequestFilter, RequestQuery, list_requests
from ctxengine.ledger.queries.sessions import SessionFilter, SessionQuery, list_sessions
from inspector.access import Viewer, member
from inspector.console_contexts import GlossaryPage, TourPage, TourStep
from inspector.contexts import Shell
from inspector.glossary import grouped
from inspector.render import Twin, show


@require_safe
@member(asks={})
def glossary(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponse:
    """Every word with its meaning; each has an anchor of its own."""
    return show(
        request, "glossary.html", GlossaryPage(Shell(viewer, "Glossary", ""), grouped()), twin
    )


@require_safe
@member(asks={})
def tour(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Five questions that people come with, each with the page of a sample that answers it."""
    sessions = list_sessions(
        viewer.tenant_id, SessionQuery(SessionFilter(import_format="any"), size=1)
    ).rows
    pressed = list_requests(
        viewer.tenant_id, RequestQuery(RequestFilter(yielded="any"), None, 1)
    ).rows
    any_request = list_requests(viewer.tenant_id, RequestQuery(RequestFilter(), None, 1)).rows
    longest = pressed[0].session_id if pressed else sessions[0].id if sessions else None
    request_id = pressed[0].id if pressed else any_request[0].id if any_request else None
    page = TourPage(
        Shell(viewer, "Tour", ""), _steps(viewer.slug, longest, request_id), longest is not None
    )
    return show(request, "tour.html", page)


def _steps(slug: str, session: UUID | None, request: UUID | None) -> tuple[TourStep, ...]:
    def of_session(route: str) -> str:
        return reverse(f"inspector:{route}", args=[slug, session, Twin.HTML]) if session else ""

    def of_request(route: str) -> str:
        return reverse(f"inspector:{route}", args=[slug, request, Twin.HTML]) if request else ""

    return (
        TourStep(
            "What happened in this session?",
            "One column for each request, to scale. Bands are epochs, marks are compactions, pressure and rotations;"
            " the runs stand below.",
            of_session("session"),
            "Open the busiest sample session",
        ),
        TourStep(
            "Where do the tokens go?",
            "The ruler is the whole window: rows 1 to 8 first, then the conversation, what is free, the margin, the reserve."
            " The table under it has the same figures and the reason for each row.",
            of_request("request"),
            "Open a request that had to yield",
        ),
        TourStep(
            "Why did the model not see something?",
            "Items that were left out are listed too, with the form they took and the number they lost to.",
            of_request("request-items") + "?form=out" if request else "",
            "See what was left out",
        ),
        TourStep(
            "Why did this request cost more than the one before?",
            "The first changed byte, the row and the event that changed it; then the parts that differ, words marked.",
            of_request("request-change"),
            "See what changed",
        ),
        TourStep(
            "Is all of this true?",
            "Prove rebuilds the request from the ledger and compares hashes. The events page checks the chain as it shows it.",
            of_session("session-events"),
            "See the events and their chain",
        ),
    )
