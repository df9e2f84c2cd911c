"""Cursors and query parameters."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from django.http import HttpRequest, QueryDict
from hypothesis import given
from hypothesis import strategies as st

from api.pagination import cursor, cursor_of, flag, identifier, limit, moment, parameters_of, word
from api.problems import Problem


@given(
    st.integers(min_value=0, max_value=2**62),
    st.integers(min_value=0, max_value=2**37).map(lambda s: datetime.fromtimestamp(s, UTC)),
    st.uuids(),
)
def test_a_cursor_gives_back_the_key_it_was_made_from(
    number: int, at: datetime, ident: UUID
) -> None:
    text = cursor_of([number, at.isoformat(), ident])
    assert cursor(int, datetime, UUID).parse("cursor", text) == [number, at, ident]


@given(st.text(max_size=80) | st.binary(max_size=60).map(lambda b: cursor_of([b.hex()])))
def test_any_other_text_is_refused_as_a_cursor(text: str) -> None:
    with pytest.raises(Problem) as caught:
        cursor(int).parse("cursor", text)
    assert caught.value.kind.code == "invalid_cursor"


@pytest.mark.parametrize("key", [[1.5], [True], [2**70], ["x"], [1, 2], [None], []])
def test_a_cursor_of_another_list_is_refused(key: list[object]) -> None:
    with pytest.raises(Problem):
        cursor(int).parse("cursor", cursor_of(key))


def request_with(query: str) -> HttpRequest:
    request = HttpRequest()
    request.GET = QueryDict(query)
    return request


def test_parameters_are_parsed_and_only_those_sent_are_there() -> None:
    known = {
        "limit": limit(),
        "bodies": flag(""),
        "run": identifier(""),
        "since": moment(""),
        "q": word(""),
        "state": word("", "open", "ended"),
    }
    run = uuid4()
    query = f"limit=7&bodies=1&run={run}&since=2026-11-29T10:00:00Z&q=a+b&state=open"
    assert parameters_of(request_with(query), known) == {
        "limit": 7,
        "bodies": True,
        "run": run,
        "since": datetime(2026, 11, 29, 10, tzinfo=UTC),
        "q": "a b",
        "state": "open",
    }
    assert parameters_of(request_with(""), known) == {}


@pytest.mark.parametrize(
    "query",
    [
        "limit=201",
        "limit=x",
        "limit=%D9%A3",
        "bodies=yes",
        "run=1",
        "since=2026",
        "q=" + "a" * 301,
        "state=shut",
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(query: str) -> None:
    known = {
        "limit": limit(),
        "bodies": flag(""),
        "run": identifier(""),
        "since": moment(""),
        "q": word(""),
        "state": word("", "open"),
    }
    with pytest.raises(Problem) as caught:
        parameters_of(request_with(query), known)
    assert caught.value.kind.code == "invalid_parameter"
    assert caught.value.extra["parameter"] == query.partition("=")[0]
