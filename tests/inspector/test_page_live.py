"""What an open page is told about newer rows: a number and a link, and nothing where there is nothing."""

from __future__ import annotations

import html
import re

from django.http import HttpResponse

from ctxengine.ledger.models import SessionRow
from ctxengine.ledger.queries.paging import Cursor
from tests.factories import worked_session
from tests.inspector.conftest import Cast

PAGES = ("", "sessions/", "requests/", "sessions/{session}/", "sessions/{session}/events/")


def asked(page: str) -> str:
    """Where a page asks."""
    found = re.search(r'class="news"[^>]* hx-get="([^"]+)"', page)
    assert found, "the page does not ask"
    return html.unescape(found[1])


def news(cast: Cast, address: str) -> HttpResponse:
    response: HttpResponse = cast.operator.get(address)
    return response


def test_a_page_with_nothing_newer_is_told_nothing(cast: Cast) -> None:
    for path in PAGES:
        address = asked(cast.page(path.format(session=cast.session.id)))
        response = news(cast, address)
        assert (response.status_code, response.content) == (204, b""), path


def test_each_page_is_told_how_much_is_newer_and_where_it_is_shown(cast: Cast) -> None:
    pages = [path.format(session=cast.session.id) for path in PAGES]
    asks = [asked(cast.page(path)) for path in pages]
    cast.session.ask("One more.").build()
    for path, address in zip(pages, asks, strict=True):
        response = news(cast, address)
        assert response.status_code == 200, path
        assert f'href="{cast.url(path)}"' in response.content.decode()
        assert "no-store" in response["Cache-Control"]
    told = [news(cast, address).content.decode() for address in asks]
    assert "<b>1</b> newer request " in told[0]
    assert "<b>1</b> session went on" in told[1]
    assert "<b>1</b> newer request " in told[2]
    assert "newer events" in told[3]


def test_only_what_the_filter_holds_is_news(cast: Cast) -> None:
    address = asked(cast.page("requests/", status="failed", q="epoch:>0"))
    cast.session.ask("One more.").build()
    assert news(cast, address).status_code == 204
    address = asked(cast.page("requests/", status="built", q="epoch:>0"))
    worked_session(cast.tenant).ask("Another.").build()
    told = html.unescape(news(cast, address).content.decode())
    assert cast.url("requests/?status=built&q=epoch%3A%3E0") in told


def test_later_pages_do_not_ask(cast: Cast) -> None:
    first = SessionRow.objects.get(id=cast.session.id)
    page = cast.page("sessions/", after=Cursor(first.active_at, first.id).text())
    assert 'class="news"' not in page


def test_an_odd_question_is_refused_in_words(cast: Cast) -> None:
    for path in ("f/news/requests/", "f/news/sessions/", "f/news/overview/"):
        assert cast.operator.get(cast.url(path)).status_code == 400
        assert cast.operator.get(cast.url(path), {"newest": "x"}).status_code == 400
    odd = cast.operator.get(cast.url(f"sessions/{cast.session.id}/f/news/"), {"tab": "x"})
    assert odd.status_code == 400


def test_events_of_another_type_are_no_news(cast: Cast) -> None:
    events = f"sessions/{cast.session.id}/events/"
    built, said = (
        asked(cast.page(events, type=kind))
        for kind in ("model.request.started", "user.message.created")
    )
    epochs = asked(cast.page(events, type="context.epoch.rotated"))
    cast.session.ask("One more.").build()
    assert news(cast, epochs).status_code == 204
    for address, told in ((said, "<b>1</b> newer event "), (built, "<b>1</b> newer event ")):
        text = news(cast, address).content.decode()
        assert told in text
    assert (
        f'href="{cast.url(events)}?type=model.request.started"'
        in news(cast, built).content.decode()
    )
    odd = cast.operator.get(cast.url(f"sessions/{cast.session.id}/f/news/"), {"type": "x"})
    assert odd.status_code == 400


def test_events_and_runs_from_an_older_place_on_do_not_ask(cast: Cast) -> None:
    for place in ({"before": "3"}, {"at": "2"}, {"at": "2", "type": "user.message.created"}):
        page = cast.page(f"sessions/{cast.session.id}/events/", **place)
        assert 'class="news"' not in page, place
    page = cast.page(f"sessions/{cast.session.id}/", before="2")
    assert 'class="news"' not in page


def test_the_way_to_what_is_newer_keeps_the_size_of_the_pages(cast: Cast) -> None:
    for path in ("sessions/", "requests/"):
        address = asked(cast.page(path, size="200"))
        cast.session.ask("One more.").build()
        cast.session.answer("Yes.")
        told = html.unescape(news(cast, address).content.decode())
        assert f'href="{cast.url(path)}?size=200"' in told
        # A later page says nothing: what is newer does not stand on it.
        after = address.rpartition("newest=")[2]
        assert 'class="news"' not in cast.page(path, size="200", after=after)
