"""The jump box."""

from __future__ import annotations

from ctxengine.ledger.models import PlanRow, RequestRow
from tests.inspector.conftest import Cast


def jump(cast: Cast, text: str) -> str:
    response = cast.operator.get(cast.url("jump/"), {"q": text})
    return response["Location"] if response.status_code == 302 else response.content.decode()


def test_ids_and_their_beginnings_lead_to_what_they_name(cast: Cast) -> None:
    request = cast.session.requests[0]
    assert jump(cast, str(cast.session.id)) == cast.url(f"sessions/{cast.session.id}/")
    assert jump(cast, str(request)[:18]) == cast.url(f"requests/{request}/")
    assert jump(cast, str(request).upper()) == cast.url(f"requests/{request}/")


def test_hashes_lead_to_requests_and_epochs(cast: Cast) -> None:
    row = RequestRow.objects.get(id=cast.session.requests[0])
    assert jump(cast, row.request_sha256[:12]) == cast.url(f"requests/{row.id}/")
    plan = PlanRow.objects.get(session_id=cast.session.id)
    assert jump(cast, plan.prefix_sha256) == cast.url(f"sessions/{cast.session.id}/plan/?epoch=1")


def test_words_search_the_sessions(cast: Cast) -> None:
    assert jump(cast, "flaky test") == cast.url("sessions/?q=flaky+test")
    assert jump(cast, "") == cast.url("sessions/")


def test_several_matches_are_listed(cast: Cast) -> None:
    same = "abcd" + "0" * 60
    RequestRow.objects.filter(session_id=cast.session.id).update(request_sha256=same)
    page = jump(cast, "abcd0000")
    assert page.count('<span class="tag">request</span>') == len(cast.session.requests)
