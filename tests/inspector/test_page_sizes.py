"""How long a list's pages are, and how long the list is: in the address, kept by cursors and filters (ui 1.18)."""

from __future__ import annotations

import re

from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.ledger.queries.paging import Total, total_of
from tests.factories import pressed_session
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


def told(page: str) -> str:
    found = re.search(r'id="total">([^<]*)<', page)
    assert found
    return found[1].strip()


def test_a_total_is_told_where_it_is_cheap(cast: Cast) -> None:
    many_sessions(cast, 60)
    assert told(cast.page("sessions/")) == "61 in all"
    assert told(cast.page("sessions/", engine="suffix")) == "61 match"
    # Looking through every title for a word is not cheap, unless the page holds all that was found.
    assert told(cast.page("sessions/", q="s")) == ""
    assert told(cast.page("sessions/", q="flaky")) == "1 matches"
    pressed_session(cast.tenant)
    number = RequestRow.objects.filter(tenant_id=cast.tenant.id).count()
    assert told(cast.page("requests/")) == f"{number} in all"


def test_a_long_list_is_counted_up_to_a_bound(cast: Cast) -> None:
    many_sessions(cast, 5)
    rows = SessionRow.objects.filter(tenant_id=cast.tenant.id)
    assert total_of(rows, most=6) == Total(6, False)
    assert total_of(rows, most=5) == Total(5, True)
