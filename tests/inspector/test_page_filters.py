"""One rule for what lists may be asked: an unknown filter or value is 400 in words, never another list."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

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


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("requests/", {"q": "-status:failed"}),
        ("requests/", {"q": "Status:failed"}),
        ("requests/", {"q": "status:"}),
        ("requests/", {"q": "status:built", "status": "failed"}),
        ("requests/", {"q": "yield:any", "yielded": "tool_results"}),
        ("requests/", {"q": "origin:live", "origin": "reconstructed"}),
        ("requests/", {"q": "model:a", "model": "b"}),
        ("requests/", {"q": "engine:a", "engine": "b"}),
        ("sessions/", {"q": "-state:open"}),
        ("sessions/", {"q": "state:open", "state": "ended"}),
        ("sessions/", {"q": "engine:a", "engine": "b"}),
        ("sessions/", {"q": "format:a", "format": "b"}),
        ("search/", {"q": "word -role:tool"}),
        ("search/", {"q": "word role:tool", "role": "user"}),
    ],
)
def test_a_term_that_would_be_lost_is_refused_under_the_box(
    cast: Cast, path: str, query: dict[str, str]
) -> None:
    response = cast.operator.get(cast.url(path), query)
    assert response.status_code == 400
    assert 'id="q-problem"' in response.content.decode()
    assert cast.operator.get(cast.url(path[:-1] + ".csv"), query).status_code == 400


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("requests/", {"q": "status:failed", "origin": "live"}),
        ("sessions/", {"q": "nothing-has-this", "state": "open"}),
        ("search/", {"q": "repository"}),
        ("audit/", {"action": "session.open"}),
        ("jobs/", {"state": "failed"}),
    ],
)
def test_what_a_filter_changes_outside_the_list_is_swapped_with_it(
    cast: Cast, path: str, query: dict[str, str]
) -> None:
    """Links to the twins, numbers, Clear and the views would otherwise speak of the list before."""
    plain, found = (_main(cast.operator.get(cast.url(path), data)) for data in ({}, query))
    swapped = re.search(r'hx-select-oob="([^"]+)"', found)
    assert swapped
    names = ["results", *(name.removeprefix("#") for name in swapped[1].split(","))]
    before, after = _Left(names).of(plain), _Left(names).of(found)
    assert before == after
    assert _Left(["results"]).of(plain) != _Left(["results"]).of(found)
    for name in names:
        assert plain.count(f'id="{name}"') == found.count(f'id="{name}"') == 1


def _main(response: Any) -> str:
    text: str = response.content.decode()
    return text.partition("<main")[2].partition("</main>")[0]


class _Left(HTMLParser):
    """What a page says and links to outside of some elements; what a reader set in a field is left out."""

    VOID = frozenset({"input", "br", "hr", "img", "meta", "link", "wbr"})

    def __init__(self, without: list[str]) -> None:
        super().__init__()
        self.without, self.depth, self.told = frozenset(without), 0, []

    told: list[tuple[str, str]]

    def of(self, text: str) -> list[tuple[str, str]]:
        self.feed("<main" + text)
        return self.told

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if tag not in self.VOID and (self.depth or held.get("id") in self.without):
            self.depth += 1
        elif not self.depth and tag == "a":
            self.told.append(("href", held.get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        self.depth -= bool(self.depth and tag not in self.VOID)

    def handle_data(self, data: str) -> None:
        if not self.depth and data.strip():
            self.told.append(("text", data.strip()))
