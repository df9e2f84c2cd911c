"""Definitions kept aside: how each API declares them, and what a search leaves behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.wire.base import Marker, WireMessage, WirePrefix, WireText, WireTool
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.engine.wire.rules import violations
from ctxengine.engine.wire.tool_search import (
    defers_natively,
    found_names,
    is_search,
    resolvable,
    without_id,
)
from tests.engine.wire.conversations import PARAMS, PREFIX

LATER = tuple(WireTool(f"later_{number}", "Looks later.", '{"type":"object"}') for number in (1, 2))
ASIDE = WirePrefix(PREFIX.system, PREFIX.tools, LATER)
RESULT = (
    '{"type":"tool_search_tool_result", "tool_use_id":"srvtoolu_1","content":{"tool_references":['
    '{"type":"tool_reference","tool_name":"later_1"}, {"type":"tool_reference","tool_name":"gone"}],'
    '"type":"tool_search_tool_search_result"}}'
)
OUTPUT = (
    '{"type":"tool_search_output","id":"tso_1","call_id":null,"tools":[{"type":"function",'
    '"name":"gone","parameters":{"a":1.0}},{"type":"function","name":"later_1"}]}'
)


@pytest.mark.parametrize(
    ("provider", "model", "can"),
    [
        ("anthropic", "claude-sonnet-4-6", True),
        ("anthropic", "claude-haiku-4-5-20251001", True),
        ("anthropic", "claude-opus-5-5", True),
        ("anthropic", "claude-opus-5", True),
        ("anthropic", "claude-sonnet-5-5", True),
        ("anthropic", "claude-sonnet-5", False),
        ("anthropic", "claude-opus-4-1", False),
        ("anthropic", "claude-sonnet-4-20250514", False),
        ("anthropic", "claude-3-5-haiku-20241022", False),
        ("anthropic", "somebody's", False),
        ("openai-responses", "gpt-5.4-mini", True),
        ("openai-responses", "gpt-6-sol", True),
        ("openai-responses", "gpt-5.1", False),
        ("openai", "gpt-5.4", False),
        ("openrouter-responses", "openai/gpt-5.4", False),
        ("bedrock", "anthropic.claude-sonnet-4-6-v1:0", False),
    ],
)
def test_the_models_that_defer_natively(provider: str, model: str, can: bool) -> None:
    assert defers_natively(provider, model) is can


def tools_of(provider: str, *markers: Marker) -> list[dict[str, Any]]:
    renderer = renderer_for(provider)
    fragments = renderer.fragments(WireMessage("user", (WireText("Hello"),)))
    body = renderer.body(ASIDE, fragments, PARAMS, markers)
    assert not violations(renderer.api, body)
    return list(json.loads(body)["tools"])


def test_anthropic_marks_the_last_definition_of_the_prompt_and_none_behind_it() -> None:
    tools = tools_of("anthropic", Marker("after_tools"))
    assert tools[0] == {
        "type": "tool_search_tool_bm25_20251119",
        "name": "tool_search_tool_bm25",
    }
    assert [tool["name"] for tool in tools[1:]] == ["look", "write", "later_1", "later_2"]
    assert [bool(tool.get("defer_loading")) for tool in tools] == [False] * 3 + [True] * 2
    assert [tool["name"] for tool in tools if "cache_control" in tool] == ["write"]


def test_responses_declares_the_search_that_the_provider_carries_out() -> None:
    tools = tools_of("openai-responses")
    assert tools[0] == {"type": "tool_search", "execution": "server"}
    assert [tool["name"] for tool in tools if tool.get("defer_loading")] == ["later_1", "later_2"]


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_without_deferred_tools_nothing_is_declared(provider: str) -> None:
    plain = renderer_for(provider).prefix_bytes(PREFIX).decode()
    assert "search" not in plain
    assert "defer_loading" not in plain


def test_a_search_names_what_it_found() -> None:
    assert found_names("tool_search_tool_result", RESULT) == ("later_1", "gone")
    assert found_names("tool_search_output", OUTPUT) == ("gone", "later_1")
    space = '{"tools":[{"type":"namespace","name":"n","tools":[{"name":"a"},{"name":"b"}]}]}'
    assert found_names("tool_search_output", space) == ("a", "b")
    failed = '{"content":{"type":"tool_search_tool_result_error","error_code":"unavailable"}}'
    for kind, raw in (
        ("tool_search_tool_result", failed),
        ("tool_search_tool_result", "no JSON"),
        ("tool_search_tool_result", '{"content":{"tool_references":[1,{"tool_name":2}]}}'),
        ("web_search_tool_result", RESULT),
    ):
        assert found_names(kind, raw) == ()


def test_references_that_lead_nowhere_go_and_nothing_else_changes() -> None:
    assert resolvable("tool_search_tool_result", RESULT, {"later_1", "gone"}) == RESULT
    kept = resolvable("tool_search_tool_result", RESULT, {"later_1"})
    gone = ', {"type":"tool_reference","tool_name":"gone"}'
    assert kept == RESULT.replace(gone, "")
    assert json.loads(resolvable("tool_search_output", OUTPUT, ()))["tools"] == []
    assert resolvable("server_tool_use", RESULT, ()) == RESULT


def test_a_server_call_is_the_searchs_by_its_name() -> None:
    assert is_search("server_tool_use", '{"name":"tool_search_tool_bm25"}')
    assert not is_search("server_tool_use", '{"name":"web_search"}')
    assert not is_search("server_tool_use", "[")
    assert is_search("tool_search_call", "{}")
    assert not is_search("web_search_call", "{}")


def test_an_items_id_is_cut_out_of_its_text() -> None:
    assert without_id(OUTPUT) == OUTPUT.replace('"id":"tso_1",', "")
    assert without_id("[]") == "[]"
