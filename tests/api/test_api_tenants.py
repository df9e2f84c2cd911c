"""What belongs to a tenant does not exist for another one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import get_resolver

from api.urls import urlpatterns
from tests.api.door import WEATHER, Door

METRIC = WEATHER | {"name": "show_metric", "presentation": "metric"}

POSTS: dict[str, Any] = {
    "sessions/{session}/runs": {"message": "x"},
    "sessions/{session}/end": {},
    "sessions/{session}/reset": {},
    "sessions/{session}/presentations/{card}/feedback": {"verdict": "helpful"},
    "sessions/{session}/presentations/{card}/selection": {"choice": "x"},
    "sessions/{session}/epochs": {"reason": "operator", "note": "x"},
    "sessions/{session}/compactions": {"preview": True},
    "sessions/{session}/compactions/3/undo": {},
    "sessions/{session}/presentation": {"target": "3", "form": "pinned", "preview": True},
    "sessions/{session}/tools/weather/revoke": {"note": "x"},
    "sessions/{session}/tools/weather/restore": {"note": "x"},
    "runs/{run}/assemble": {},
    "runs/{run}/responses": {"response": {"content": [{"type": "text", "text": "x"}]}},
    "runs/{run}/tool-results": {"results": [{"call_id": "w1", "content": "x"}]},
    "runs/{run}/input": {"message": "x"},
    "runs/{run}/end": {},
}
EDITS: dict[str, tuple[str, Any]] = {
    "sessions/{session}/authority": ("PUT", {"scopes": []}),
    "sessions/{session}/working-state": ("PATCH", {"add_constraints": ["x"]}),
    "sessions/{session}": ("PATCH", {"environment": {"a": "b"}}),
}
GETS = [
    "sessions/{session}",
    "sessions/{session}/events",
    "sessions/{session}/requests",
    "sessions/{session}/export",
    "sessions/{session}/working-state",
    "sessions/{session}/compactions",
    "sessions/{session}/plan",
    "sessions/{session}/plans",
    "sessions/{session}/plans/1",
    "sessions/{session}/items/3.0",
    "sessions/{session}/cards",
    "sessions/{session}/evidence/{result}.0",
    "sessions/{session}/presentations",
    "sessions/{session}/presentations/{card}",
    "evidence/{session}:{result}.0",
    "requests/{request}",
    "requests/{request}/body",
    "requests/{request}/replay",
    "requests/{request}/diff/{request}",
]
LISTS = {
    "sessions",
    "imports",
    "imports/{sha256}",
    "personas",
    "personas/{principal}",
    "people/{principal}/erase",
    "capacity-profiles",
    "metrics",
    "jobs",
    "jobs/{job}",
    "jobs/{job}/cancel",
    "jobs/{job}/retry",
    "replays",
    "replays/{replay}",
    "replays/{replay}/cells/1/steps",
    "retention",
}
"""Addresses without an id of another tenant's; what is listed under them has tests of its own."""


@pytest.fixture
def places(door: Door) -> dict[str, str]:
    session = door.open(tools=[WEATHER, METRIC])
    run = door.run(session)
    request = door.assemble(run)["request_id"]
    shown = door.calls(
        run, ("w0", "weather", {}), ("m0", "show_metric", {"value": 3, "label": "x"})
    )
    card = json.loads(shown["calls"][1]["result"])["presentation"]
    door.results(run, ("w0", "sunny"))
    results = [e for e in door.events(session) if e["type"] == "tool.result.received"]
    door.assemble(run)
    door.calls(run, ("w1", "weather", {}))
    return {
        "session": session,
        "run": run,
        "request": request,
        "result": str(results[-1]["sequence"]),
        "card": card,
    }


def test_a_stranger_is_told_that_nothing_is_there(
    door: Door, stranger: Door, places: dict[str, str]
) -> None:
    before = door.events(places["session"])
    for path in GETS:
        assert door.get(path.format(**places)).status == 200, path
        answer = stranger.get(path.format(**places))
        assert (answer.status, answer.code) == (404, "not_found"), path
    for path, body in POSTS.items():
        for once in (None, "k-" + path[-5:]):
            answer = stranger.post(path.format(**places), body, once=once)
            assert (answer.status, answer.code) == (404, "not_found"), path
    for path, (method, body) in EDITS.items():
        answer = stranger.send(method, path.format(**places), body)
        assert (answer.status, answer.code) == (404, "not_found"), path
    assert door.events(places["session"]) == before


def test_a_stranger_lists_nothing_of_others(stranger: Door, places: dict[str, str]) -> None:
    assert stranger.get("sessions").ok() == {"items": [], "next_cursor": None}
    assert stranger.get(f"sessions?q={places['session']}").ok()["items"] == []


def test_a_difference_needs_both_requests(
    door: Door, stranger: Door, places: dict[str, str]
) -> None:
    own = stranger.assemble(stranger.run(stranger.open()))["request_id"]
    for a, b in ((own, places["request"]), (places["request"], own)):
        assert stranger.get(f"requests/{a}/diff/{b}").code == "not_found"


def test_a_delta_against_a_foreign_request_is_the_whole_request(
    stranger: Door, places: dict[str, str]
) -> None:
    run = stranger.run(stranger.open())
    assert "request" in stranger.assemble(run, base_request_id=places["request"])


def test_a_foreign_request_id_is_stale_and_not_found_out(
    stranger: Door, places: dict[str, str]
) -> None:
    run = stranger.run(stranger.open())
    stranger.assemble(run)
    body = {"request_id": places["request"], "response": {"content": []}}
    assert stranger.post(f"runs/{run}/responses", body).code == "stale_request"


def test_the_same_agent_name_in_two_tenants_is_two_agents(door: Door, stranger: Door) -> None:
    agent = {"name": "shared", "version": "1", "instructions": "mine"}
    door.open(agent=agent)
    stranger.open(agent={**agent, "instructions": "another"})


def test_every_address_is_in_this_matrix() -> None:
    known = {
        path.replace("{card}", "3").replace("{result}", "3")
        for path in (*POSTS, *EDITS, *GETS, *LISTS)
    }
    for pattern in urlpatterns:
        route = str(pattern.pattern)
        if not route.startswith("v1/"):
            continue
        plain = route.removeprefix("v1/")
        for converter, name in (
            ("<uuid:session>", "{session}"),
            ("<uuid:run>", "{run}"),
            ("<uuid:wanted>", "{request}"),
            ("<uuid:other>", "{request}"),
            ("<ctx_item:item>", "3.0"),
            ("<ctx_epoch:epoch>", "1"),
            ("<ctx_epoch:event>", "3"),
            ("<ctx_sha256:sha256>", "{sha256}"),
            ("<uuid:job>", "{job}"),
            ("<uuid:replay>", "{replay}"),
            ("<ctx_epoch:cell>", "1"),
            ("<path:tool>", "weather"),
            ("<path:principal>", "{principal}"),
        ):
            plain = plain.replace(converter, name)
        assert plain in known, f"{route} is not covered"
    assert get_resolver().reverse_dict.getlist("api-sessions")
