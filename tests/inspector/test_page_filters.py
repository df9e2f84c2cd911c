"""One rule for what lists may be asked: an unknown filter or value is 400 in words, never another list."""

from __future__ import annotations

import pytest

from tests.inspector.conftest import Cast

LISTS = (
    "",
    "sessions/",
    "requests/",
    "metrics/",
    "personas/",
    "agents/",
    "policies/",
    "imports/",
    "jobs/",
    "models/",
    "providers/",
    "sessions/{session}/",
    "sessions/{session}/events/",
    "sessions/{session}/plan/",
    "sessions/{session}/epochs/",
    "sessions/{session}/state/",
    "sessions/{session}/compactions/",
    "requests/{request}/items/",
)


def address(cast: Cast, path: str) -> str:
    return cast.url(path.format(session=cast.session.id, request=cast.session.requests[0]))


@pytest.mark.parametrize("path", LISTS)
def test_an_unknown_filter_is_400_and_the_page_says_which_there_are(cast: Cast, path: str) -> None:
    response = cast.operator.get(address(cast, path), {"colour": "red"})
    assert response.status_code == 400
    assert "no filter “colour”" in response.content.decode()
    assert cast.operator.get(address(cast, path)).status_code == 200


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("", "w", "99y"),
        ("requests/", "yielded", "zzz"),
        ("requests/", "status", "zzz"),
        ("requests/", "origin", "mars"),
        ("requests/", "verdict", "zzz"),
        ("requests/", "from", "soon"),
        ("requests/", "q", "status:zzz"),
        ("requests/", "q", "yield:zzz"),
        ("sessions/", "state", "zzz"),
        ("sessions/", "has", "zzz"),
        ("sessions/", "size", "7"),
        ("sessions/", "q", "state:zzz"),
        ("jobs/", "state", "zzz"),
        ("jobs/", "session", "zzz"),
        ("jobs/", "size", "7"),
        ("providers/", "w", "99y"),
        ("sessions/{session}/", "from", "x"),
        ("sessions/{session}/events/", "type", "zzz"),
        ("sessions/{session}/events/", "before", "x"),
        ("requests/{request}/items/", "kind", "zzz"),
        ("requests/{request}/items/", "trust", "zzz"),
        ("requests/{request}/items/", "form", "zzz"),
    ],
)
def test_an_unknown_value_is_400_in_words(cast: Cast, path: str, name: str, value: str) -> None:
    response = cast.operator.get(address(cast, path), {name: value})
    assert response.status_code == 400
    assert name.split(":")[0] in response.content.decode()


def test_a_filter_that_stands_twice_is_400(cast: Cast) -> None:
    response = cast.operator.get(cast.url("requests/") + "?status=failed&status=built")
    assert response.status_code == 400
    assert "stands 2 times" in response.content.decode()


def test_the_json_twin_of_an_odd_question_is_a_problem(cast: Cast) -> None:
    response = cast.operator.get(cast.url("overview.json"), {"w": "99y"})
    assert response.status_code == 400
    assert response.json()["code"] == "invalid_filter"


def test_a_filter_from_a_link_stands_above_the_list_and_can_be_dropped(cast: Cast) -> None:
    page = cast.page("sessions/", agent="coder@12", state="open")
    assert "agent: coder@12" in page
    assert 'href="?state=open" aria-label="Drop the filter agent"' in page
    assert cast.data("sessions.json", agent="coder@13") == []
    assert len(cast.data("sessions.json", agent="coder@12")) == 1


def test_sessions_are_found_by_policy_and_by_what_happened(cast: Cast, pressed: object) -> None:
    lines = cast.data("sessions.json", has="pressure")
    assert [line["title"] for line in lines] == ["Nightly sync"]
    assert cast.data("sessions.json", has="pressure", to="2020-01-01") == []
    assert len(cast.data("sessions.json", policy="default@1")) >= 1
    assert cast.data("sessions.json", policy="default@99") == []
