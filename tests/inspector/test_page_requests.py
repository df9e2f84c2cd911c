"""P4: requests across sessions, and the way to a comparison."""

from __future__ import annotations

from tests.factories import LiveSession
from tests.inspector.conftest import Cast


def test_requests_are_filtered_by_what_yielded(cast: Cast, pressed: LiveSession) -> None:
    lines = cast.data("requests.json", yielded="any")
    assert lines
    assert {line["session_id"] for line in lines} == {str(pressed.id)}
    assert all(line["yields"] for line in lines)
    same = cast.data("requests.json", q="yield:tool_results")
    assert same
    assert {line["id"] for line in same} <= {line["id"] for line in lines}


def test_a_hash_or_id_prefix_finds_its_request(cast: Cast) -> None:
    wanted = cast.session.requests[1]
    lines = cast.data("requests.json", q=str(wanted)[:13])
    assert [line["id"] for line in lines] == [str(wanted)]


def test_an_unknown_origin_is_refused_in_words(cast: Cast) -> None:
    response = cast.operator.get(cast.url("requests/"), {"q": "origin:mars"})
    assert response.status_code == 400
    assert b"live or reconstructed" in response.content


def test_two_ticked_requests_are_compared_oldest_first(cast: Cast) -> None:
    first, second = cast.session.requests[0], cast.session.requests[2]
    response = cast.operator.get(cast.url("diff/"), {"r": [str(second), str(first)]})
    assert response["Location"] == cast.url(f"requests/{first}/diff/{second}/")


def test_one_tick_leads_back_to_the_list(cast: Cast) -> None:
    response = cast.operator.get(cast.url("diff/"), {"r": [str(cast.session.requests[0]), "x"]})
    assert response["Location"] == cast.url("requests/")


def test_not_reported_is_not_nought(cast: Cast) -> None:
    cast.session.ask("And?").build()
    page = cast.page("requests/")
    assert "not reported" in page
