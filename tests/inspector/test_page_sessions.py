"""P2: the list of sessions; its address is its whole state."""

from __future__ import annotations

import csv
import io
import re
import uuid
from datetime import timedelta

from ctxengine.ledger.models import SessionRow
from tests.factories import LiveSession, make_tenant, pressed_session
from tests.inspector.conftest import Cast


def many_sessions(cast: Cast, number: int) -> None:
    """Rows alone: a list needs no more."""
    row = SessionRow.objects.get(id=cast.session.id)
    for place in range(number):
        row.id, row.title = uuid.uuid4(), f"s{place:02}"
        row.active_at += timedelta(seconds=place % 3)
        row.save(force_insert=True)


def titles(cast: Cast, **query: str) -> list[str]:
    return [line["title"] for line in cast.data("sessions.json", **query)]


def test_words_narrow_by_title_agent_and_model(cast: Cast) -> None:
    LiveSession(cast.tenant, title="Release checklist", agent="clerk")
    assert titles(cast, q="checklist") == ["Release checklist"]
    assert titles(cast, q="agent:clerk") == ["Release checklist"]
    assert titles(cast, q="CHECKOUT flaky") == ["Fix flaky checkout test"]
    assert titles(cast, q="nothing-like-it") == []


def test_selects_and_terms_are_the_same_filter(cast: Cast) -> None:
    assert titles(cast, engine="suffix") == titles(cast, q="engine:suffix")
    assert titles(cast, format="live") == ["Fix flaky checkout test"]
    assert titles(cast, format="any") == []


def test_a_query_that_cannot_be_read_is_400_and_keeps_its_text(cast: Cast) -> None:
    response = cast.operator.get(cast.url("sessions/"), {"q": 'colour:red "x'})
    page = response.content.decode()
    assert response.status_code == 400
    assert "no field colour: here" in page
    assert "colour:red &quot;x" in page


def test_pages_follow_a_cursor_without_gap_or_repeat(cast: Cast) -> None:
    many_sessions(cast, 60)
    seen: list[str] = []
    query: dict[str, str] = {}
    while True:
        page = cast.page("sessions/", **query)
        seen += re.findall(r">(s\d\d)</a>", page)
        older = re.search(r'rel="next" href="\?after=([^"&]+)"', page)
        if older is None:
            break
        query = {"after": older[1]}
    assert len(seen) == 60
    assert set(seen) == {f"s{number:02}" for number in range(60)}


def test_a_forged_cursor_is_refused_in_words(cast: Cast) -> None:
    response = cast.operator.get(cast.url("sessions/"), {"after": "!!!"})
    assert response.status_code == 400
    assert b"Start from the first page" in response.content


def test_csv_has_every_line_and_defuses_formulas(cast: Cast) -> None:
    LiveSession(cast.tenant, title='=HYPERLINK("http://x")')
    text = cast.operator.get(cast.url("sessions.csv")).getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["title"] for row in rows} == {"Fix flaky checkout test", '\'=HYPERLINK("http://x")'}
    assert rows[0]["peak_tokens"].isdigit()


def test_another_tenants_sessions_never_show(cast: Cast) -> None:
    LiveSession(make_tenant(), title="Somebody else's")
    assert titles(cast) == ["Fix flaky checkout test"]


def test_an_empty_tenant_is_told_what_fills_it(cast: Cast) -> None:
    SessionRow.objects.filter(tenant_id=cast.tenant.id).delete()
    assert "api/v1/sessions" in cast.page("sessions/")


def test_the_list_asks_as_often_at_ten_as_at_a_hundred(
    cast: Cast, django_assert_num_queries: object
) -> None:
    many_sessions(cast, 10)
    with django_assert_num_queries(6):  # type: ignore[operator]
        cast.page("sessions/")
    many_sessions(cast, 90)
    with django_assert_num_queries(6):  # type: ignore[operator]
        cast.page("sessions/")


def test_sessions_are_found_by_yields_trust_and_cached_share(cast: Cast) -> None:
    pressed = pressed_session(cast.tenant, title="Nightly sync")
    assert [line["id"] for line in cast.data("sessions.json", q="yield:any")] == [str(pressed.id)]
    assert cast.data("sessions.json", q="trust:external")
    everything = {line["id"] for line in cast.data("sessions.json")}
    high = {line["id"] for line in cast.data("sessions.json", q="cache:>0.4")}
    low = {line["id"] for line in cast.data("sessions.json", q="cache:<0.4")}
    assert high | low == everything
    assert not high & low
    assert cast.operator.get(cast.url("sessions/"), {"q": "yield:x"}).status_code == 400
