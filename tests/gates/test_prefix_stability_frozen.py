"""Gate: prefix stability with the whole tool surface, skills, a persona document and a snapshot (frozen-prefix spec, gate 2).

Fifty turns over midnight: a tool is revoked, authority is reduced, skills are loaded, deferred tools are called, memory is
written and corrected, history is cut. One of each prefix hash and one epoch; with a persona edit exactly two.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import SessionRow
from ctxengine.service.edit_persona import edit_persona
from ctxengine.service.plan_specs import EditPersona, SetAuthority
from ctxengine.service.prove import replay_request
from ctxengine.service.revoke_tool import revoke_tool
from ctxengine.service.set_authority import set_authority
from ctxengine.service.specs import (
    MemoryLine,
    PolicySpec,
    PrincipalSpec,
    SkillSpec,
    SnapshotSpec,
    ToolSpec,
)
from ctxengine.service.verify import verify_session
from tests.cast import Call, Runtime, new_actor, tool

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

START = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
TURNS = 50
REVOKED_AT, REDUCED_AT, EDITED_AT = 10, 30, 25
DEFERRED = ToolSpec(
    name="mcp.stock",
    description="Looks up stock. Slowly.",
    input_schema_raw='{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}',
    deferred=True,
    server="shop",
    side_effect="network_read",
)
TOOLS = (
    tool("read"),
    tool("web.fetch"),
    tool("mail", required_scopes=("mail",)),
    DEFERRED,
    *(tool(f"more{n:02}", server="zoo") for n in range(40)),
)


def open_runtime(provider: str) -> Runtime:
    actor = new_actor()
    edit_persona(
        actor=actor, principal="mara", spec=EditPersona(revision=0, entries=("Be plain.",))
    )
    return Runtime(
        actor=actor,
        provider=provider,
        window=14_000,
        policy=PolicySpec(reserve=800, history_floor=500, inline_maximum_bytes=1_000),
        principal=PrincipalSpec(id="mara", scopes=("files", "mail")),
        tools=TOOLS,
        extra={
            "memory": "embedded",
            "skills": tuple(
                SkillSpec(name=f"s{n}", description="Helps.", body=f"Body {n}.") for n in range(3)
            ),
            "snapshot": SnapshotSpec(trace_id="t1", watermark=4, items=("Likes tea.",)),
        },
    )


def one_turn(runtime: Runtime, number: int) -> None:
    now = START + timedelta(minutes=10 * number)
    runtime.ask(f"Question {number} about stock", now=now, timezone="Europe/Oslo")
    lines: dict[str, Any] = {
        "recall": (MemoryLine(text=f"Remembered {number}."),),
        "corrections": (MemoryLine(text="No longer likes tea."),) if number > 20 else (),
    }
    runtime.assemble(now=now, **lines)
    taken = runtime.say("Let me look.", *calls_of(number))
    for call in taken.calls:
        if call.action == "execute":
            runtime.results((call.id, f"line {number}\n" * 200))
    runtime.assemble(now=now + timedelta(minutes=4))
    runtime.say(f"Answer {number}.")


def calls_of(number: int) -> list[Call]:
    inner = {"sku": "a"} if number % 7 else {"wrong": 1}
    calls = [
        Call(f"a{number}", "read", "{}"),
        Call(f"b{number}", "mail", "{}"),
        Call(f"c{number}", "tool_call", json.dumps({"name": "mcp.stock", "arguments": inner})),
    ]
    if number in {3, 5, 8}:
        calls.append(Call(f"d{number}", "skill_load", json.dumps({"name": f"s{number % 3}"})))
    return calls


def drive(runtime: Runtime, *, edit: bool) -> None:
    for number in range(TURNS):
        if number == REVOKED_AT:
            revoke_tool(actor=runtime.actor, session_id=runtime.session, name="read", note="leak")
        if number == REDUCED_AT:
            spec = SetAuthority(scopes=("files",))
            set_authority(actor=runtime.actor, session_id=runtime.session, spec=spec)
        if edit and number == EDITED_AT:
            spec_ = EditPersona(revision=1, entries=("Be plain.", "Be kind."))
            edit_persona(actor=runtime.actor, principal="mara", spec=spec_)
        one_turn(runtime, number)


def the_scenario_did_its_work(runtime: Runtime) -> None:
    codes = {event.payload["code"] for event in runtime.events(EventType.CALL_REFUSED)}
    assert codes >= {"tool_revoked", "scope_missing", "invalid_arguments"}
    assert len(runtime.events(EventType.SKILL_LOADED)) == 2
    assert runtime.events(EventType.YIELD_APPLIED)
    days = {row.inputs["now"][:10] for row in runtime.requests}
    assert days >= {"2026-03-28", "2026-03-29"}
    plan = runtime.opened.plan
    assert "mcp.stock" in plan.deferred_tool_names
    assert len(plan.tool_names) == 30


def everything_is_proven(runtime: Runtime) -> None:
    for row in runtime.requests[::9]:
        assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "identical"
    session = SessionRow.objects.get(tenant_id=runtime.actor.tenant_id, id=runtime.session)
    assert verify_session(session).problem is None


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_fifty_turns_share_one_of_each_prefix_hash(provider: str) -> None:
    runtime = open_runtime(provider)
    drive(runtime, edit=False)
    rows = runtime.requests
    assert len(rows) == 2 * TURNS
    assert len({row.prefix_sha256 for row in rows}) == 1
    assert len({row.wire_prefix_sha256 for row in rows}) == 1
    assert {row.epoch for row in rows} == {1}
    assert runtime.events(EventType.EPOCH_ROTATED) == []
    the_scenario_did_its_work(runtime)
    everything_is_proven(runtime)


def test_a_persona_edit_makes_exactly_two_epochs_and_says_why() -> None:
    runtime = open_runtime("anthropic")
    drive(runtime, edit=True)
    rows = runtime.requests
    assert len({(row.epoch, row.prefix_sha256, row.wire_prefix_sha256) for row in rows}) == 2
    assert [row.epoch for row in rows] == [1] * 2 * EDITED_AT + [2] * 2 * (TURNS - EDITED_AT)
    (rotated,) = runtime.events(EventType.EPOCH_ROTATED)
    assert rotated.payload["reasons"] == ["persona_changed"]
    the_scenario_did_its_work(runtime)
    everything_is_proven(runtime)
