"""Personas, authority, revocation, configuration, erasure and the caps of the prefix, over REST."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api.door import WEATHER, Door, key_for

SKILL = {"name": "review", "description": "How to review.", "body": "Read the diff first."}
DEFERRED = {
    "name": "shop.stock",
    "description": "Looks up stock. Slowly.",
    "input_schema": {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "size": {}},
        "required": ["sku"],
    },
    "deferred": True,
}


def put(door: Door, path: str, body: Any, **options: Any) -> Any:
    return door.send("PUT", path, body, **options)


def persona(door: Door, revision: int, *entries: str, who: str = "mara", **options: Any) -> Any:
    body = {"revision": revision, "entries": list(entries)}
    return put(door, f"personas/{who}", body, **options)


def turn(door: Door, session: str, **fields: Any) -> Any:
    run = door.run(session, **fields)
    built = door.assemble(run)
    door.says(run, "Done.")
    return built


# --- personas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["mara", "mara@acme.example", "org/team/mara"])
def test_a_persona_is_read_and_saved_over_the_revision_that_was_read(door: Door, who: str) -> None:
    assert door.get(f"personas/{who}").ok()["revision"] == 0
    saved = persona(door, 0, "Be brief.", who=who).ok()
    assert (saved["principal"], saved["revision"], saved["entries"]) == (who, 1, ["Be brief."])
    stale = persona(door, 0, "Other.", who=who)
    assert (stale.status, stale.code, stale.json["revision"]) == (409, "persona_stale", 1)
    persona(door, 1, "Be kind.", who=who).ok()
    assert door.get(f"personas/{who}?revision=1").ok()["entries"] == ["Be brief."]
    assert door.get(f"personas/{who}?revision=9").code == "not_found"
    assert [p["revision"] for p in door.get("personas").ok()["items"]] == [2]


def test_saving_a_persona_twice_with_one_key_saves_it_once(door: Door) -> None:
    first = persona(door, 0, "Be brief.", once="k1")
    again = persona(door, 0, "Be brief.", once="k1")
    assert again.raw == first.raw
    assert again.headers["Idempotency-Replayed"] == "true"
    assert persona(door, 0, "Other.", once="k1").code == "idempotency_mismatch"
    assert door.get("personas/mara").ok()["revision"] == 1


def test_personas_of_another_tenant_do_not_exist(door: Door, stranger: Door) -> None:
    persona(door, 0, "Be brief.").ok()
    assert stranger.get("personas/mara").ok()["revision"] == 0
    assert stranger.get("personas").ok()["items"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"revision": 0, "entries": ["x"] * 31}, "plan_overflow"),
        ({"revision": 0, "entries": ["word " * 3_000]}, "plan_overflow"),
        ({"revision": -1, "entries": []}, "invalid_field"),
        ({"entries": []}, "missing_field"),
        ({"revision": 0, "entries": [], "text": "x"}, "unknown_field"),
    ],
)
def test_a_persona_that_cannot_be_saved_says_why(door: Door, body: Any, code: str) -> None:
    assert put(door, "personas/mara", body).code == code


def test_a_persona_edit_reaches_the_next_run_as_one_epoch(door: Door) -> None:
    persona(door, 0, "Be brief.").ok()
    session = door.open(principal={"id": "mara"})
    assert door.get(f"sessions/{session}/plan").ok()["persona_revision"] == 1
    first = turn(door, session)
    persona(door, 1, "Be brief.", "Be kind.").ok()
    second, third = turn(door, session), turn(door, session)
    assert first["prefix_sha256"] != second["prefix_sha256"] == third["prefix_sha256"]
    (epoch, _) = door.get(f"sessions/{session}/plans").ok()["items"]
    assert epoch["reasons"] == ["persona_changed"]
    assert door.get(f"sessions/{session}").ok()["epoch"] == 2


# --- authority and tools ----------------------------------------------------------------------------------------------


def test_authority_is_granted_and_reduced(door: Door) -> None:
    mail = {"name": "mail", "description": "Mails.", "required_scopes": ["mail"]}
    session = door.open(principal={"id": "mara", "scopes": ["files"]}, tools=[WEATHER, mail])
    assert "mail" not in door.get(f"sessions/{session}/plan").ok()["tool_names"]
    answer = put(door, f"sessions/{session}/authority", {"scopes": ["files", "mail"]}, once="k")
    assert answer.ok() == {
        "granted": ["mail"],
        "reduced": [],
        "scopes": ["files", "mail"],
        "epoch": 1,
    }
    repeat = put(door, f"sessions/{session}/authority", {"scopes": ["files", "mail"]}, once="k")
    assert repeat.raw == answer.raw
    run = door.run(session)
    assert "mail" in door.get(f"sessions/{session}/plan").ok()["tool_names"]
    door.assemble(run)
    put(door, f"sessions/{session}/authority", {"scopes": []}).ok()
    (call,) = door.calls(run, ("c1", "mail", {}))["calls"]
    assert call["action"] == "refused"
    assert "scope_missing" in call["result"]
    assert len(door.events(session, "type=context.epoch.rotated&")) == 1


def test_a_tool_is_revoked_and_restored_by_its_own_name(door: Door) -> None:
    tools = [{**WEATHER, "name": "web/fetch.now"}]
    session = door.open(tools=tools)
    run = door.run(session)
    before = door.assemble(run)["prefix_sha256"]
    path = f"sessions/{session}/tools/web/fetch.now"
    assert door.post(f"{path}/revoke", {}).code == "missing_field"
    revoked = door.post(f"{path}/revoke", {"note": "leak"}, once="r").ok()
    assert (revoked["name"], revoked["revoked"]) == ("web/fetch.now", True)
    assert door.post(f"{path}/revoke", {"note": "leak"}, once="r").ok() == revoked
    door.assemble(run)
    (call,) = door.calls(run, ("c1", "web_fetch_now", {}))["calls"]
    assert (call["action"], "tool_revoked" in call["result"]) == ("refused", True)
    door.post(f"{path}/restore", {"note": "fixed"}).ok()
    assert door.assemble(run)["prefix_sha256"] == before
    (call,) = door.calls(run, ("c2", "web_fetch_now", {}))["calls"]
    assert call["action"] == "execute"
    assert door.post(f"sessions/{session}/tools/none/revoke", {"note": "x"}).code == "unknown_tool"


def test_a_deferred_tool_is_called_through_tool_call_and_a_repeat_says_the_same(door: Door) -> None:
    session = door.open(tools=[WEATHER, DEFERRED])
    plan = door.get(f"sessions/{session}/plan").ok()
    assert plan["deferred_tool_names"] == ["shop.stock"]
    row = next(text for text in plan["texts"] if text["row"] == 6)
    assert row["text"] == "- shop.stock(sku, size?): Looks up stock."
    run = door.run(session)
    door.assemble(run)
    blocks = [
        {
            "type": "tool_use",
            "id": f"c{n}",
            "name": "tool_call",
            "input": {"name": "shop.stock", "arguments": arguments},
        }
        for n, arguments in enumerate(({"sku": "a"}, {"wrong": 1}))
    ]
    body = {"response": {"content": blocks, "stop_reason": "tool_use"}}
    first = door.post(f"runs/{run}/responses", body, once="r")
    calls = first.ok()["calls"]
    assert [(c["name"], c["action"]) for c in calls] == [
        ("shop.stock", "execute"),
        ("shop.stock", "refused"),
    ]
    assert calls[0]["arguments"] == {"sku": "a"}
    assert '"required":["sku"]' in calls[1]["result"]
    assert door.post(f"runs/{run}/responses", body, once="r").json == first.json


def test_a_tool_is_removed_for_security_with_the_next_step(door: Door) -> None:
    session = door.open(tools=[WEATHER, {**WEATHER, "name": "spy"}])
    run = door.run(session)
    door.assemble(run)
    body = {"reason": "tool_removed_for_security", "note": "leak", "tools": ["spy"]}
    plan = door.post(f"sessions/{session}/epochs", body, once="e").ok()
    assert "spy" not in plan["tool_names"]
    assert plan["recached_tokens"] == plan["prefix_tokens"]
    assert float(plan["price_usd"]) > 0
    assert door.post(f"sessions/{session}/epochs", body, once="e").ok() == plan
    assert "spy" not in [tool["name"] for tool in door.assemble(run)["request"]["tools"]]
    assert door.post(f"sessions/{session}/epochs", {**body, "tools": ["x"]}).code == "unknown_tool"


# --- configuration, skills, erasure -----------------------------------------------------------------------------------


def test_a_session_is_configured_for_its_next_run(door: Door) -> None:
    session = door.open()
    done = door.send(
        "PATCH",
        f"sessions/{session}",
        {"policy": {"low_water": 0.5}, "environment": {"profile": "work"}},
        once="p",
    ).ok()
    assert done["fields"] == ["environment", "policy"]
    assert door.get(f"sessions/{session}").ok()["epoch"] == 1
    turn(door, session)
    (epoch, _) = door.get(f"sessions/{session}/plans").ok()["items"]
    assert epoch["reasons"] == ["environment_changed", "policy_changed"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_content"),
        ({"engine": "suffix"}, "unknown_field"),
        ({"model": {"provider": "nobody", "name": "x"}}, "unsupported_provider"),
        ({"policy": {"caps": {"nothing": 3}}}, "unknown_class"),
        ({"tools": [WEATHER, WEATHER]}, "duplicate_tool"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_at_once(
    door: Door, body: Any, code: str
) -> None:
    assert door.send("PATCH", f"sessions/{door.open()}", body).code == code


def test_a_skill_is_loaded_and_stands_in_the_next_request(door: Door) -> None:
    session = door.open(skills=[SKILL])
    assert door.get(f"sessions/{session}/plan").ok()["skill_names"] == ["review"]
    run = door.run(session)
    door.assemble(run)
    (call,) = door.calls(run, ("s1", "skill_load", {"name": "review"}))["calls"]
    assert call["action"] == "answered"
    built = door.assemble(run)
    assert "Read the diff first." in str(built["request"])
    assert door.replays(built["request_id"])
    types = [event["type"] for event in door.events(session)]
    assert {"skill.offered", "skill.loaded"} <= set(types)


def test_a_person_is_erased_and_requests_are_still_proven(door: Door, stranger: Door) -> None:
    session = door.open(principal={"id": "mara"}, snapshot={"items": ["Lives in Oslo."]})
    request = turn(door, session)["request_id"]
    assert stranger.post("people/mara/erase", {"note": "x"}).code == "not_found"
    done = door.post("people/mara/erase", {"note": "asked for it"}, once="e").ok()
    assert done["sessions"] == 1
    assert door.post("people/mara/erase", {"note": "asked for it"}, once="e").ok() == done
    assert door.replays(request)
    assert door.get(f"requests/{request}/body").code == "content_gone"
    assert "Oslo" not in str(turn(door, session)["request"])
    plan = door.get(f"sessions/{session}/plans/1").ok()
    assert plan["erased"] is True
    assert "Oslo" not in str(plan)


def test_only_operators_erase_and_revoke(tenant: UUID) -> None:
    runtime = Door(key_for(tenant, "runtime"))
    session = runtime.open()
    for path in ("people/mara/erase", f"sessions/{session}/tools/weather/revoke"):
        assert runtime.post(path, {"note": "x"}).code == "scope_missing"
    reader = Door(key_for(tenant, "read"))
    assert persona(reader, 0, "x").code == "scope_missing"
    assert reader.get("personas/mara").status == 200


# --- caps -------------------------------------------------------------------------------------------------------------

LONG = "word " * 9_000
OVERFLOWS: list[tuple[str, dict[str, Any]]] = [
    ("agent", {"agent": {"name": "a", "version": "1", "instructions": LONG}}),
    ("persona", {"persona": [LONG]}),
    ("persona", {"persona": ["x"] * 31}),
    ("tools", {"tools": [{"name": "t", "description": LONG, "input_schema": {}}]}),
    ("skill_catalog", {"skills": [{**SKILL, "name": f"s{n}"} for n in range(21)]}),
    (
        "skill_catalog",
        {"skills": [{**SKILL, "name": f"s{n}", "description": "word " * 350} for n in range(9)]},
    ),
    ("snapshot", {"snapshot": {"items": [LONG]}}),
    ("snapshot", {"snapshot": {"items": ["x"] * 41}}),
    ("platform", {"policy": {"caps": {"platform": 100}}}),
    ("history", {"model": {"provider": "anthropic", "name": "claude-sonnet-4-6", "window": 9_000}}),
]


@pytest.mark.parametrize(("name", "fields"), OVERFLOWS)
def test_a_prefix_class_over_its_cap_fails_at_open_naming_the_class(
    door: Door, name: str, fields: dict[str, Any]
) -> None:
    if "agent" in fields:
        fields = {"agent": {**fields["agent"], "name": f"a-{uuid4().hex}"}}
    body = {
        "model": {"provider": "anthropic", "name": "claude-sonnet-4-6"},
        "agent": {"name": f"a-{uuid4().hex}", "version": "1", "instructions": "Help."},
        "tools": [WEATHER],
        **fields,
    }
    answer = door.post("sessions", body)
    assert (answer.status, answer.code, answer.json["budget_class"]) == (422, "plan_overflow", name)
    assert answer.json["needed"] > answer.json["available"]


def test_the_deferred_index_never_fails_a_session_it_skips_by_name(door: Door) -> None:
    tools = [{**DEFERRED, "name": f"late{n:02}"} for n in range(45)]
    session = door.open(tools=tools)
    plan = door.get(f"sessions/{session}/plan").ok()
    assert len(plan["deferred_tool_names"]) == 40
    assert plan["skipped_tool_names"] == [f"late{n:02}" for n in range(40, 45)]
