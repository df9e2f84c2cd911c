"""Pages of a session whose import only outlined its requests."""

from __future__ import annotations

import html
import json
import re

import pytest

from ctxengine.ledger.models import RequestRow
from ctxengine.service import reconstruct
from ctxengine.service.import_transcript import import_file
from ctxengine.service.specs import Actor
from tests.inspector.conftest import Cast

TURNS = 3
CHAT = [
    {"role": role, "content": f"{role} says {turn}."}
    for turn in range(TURNS)
    for role in ("user", "assistant")
]


@pytest.fixture
def outlined(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session of which nothing is rebuilt yet."""
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", 0)
    outcome = import_file(
        actor=Actor(cast.tenant.id, "test"), name="chat.json", data=json.dumps(CHAT).encode()
    )
    return str(outcome.session_ids[0])


def unmade(session: str) -> int:
    return RequestRow.objects.filter(session_id=session, request_sha256="").count()


def test_a_list_says_which_requests_are_not_rebuilt_yet(cast: Cast, outlined: str) -> None:
    page = cast.page("requests/", origin="reconstructed")
    assert page.count("not rebuilt yet") == TURNS
    assert unmade(outlined) == TURNS


def test_opening_a_request_rebuilds_it(cast: Cast, outlined: str) -> None:
    row = RequestRow.objects.get(session_id=outlined, number=2)
    assert "within the largest suffix that fits" in cast.page(f"requests/{row.id}/")
    assert unmade(outlined) == TURNS - 1
    last = RequestRow.objects.get(session_id=outlined, number=3)
    cast.page(f"requests/{last.id}/events/")
    assert unmade(outlined) == TURNS - 2


def test_the_strip_of_a_session_is_drawn_from_whole_requests(cast: Cast, outlined: str) -> None:
    cast.page(f"sessions/{outlined}/")
    assert unmade(outlined) == 0


def test_a_look_beside_a_list_rebuilds_nothing(cast: Cast, outlined: str) -> None:
    asks: list[str] = []
    for page in (cast.page("requests/", origin="reconstructed"), cast.page("sessions/")):
        asks += re.findall(r'hx-get="([^"]+f/peek/[^"]*)"', page)
    rows = RequestRow.objects.filter(session_id=outlined)
    texts = [cast.operator.get(html.unescape(address)).content.decode() for address in asks]
    assert unmade(outlined) == TURNS
    for row in rows:
        (text,) = (text for text in texts if f"<h2>Request {row.run_number}.{row.step}<" in text)
        assert "is outlined by the import; it is built once it is opened." in text
        opened = re.search(r'id="peek-open" href="([^"]+)"', text)
        assert opened and opened[1].endswith(f"/{row.id}/?in=origin%3Dreconstructed")
    cast.operator.get(opened[1])
    assert unmade(outlined) == TURNS - 1
    again = next(address for address in asks if str(rows.latest("number").id) in address)
    assert "Where " in cast.operator.get(html.unescape(again)).content.decode()
    odd = cast.operator.get(again.partition("?")[0], {"in": "status=odd"})
    assert odd.status_code == 400
