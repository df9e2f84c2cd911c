"""Requests that a long import only outlined are whole in every REST answer."""

from __future__ import annotations

import json

import pytest

from ctxengine.ledger.models import RequestRow
from ctxengine.service import reconstruct
from tests.api.door import Door
from tests.api.test_api_imports import CHAT


@pytest.fixture
def session(door: Door, monkeypatch: pytest.MonkeyPatch) -> str:
    """An imported session of which nothing is rebuilt yet."""
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", 0)
    answer = door.send("POST", "imports?name=ports.json", raw=json.dumps(CHAT).encode())
    assert set(RequestRow.objects.values_list("request_sha256", flat=True)) == {""}
    found: str = answer.ok()["import"]["sessions"][0]
    return found


def test_a_page_of_requests_rebuilds_what_it_shows(door: Door, session: str) -> None:
    page = door.get(f"sessions/{session}/requests?limit=1").ok()
    assert [len(line["request_sha256"]) for line in page["items"]] == [64]
    assert RequestRow.objects.get(number=2).request_sha256 == ""
    again = door.get(f"sessions/{session}/requests").ok()
    assert [len(line["request_sha256"]) for line in again["items"]] == [64, 64]


def test_one_request_its_body_its_replay_and_its_difference(door: Door, session: str) -> None:
    first, second = RequestRow.objects.order_by("number")
    whole = door.get(f"requests/{first.id}").json
    assert len(whole["manifest"]["rows"]) == 15
    assert door.get(f"requests/{second.id}/body").status == 200
    assert door.get(f"requests/{second.id}/replay").json["identical"] is True
    assert len(door.get(f"requests/{first.id}/diff/{second.id}").json["rows"]) == 15
