"""Secrets in stored content over REST: masked at every address that shows content, whatever scope asks, unless by `raw=1`."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from ctxengine.ledger.models import AuditEntry
from tests.api.door import Answer, Door, api_document, key_for

pytestmark = pytest.mark.django_db

SECRET = "sk-" + "ant-api03-" + "Zz9Yy8Xx" * 11
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in SECRET)
EXACT = {"requests/{wanted}/body"}
"""What is handed to the provider: its bytes are the request's own."""
NOT_OF_A_SESSION = re.compile(
    r"capacity-profiles|metrics|jobs|replays|imports|personas|people|presentation"
)


@pytest.fixture(params=["suffix", "working_set"])
def lived(request: pytest.FixtureRequest, door: Door) -> dict[str, list[str]]:
    """A closed turn with a secret in every kind of content, and what the names in addresses may stand for in it."""
    session = door.open(engine=request.param)
    blocks = f'[{{"type":"text","text":"My key is {ESCAPED}, keep it."}}]'
    sent = door.send("POST", f"sessions/{session}/runs", raw=f'{{"message":{blocks}}}'.encode())
    run = sent.ok()["id"]
    requests = [door.assemble(run)["request_id"]]
    door.calls(run, ("w1", "weather", {"city": "Oslo", "key": SECRET}))
    door.results(run, ("w1", f"first line\nthe key {SECRET} works\nlast line"))
    requests.append(door.assemble(run)["request_id"])
    door.says(run, f"Done with {SECRET}.")
    door.run(session, "And now?")
    items = [
        f"{event['sequence']}.0"
        for event in door.events(session)
        if door.get(f"sessions/{session}/items/{event['sequence']}.0").status == 200
    ]
    return {
        "session": [session],
        "wanted": requests,
        "other": requests[:1],
        "item": items,
        "epoch": ["1"],
    }


def addresses(lived: dict[str, list[str]], path: str) -> Iterator[str]:
    """The real addresses of one path of the document."""
    name = re.search(r"\{(\w+)\}", path)
    if name is None:
        yield path
        return
    for value in lived[name[1]]:
        yield from addresses(lived, path.replace(name[0], value))


def readings() -> dict[str, list[str]]:
    """Every GET address of the document that shows something of a session, with the names of its parameters."""
    return {
        path.removeprefix("/api/v1/"): [
            parameter["name"] for parameter in methods["get"].get("parameters", ())
        ]
        for path, methods in api_document()["paths"].items()
        if "get" in methods and not NOT_OF_A_SESSION.search(path)
    }


def decoded(value: Any) -> str:
    """All texts of an answer, those in base64 and those spelt with escapes included."""
    if isinstance(value, dict):
        return "\n".join(
            base64.b64decode(member).decode("utf-8", "surrogatepass")
            if name.endswith("_base64") and isinstance(member, str)
            else f"{name} {decoded(member)}"
            for name, member in value.items()
        )
    if isinstance(value, list):
        return "\n".join(map(decoded, value))
    return str(value)


def shows(answer: Answer) -> bool:
    seen = decoded(answer.ok())
    return SECRET in seen or ESCAPED in seen


@pytest.mark.parametrize("scope", ["read", "runtime", "operate"])
def test_no_address_shows_a_secret_that_content_holds(
    lived: dict[str, list[str]], tenant: UUID, scope: str
) -> None:
    reader = Door(key_for(tenant, scope))
    looked = 0
    for path, parameters in readings().items():
        query = "?bodies=1" if "bodies" in parameters else ""
        for real in addresses(lived, path):
            answer = reader.get(real + query)
            if "evidence" in path and answer.status == 404:
                continue
            assert shows(answer) is (path in EXACT), real
            looked += 1
    assert looked > 20
    assert not AuditEntry.objects.filter(action="content.read_raw").exists()


def test_every_address_with_raw_shows_it_to_an_operator_alone_and_notes_it(
    lived: dict[str, list[str]], tenant: UUID
) -> None:
    operator, others = Door(key_for(tenant, "operate")), ("read", "runtime")
    (session,) = lived["session"]
    with_raw = {path: names for path, names in readings().items() if "raw" in names}
    assert {path.rpartition("/{")[0] or path for path in with_raw} >= {
        "sessions/{session}/items",
        "sessions/{session}/evidence",
    }
    for path, names in with_raw.items():
        if path.endswith("export"):
            continue  # tests/api/test_api_exports.py
        shown = []
        for real in addresses(lived, path):
            query = "?raw=1" + ("&bodies=1" if "bodies" in names else "")
            for scope in others:
                refused = Door(key_for(tenant, scope)).get(real + query)
                assert (refused.status, refused.code) == (403, "scope_missing"), real
            before = AuditEntry.objects.count()
            answer = operator.get(real + query)
            if answer.status == 404:
                assert AuditEntry.objects.count() == before, "nothing was shown"
                continue
            shown.append(shows(answer))
            assert AuditEntry.objects.count() == before + 1
            entry = AuditEntry.objects.latest("at")
            assert (entry.action, entry.target) == ("content.read_raw", session)
            assert SECRET not in json.dumps(entry.after)
        assert any(shown), path


def test_a_secret_cannot_be_read_piece_by_piece(lived: dict[str, list[str]], door: Door) -> None:
    (session,) = lived["session"]
    (item,) = [
        item
        for item in lived["item"]
        if door.get(f"sessions/{session}/evidence/{item}").status == 200
    ]
    address = f"evidence/{session}:{item}"
    length = door.get(address).ok()["characters"]
    pieces = []
    for start in range(1, length + 1, 7):
        end = min(start + 6, length)
        pieces.append(door.get(f"{address}?chars={start}-{end}").ok()["part"].partition("]\n")[2])
    whole = "".join(pieces)
    assert whole.startswith("first line\nthe key ") and whole.endswith("works\nlast line")
    assert SECRET[:20] not in whole


def test_an_events_page_without_bodies_is_no_reading_of_content(
    lived: dict[str, list[str]], tenant: UUID
) -> None:
    operator = Door(key_for(tenant, "operate"))
    operator.get(f"sessions/{lived['session'][0]}/events?raw=1").ok()
    assert not AuditEntry.objects.filter(action="content.read_raw").exists()
