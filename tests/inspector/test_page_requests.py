"""P4: requests across sessions, and the way to a comparison."""

from __future__ import annotations

import re

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


def test_one_tick_leads_back_to_the_same_list_and_says_what_is_missing(cast: Cast) -> None:
    ticks = {"r": [str(cast.session.requests[0]), "x"], "from": "status=answered&ticked=0"}
    response = cast.operator.get(cast.url("diff/"), ticks)
    assert response["Location"] == cast.url("requests/?status=answered&ticked=1")
    page = cast.page("requests/", status="answered", ticked="1")
    assert "One request was ticked; tick two to compare them." in page
    assert 'value="status=answered&amp;ticked=1"' in page


def test_not_reported_is_not_nought(cast: Cast) -> None:
    cast.session.ask("And?").build()
    page = cast.page("requests/")
    assert "not reported" in page


def test_the_requests_of_one_session_are_a_list_of_their_own(
    cast: Cast, pressed: LiveSession
) -> None:
    session = cast.page(f"sessions/{pressed.id}/")
    assert f"/t/{cast.slug}/requests/?session={pressed.id}" in session
    page = cast.page("requests/", session=str(pressed.id))
    assert f"session: {pressed.id}" in page
    lines = cast.data("requests.json", session=str(pressed.id))
    assert {line["id"] for line in lines} == {str(one) for one in pressed.requests}
    refused = cast.operator.get(cast.url("requests/"), {"session": "the first"})
    assert refused.status_code == 400
    assert b"a whole id such as" in refused.content


def test_requests_with_figures_that_cannot_be_right_are_a_list_of_their_own(cast: Cast) -> None:
    odd = {"input_tokens": 2**50, "output_tokens": 1}
    cast.session.ask("And?").answer("So.", usage=odd)
    assert len(cast.data("requests.json", usage="unusable")) == 1
    told = {line["id"] for line in cast.data("requests.json", usage="reported")}
    assert told == {str(one) for one in cast.session.requests[:-1]}
    assert "which are left out" in cast.page(f"sessions/{cast.session.id}/")


def test_the_query_box_takes_trust_and_the_cached_share(cast: Cast, pressed: LiveSession) -> None:
    everything = {line["id"]: line for line in cast.data("requests.json")}
    external = cast.data("requests.json", q="trust:external")
    assert external
    assert {line["id"] for line in external} < set(everything)
    for line in external:
        found = cast.data(f"requests/{line['id']}.json")
        trusts = [figure["label"] for figure in found["frame"]["ruler"]["by_trust"]]
        assert "external" in trusts
    shares = {
        one: line["usage"]["read"] / sum(line["usage"][name] for name in ("fresh", "read", "write"))
        for one, line in everything.items()
        if line["usage"]["read"] is not None
    }
    for query, wanted in (
        ("cache:<0.5", {one for one, share in shares.items() if share < 0.5}),
        ("cache:>50%", {one for one, share in shares.items() if share > 0.5}),
    ):
        assert {line["id"] for line in cast.data("requests.json", q=query)} == wanted, query
    whole = "epoch:>0 trust:external yield:tool_results cache:<0.9 model:claude-sonnet-4-6"
    assert cast.operator.get(cast.url("requests/"), {"q": whole}).status_code == 200
    for odd in ("cache:0.5", "cache:<2", "cache:<x", "trust:mars"):
        response = cast.operator.get(cast.url("requests/"), {"q": odd})
        assert response.status_code == 400, odd
        assert odd.split(":")[0].encode() in response.content


def test_the_values_of_the_filters_are_counted_within_the_search(
    cast: Cast, pressed: LiveSession
) -> None:
    def numbers(page: str) -> dict[str, int]:
        found = re.findall(r'<option value="([^"]+)"[^>]*>[^<]*?\((\d+)\)</option>', page)
        return {value: int(number) for value, number in found}

    for query in ({}, {"session": str(pressed.id)}, {"q": "trust:external"}):
        lines = cast.data("requests.json", **query)
        counted = numbers(cast.page("requests/", **query))
        for status in ("built", "answered", "failed"):
            assert counted[status] == sum(line["status"] == status for line in lines)
        assert counted["live"] == len(lines)
        assert counted["any"] == sum(bool(line["yields"]) for line in lines)
        assert counted["history"] == sum("history" in line["yields"] for line in lines)
        narrowed = numbers(cast.page("requests/", **query, status="failed"))
        assert narrowed == counted, "a choice does not change what can be chosen"
