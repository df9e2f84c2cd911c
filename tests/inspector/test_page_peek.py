"""The drawer beside a list: the same figures as the page that it leads to, and never an address of its own."""

from __future__ import annotations

import re

from ctxengine.ledger.models import RequestRow
from tests.factories import LiveSession, make_tenant, worked_session
from tests.inspector.conftest import Cast


def peek(cast: Cast, path: str, **query: str) -> str:
    response = cast.operator.get(cast.url(f"{path}f/peek/"), query, headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    text: str = response.content.decode()
    assert "<html" not in text
    return text


def sums(text: str) -> list[str]:
    """The ruler's figures, name by name."""
    return re.findall(
        r"(?:A · frozen prefix|B · turn body|free|margin|output reserve)\D+([\d,]+)<", text
    )


def test_every_line_of_a_list_opens_and_is_a_plain_link_besides(
    cast: Cast, pressed: LiveSession
) -> None:
    for path in ("sessions/", "requests/"):
        page = cast.page(path)
        lines = re.findall(r'<td class="main">(.*?)</td>', page, re.S)
        assert lines
        for line in lines:
            link = re.search(r'<a href="([^"]+)"', line)
            asks = re.search(r'<button [^>]*hx-get="([^"]+)"[^>]*data-peek', line)
            assert link and asks, line
            assert asks[1].startswith(link[1].partition("?")[0])
            assert cast.operator.get(asks[1]).status_code == 200
    assert pressed.requests


def test_a_session_says_what_its_page_says(cast: Cast, kept: LiveSession) -> None:
    text = peek(cast, f"sessions/{kept.id}/")
    newest = RequestRow.objects.filter(session_id=kept.id).latest("number")
    page = cast.page(f"requests/{newest.id}/")
    assert f"/requests/{newest.id}/" in text
    assert len(sums(text)) == 5
    assert sums(text) == sums(page)[:5]
    assert "2 in all" in text
    assert re.search(r"event \d+</a> [\d,]+ → [\d,]+ tokens", text)
    for tab in ("turns", "state", "plan", "epochs", "compactions", "events"):
        assert f"/sessions/{kept.id}/{tab}/" in text


def test_a_request_keeps_the_list_that_it_was_opened_from(cast: Cast, pressed: LiveSession) -> None:
    page = cast.page("requests/", yielded="any")
    asks = re.findall(r'hx-get="([^"]+f/peek/\?in=[^"]+)"', page)
    assert len(asks) == page.count("data-peek>")
    text = cast.operator.get(asks[0]).content.decode()
    assert re.search(r'id="peek-open" href="[^"]+\?in=yielded%3Dany"', text)
    assert "yielded" in text
    assert sums(text) == sums(cast.page(f"requests/{asks[0].split('/')[4]}/"))[:5]


def test_a_session_without_a_request_says_so(cast: Cast) -> None:
    fresh = LiveSession(cast.tenant)
    assert "None was built yet." in peek(cast, f"sessions/{fresh.id}/")


def test_what_belongs_to_others_is_not_found(cast: Cast) -> None:
    other = worked_session(make_tenant())
    for path in (f"sessions/{other.id}/", f"requests/{other.requests[0]}/"):
        assert cast.operator.get(cast.url(f"{path}f/peek/")).status_code == 404
