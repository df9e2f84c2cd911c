"""A session's events: windows of them, further ones by cursor, and those that come while somebody looks (ui P3)."""

from __future__ import annotations

import re

from ctxengine.ledger.models import Event
from tests.factories import make_tenant, worked_session
from tests.inspector.conftest import Cast

SHOWN = 80


def rows(text: str) -> list[int]:
    return [int(found) for found in re.findall(r'<tr id="e-(\d+)"', text)]


def events(cast: Cast) -> str:
    return f"sessions/{cast.session.id}/events/"


def part(cast: Cast, **query: object) -> str:
    response = cast.operator.get(cast.url(f"sessions/{cast.session.id}/f/events/"), query)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    return response.content.decode()


def test_windows_and_parts_together_are_every_event_once(cast: Cast) -> None:
    while Event.objects.filter(session_id=cast.session.id).count() <= 2 * SHOWN:
        cast.session.ask("More?").build()
        cast.session.answer("More.")
    page = cast.page(events(cast))
    seen = rows(page)
    assert len(seen) == SHOWN
    while True:
        asks = re.search(r'hx-get="([^"]+)" hx-trigger="revealed"', page)
        link = re.search(r'rel="next" href="([^"]+)"', page)
        if asks is None:
            assert "Start of the session" in page
            break
        # The link beside it leads to the same events.
        assert link
        whole = cast.operator.get(link[1].replace("&amp;", "&")).content.decode()
        page = cast.operator.get(asks[1].replace("&amp;", "&")).content.decode()
        assert rows(whole) == rows(page)
        assert len(page) < 150_000
        seen += rows(page)
    every = Event.objects.filter(session_id=cast.session.id).order_by("-sequence")
    assert seen == list(every.values_list("sequence", flat=True))


def test_a_follower_gets_what_came_since_in_order_and_without_a_gap(cast: Cast) -> None:
    page = cast.page(events(cast), follow=1)
    assert 'class="news"' not in page
    asks = re.search(r'class="follow"[^>]* hx-get="[^"]+after=(\d+)"', page)
    assert asks
    newest = int(asks[1])
    assert newest == rows(page)[0]
    address = cast.url(f"sessions/{cast.session.id}/f/events/")
    assert cast.operator.get(address, {"after": newest}).status_code == 204
    while Event.objects.filter(session_id=cast.session.id).count() <= newest + SHOWN + 5:
        cast.session.ask("More?").build()
        cast.session.answer("More.")
    first = part(cast, after=newest)
    assert rows(first) == list(range(newest + SHOWN, newest, -1))
    assert f"after={newest + SHOWN}" in first
    assert "intact" not in first, (
        "the link to the event before it is checked for the oldest one too"
    )
    last = part(cast, after=newest + SHOWN)
    assert rows(last)[-1] == newest + SHOWN + 1


def test_a_follower_of_one_type_gets_no_other(cast: Cast) -> None:
    kind = "user.message.created"
    page = cast.page(events(cast), follow=1, type=kind)
    assert re.search(rf'class="follow"[^>]* hx-get="[^"]+type={kind}&amp;after=\d+"', page)
    newest = Event.objects.filter(session_id=cast.session.id).latest("sequence").sequence
    cast.session.ask("One more.").build()
    assert len(rows(part(cast, after=newest, type=kind))) == 1
    assert cast.page(events(cast), type=kind).count("Follow</a>") == 1


def test_a_type_without_an_event_yet_is_followed_into_a_table_that_stands_there(cast: Cast) -> None:
    page = cast.page(events(cast), follow=1, type="context.compacted")
    assert "No event of this type yet." in page
    assert "<option selected>context.compacted</option>" in page
    target = re.search(r'class="follow"[^>]* hx-target="#([\w-]+)"', page)
    assert target and f'id="{target[1]}"' in page
    assert 'id="events-body"' not in cast.page(events(cast), type="context.compacted")


def test_what_is_read_out_of_a_followed_page_is_that_it_pauses_alone(cast: Cast) -> None:
    page = cast.page(events(cast), follow=1)
    line = re.search(r'<p class="follow".*?</p>(.*)', page)
    assert line and "role=" not in line[0].removesuffix(line[1])
    assert line[1] == '<b class="warn" id="paused" role="status"></b>'
    newest = Event.objects.filter(session_id=cast.session.id).latest("sequence").sequence
    cast.session.ask("One more.").build()
    assert 'role="status"' not in part(cast, after=newest)


def test_parts_of_others_are_not_found(cast: Cast) -> None:
    other = worked_session(make_tenant())
    assert cast.operator.get(cast.url(f"sessions/{other.id}/f/events/")).status_code == 404
