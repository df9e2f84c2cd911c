"""How long a list's pages are, and how long the list is: in the address, kept by cursors and filters (ui 1.18)."""

from __future__ import annotations

import re
import uuid
from functools import partial
from importlib import import_module

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ctxengine.ledger.models import PlanRow, RequestRow, SessionRow
from ctxengine.ledger.queries.paging import Total, total_of, total_within
from ctxengine.service.rotate_epoch import rotate_epoch
from tests.factories import LiveSession, pressed_session
from tests.inspector.conftest import Cast
from tests.inspector.test_page_sessions import many_sessions

LISTS = (
    "sessions/", "requests/", "jobs/", "audit/", "search/?q=the", "lab/", "personas/", "imports/",
    "sessions/{session}/epochs/", "sessions/{session}/compactions/",
)  # fmt: skip


def test_every_list_takes_two_sizes_and_no_other(cast: Cast) -> None:
    for path in LISTS:
        path = path.format(session=cast.session.id)
        join = "&" if "?" in path else "?"
        for size, status in ((50, 200), (200, 200), (7, 400)):
            response = cast.operator.get(cast.url(f"{path}{join}size={size}"))
            assert response.status_code == status, (path, size)


def test_a_size_is_kept_by_cursor_and_filter(cast: Cast) -> None:
    many_sessions(cast, 210)
    page = cast.page("sessions/", size="200")
    assert page.count("data-peek>") == 200
    older = re.search(r'rel="next" href="\?([^"]+)"', page)
    assert older and "size=200" in older[1]
    assert '<input type="hidden" name="size" value="200">' in page
    rest = cast.operator.get(cast.url("sessions/?" + older[1].replace("&amp;", "&")))
    assert rest.content.decode().count("data-peek>") == 11
    assert cast.page("sessions/").count("data-peek>") == 50


def test_a_larger_page_begins_where_the_smaller_one_did(cast: Cast) -> None:
    many_sessions(cast, 60)
    first = cast.page("sessions/")
    older = re.search(r'rel="next" href="\?(after=[^"]+)"', first)
    assert older
    page = cast.operator.get(cast.url("sessions/?" + older[1])).content.decode()
    larger = re.search(r'href="\?([^"]+)">200</a>', page)
    assert larger and older[1] in larger[1].replace("&amp;", "&")


def many_requests(cast: Cast, number: int) -> None:
    """Rows alone, behind the newest one of the cast's session."""
    row = RequestRow.objects.filter(session_id=cast.session.id).latest("number")
    for _ in range(number):
        row.id, row.number, row.step = uuid.uuid4(), row.number + 1, row.step + 1
        row.content_sequence += 1
        row.save(force_insert=True)


def told(page: str) -> str:
    found = re.search(r'id="total">([^<]*)<', page)
    assert found
    return found[1].strip()


def test_a_total_is_told_where_it_is_cheap(cast: Cast) -> None:
    many_sessions(cast, 60)
    assert told(cast.page("sessions/")) == "61 in all"
    assert told(cast.page("sessions/", engine="suffix")) == "61 matching"
    # Looking through every title for a word is not cheap, unless the page holds all that was found.
    assert told(cast.page("sessions/", q="s")) == ""
    assert told(cast.page("sessions/", q="flaky")) == "1 matching"
    pressed_session(cast.tenant)
    number = RequestRow.objects.filter(tenant_id=cast.tenant.id).count()
    assert told(cast.page("requests/")) == f"{number} in all"


def test_a_long_list_is_counted_up_to_a_bound(cast: Cast) -> None:
    many_sessions(cast, 5)
    rows = SessionRow.objects.filter(tenant_id=cast.tenant.id)
    assert total_of(rows, most=6) == Total(6, False)
    assert total_of(rows, most=5) == Total(5, True)


@pytest.mark.parametrize("path", ["sessions/", "requests/"])
def test_what_no_index_gives_is_not_counted_among_many(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A few matches among many rows cost as much as all of these."""
    many_sessions(cast, 60)
    many_requests(cast, 60)
    number = RequestRow.objects.filter(tenant_id=cast.tenant.id).count()
    every = 61 if path == "sessions/" else number
    same = "state" if path == "sessions/" else "origin"
    value = "open" if path == "sessions/" else "live"
    wanted = {same: value, "from": "2020-01-01T00:00:00Z"}
    assert told(cast.page(path, **wanted)) == f"{every} matching"
    page = import_module(f"inspector.pages.{path.rstrip('/')}")
    monkeypatch.setattr(page, "total_within", partial(total_within, most=every - 1))
    assert told(cast.page(path, **wanted)) == ""
    assert told(cast.page(path, **{"from": "2020-01-01T00:00:00Z"})) == f"{every} matching"
    if path == "requests/":
        here = {same: value, "session": str(cast.session.id)}
        monkeypatch.setattr(page, "total_within", partial(total_within, most=every))
        assert told(cast.page(path, **here)) == f"{every} matching"


def test_rows_are_looked_through_up_to_a_bound(cast: Cast) -> None:
    many_sessions(cast, 5)
    rows = SessionRow.objects.filter(tenant_id=cast.tenant.id)
    few = rows.filter(title="s01")
    assert total_within(rows, few, most=6) == Total(1, False)
    assert total_within(rows, few, most=5) is None


def test_a_drawer_reads_no_more_epochs_than_it_shows(cast: Cast, kept: LiveSession) -> None:
    for _ in range(4):
        rotate_epoch(
            actor=kept.actor, session_id=kept.id, reason="operator", note="A new beginning."
        )
        kept.ask("And now?").answer("Now we wait.")
    newest = PlanRow.objects.filter(session_id=kept.id).latest("epoch").epoch
    with CaptureQueriesContext(connection) as ran:
        page = cast.page(f"sessions/{kept.id}/f/peek/")
    shown = [int(epoch) for epoch in re.findall(r'/plan/\?epoch=(\d+)"', page)]
    assert shown == list(range(newest, newest - 4, -1))
    plans = [query["sql"] for query in ran if f'FROM "{PlanRow._meta.db_table}"' in query["sql"]]
    assert plans and all(" LIMIT " in sql for sql in plans)
