"""The jump box."""

from __future__ import annotations

from ctxengine.ledger.models import Event, ItemRow, PlanRow, RequestRow, RunRow
from ctxengine.service.search.index_session import index_session
from tests.factories import make_tenant, worked_session
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


def test_words_are_searched_for(cast: Cast) -> None:
    assert jump(cast, "flaky test") == cast.url("search/?q=flaky+test")
    assert jump(cast, "fatal: no") == cast.url("search/?q=%22fatal%3A+no%22")
    assert jump(cast, "") == cast.url("sessions/")


def test_runs_jobs_events_and_items_are_found_by_their_hashes(cast: Cast) -> None:
    index_session(tenant_id=cast.tenant.id, session_id=cast.session.id)
    session = f"sessions/{cast.session.id}/"
    event = Event.objects.get(session_id=cast.session.id, sequence=3)
    assert jump(cast, event.hash[:20]) == cast.url(f"{session}events/?at=3#e-3")
    assert jump(cast, event.hash) == cast.url(f"{session}events/?at=3#e-3")
    assert jump(cast, event.hash[:20] + "0" * 44) != cast.url(f"{session}events/?at=3#e-3")
    item = ItemRow.objects.filter(session_id=cast.session.id).order_by("sequence").first()
    assert item is not None
    assert f"{session}items/{item.sequence}.{item.ordinal}/" in jump(cast, item.digest)
    run = RunRow.objects.get(session_id=cast.session.id, number=2)
    assert jump(cast, str(run.id)) == cast.url(f"{session}?before=3#run-2")


def test_a_hash_of_another_tenant_names_nothing(cast: Cast) -> None:
    other = worked_session(make_tenant())
    index_session(tenant_id=other.tenant.id, session_id=other.id)
    event = Event.objects.get(session_id=other.id, sequence=3)
    assert jump(cast, event.hash) == cast.url(f"search/?q={event.hash}")


def test_several_matches_are_listed(cast: Cast) -> None:
    same = "abcd" + "0" * 60
    RequestRow.objects.filter(session_id=cast.session.id).update(request_sha256=same)
    page = jump(cast, "abcd0000")
    assert page.count('<span class="tag">request</span>') == len(cast.session.requests)
