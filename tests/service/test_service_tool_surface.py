"""Deferred tools through `tool.call`, revoked and reduced ones refused: all through the use cases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.plan_specs import SetAuthority
from ctxengine.service.prove import replay_request
from ctxengine.service.revoke_tool import restore_tool, revoke_tool
from ctxengine.service.set_authority import set_authority
from ctxengine.service.specs import PolicySpec, PrincipalSpec, ServiceError, ToolSpec
from tests.cast import PROVIDERS, Call, Runtime, tool

pytestmark = pytest.mark.django_db

WEATHER = ToolSpec(
    name="mcp.weather",
    description="Tells the weather. With wind.",
    input_schema_raw=json.dumps(
        {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        }
    ),
    deferred=True,
    server="meteo",
    side_effect="network_read",
    result_trust=Trust.EXTERNAL_UNTRUSTED,
)
OWN = tool("notes", deferred=True, result_trust=Trust.USER)


def with_deferred(provider: str = "anthropic", **fields: Any) -> Runtime:
    runtime = Runtime(provider=provider, tools=(tool("read"), WEATHER, OWN), **fields)
    runtime.ask("How is the weather?")
    return runtime


def call_of(name: str, arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_deferred_tool_is_named_in_the_index_and_not_defined(provider: str) -> None:
    runtime = with_deferred(provider)
    assert set(runtime.opened.plan.tool_names) >= {"read", "recall", "tool.call"}
    assert "mcp.weather" not in runtime.opened.plan.tool_names
    assert runtime.opened.plan.deferred_tool_names == ["mcp.weather", "notes"]
    body = runtime.assemble().body.decode()
    assert "mcp.weather(city, days?): Tells the weather." in body
    assert "With wind" not in body
    assert body.count("mcp.weather") == 1


def test_a_call_behind_tool_call_is_executed_under_the_deferred_tools_own_name() -> None:
    runtime = with_deferred()
    runtime.assemble()
    taken = runtime.say("", Call("c1", "tool_call", call_of("mcp.weather", {"city": "Oslo"})))
    (call,) = taken.calls
    assert (call.action, call.name, call.arguments_raw) == (
        "execute",
        "mcp.weather",
        '{"city": "Oslo"}',
    )
    runtime.results(("c1", "Rain."))
    body = runtime.assemble().body.decode()
    assert 'source=\\"tool:mcp.weather\\"' in body
    assert all(
        replay_request(actor=runtime.actor, request_id=r.id).identical for r in runtime.requests
    )


def test_a_wire_spelling_of_the_name_is_understood() -> None:
    runtime = with_deferred()
    runtime.assemble()
    taken = runtime.say("", Call("c1", "tool_call", call_of("mcp_weather", {"city": "Oslo"})))
    assert taken.calls[0].name == "mcp.weather"


def test_invalid_arguments_are_answered_with_the_schema_under_its_servers_trust() -> None:
    runtime = with_deferred()
    runtime.assemble()
    taken = runtime.say("", Call("c1", "tool_call", call_of("mcp.weather", {"town": "Oslo"})))
    (call,) = taken.calls
    assert (call.action, taken.next) == ("refused", "redo")
    assert call.result is not None
    assert '"required":["city"]' in call.result
    (result,) = runtime.events(EventType.TOOL_RESULT)
    assert result.trust == Trust.EXTERNAL_UNTRUSTED
    (refused,) = runtime.events(EventType.CALL_REFUSED)
    assert refused.payload["code"] == "invalid_arguments"
    assert 'source=\\"schema:mcp.weather\\"' in runtime.assemble().body.decode()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("{}", "unknown_tool"),
        ('{"name":"nowhere","arguments":{}}', "unknown_tool"),
        ('{"name":"hidden","arguments":{}}', "unknown_tool"),
        ('{"name":"tool.call","arguments":{}}', "defined_tool"),
        ('{"name":"read","arguments":{}}', "defined_tool"),
        ('{"name":"mcp.weather","arguments":[1]}', "invalid_arguments"),
    ],
)
def test_what_tool_call_cannot_reach_is_refused_and_says_why(arguments: str, code: str) -> None:
    runtime = Runtime(tools=(tool("read"), WEATHER, tool("hidden", model_visible=False)))
    runtime.ask("Go")
    runtime.assemble()
    taken = runtime.say("", Call("c1", "tool_call", arguments))
    assert taken.calls[0].action == "refused"
    assert [e.payload["code"] for e in runtime.events(EventType.CALL_REFUSED)] == [code]


def test_a_result_may_claim_what_the_deferred_tool_allows_and_no_more() -> None:
    runtime = with_deferred()
    runtime.assemble()
    calls = [
        Call("c1", "tool_call", call_of("notes", {})),
        Call("c2", "tool_call", call_of("mcp.weather", {"city": "Oslo"})),
    ]
    runtime.say("", *calls)
    runtime.results(("c1", "mine"), trust=Trust.USER)
    with pytest.raises(ServiceError) as caught:
        runtime.results(("c2", "theirs"), trust=Trust.USER)
    assert caught.value.code == "trust_above_ceiling"


def test_the_overflow_of_explicit_tools_is_deferred_and_what_fits_nowhere_is_recorded_by_name() -> (
    None
):
    tools = tuple(tool(f"t{n:02}") for n in range(75))
    runtime = Runtime(tools=tools)
    plan = runtime.opened.plan
    assert len(plan.tool_names) == 30
    assert len(plan.deferred_tool_names) == 40
    assert len(plan.skipped_tool_names) == 75 - 40 - (30 - _platform(plan.tool_names))
    (created,) = runtime.events(EventType.PLAN_CREATED)
    assert created.payload["skipped_tool_names"] == plan.skipped_tool_names


def _platform(names: list[str]) -> int:
    return sum(not name.startswith("t") or name == "tool.call" for name in names)


def test_explicit_tools_over_the_token_cap_refuse_the_session_naming_the_class() -> None:
    with pytest.raises(ServiceError) as caught:
        Runtime(policy=PolicySpec(caps={"tools": 50}))
    assert (caught.value.code, caught.value.extra["budget_class"]) == ("plan_overflow", "tools")


def test_a_required_tool_without_its_scope_refuses_the_session() -> None:
    with pytest.raises(ServiceError) as caught:
        Runtime(
            tools=(tool("mail", required=True, required_scopes=("mail",)),),
            principal=PrincipalSpec(id="mara", scopes=()),
        )
    assert (caught.value.code, caught.value.status) == ("required_tool_missing", 422)


def test_scopes_never_stand_in_the_prompt() -> None:
    runtime = Runtime(
        tools=(
            tool("mail", required_scopes=("secret-scope",)),
            tool("gone", required_scopes=("q",)),
        ),
        principal=PrincipalSpec(id="mara", scopes=("secret-scope",)),
    )
    runtime.ask("Go", scopes=())
    body = runtime.assemble().body.decode()
    assert "secret-scope" not in body
    assert "mail" in runtime.opened.plan.tool_names
    assert "gone" not in body


def test_a_revoked_tool_stays_advertised_and_its_call_is_refused_plainly() -> None:
    runtime = Runtime()
    runtime.ask("Go")
    before = runtime.assemble()
    act = revoke_tool(actor=runtime.actor, session_id=runtime.session, name="read", note="leak")
    assert act.revoked
    after = runtime.assemble()
    assert (before.prefix_sha256, before.wire_prefix_sha256) == (
        after.prefix_sha256,
        after.wire_prefix_sha256,
    )
    taken = runtime.say("", Call("c1", "read"), Call("c2", "shell_run"))
    assert [call.action for call in taken.calls] == ["refused", "execute"]
    refusal = json.loads(taken.calls[0].result or "")
    assert (refusal["error"], refusal["retry"]) == ("tool_revoked", False)
    assert len(runtime.events(EventType.EPOCH_ROTATED)) == 0


def test_a_restored_tool_can_be_called_again_and_both_acts_need_a_reason() -> None:
    runtime = Runtime()
    runtime.ask("Go")
    for act in (revoke_tool, restore_tool):
        with pytest.raises(ServiceError, match="note"):
            act(actor=runtime.actor, session_id=runtime.session, name="read", note=" ")
        with pytest.raises(ServiceError) as caught:
            act(actor=runtime.actor, session_id=runtime.session, name="recall", note="x")
        assert caught.value.code == "unknown_tool"
    revoke_tool(actor=runtime.actor, session_id=runtime.session, name="read", note="x")
    revoke_tool(actor=runtime.actor, session_id=runtime.session, name="read", note="again")
    restore_tool(actor=runtime.actor, session_id=runtime.session, name="read", note="fixed")
    runtime.assemble()
    assert runtime.say("", Call("c1", "read")).calls[0].action == "execute"
    assert len(runtime.events(EventType.TOOL_REVOKED)) == 1


def test_a_revoked_tool_is_refused_behind_tool_call_as_well() -> None:
    runtime = with_deferred()
    revoke_tool(actor=runtime.actor, session_id=runtime.session, name="mcp.weather", note="x")
    runtime.assemble()
    taken = runtime.say("", Call("c1", "tool_call", call_of("mcp.weather", {"city": "Oslo"})))
    assert json.loads(taken.calls[0].result or "")["error"] == "tool_revoked"


def test_a_reduction_holds_at_once_for_the_open_run_and_changes_no_prefix() -> None:
    runtime = Runtime(
        tools=(tool("mail", required_scopes=("mail",)), tool("read")),
        principal=PrincipalSpec(id="mara", scopes=("mail", "files")),
    )
    runtime.ask("Go")
    before = runtime.assemble()
    view = set_authority(
        actor=runtime.actor, session_id=runtime.session, spec=SetAuthority(scopes=("files",))
    )
    assert (view.reduced, view.granted) == (["mail"], [])
    after = runtime.assemble()
    assert after.wire_prefix_sha256 == before.wire_prefix_sha256
    taken = runtime.say("", Call("c1", "mail"), Call("c2", "read"))
    assert [call.action for call in taken.calls] == ["refused", "execute"]
    assert json.loads(taken.calls[0].result or "")["error"] == "scope_missing"


def test_where_no_authority_was_ever_stated_no_call_is_refused_for_want_of_a_scope() -> None:
    runtime = Runtime(tools=(tool("mail", required_scopes=("mail",)),))
    runtime.ask("Go")
    runtime.assemble()
    assert runtime.say("", Call("c1", "mail")).calls[0].action == "execute"
