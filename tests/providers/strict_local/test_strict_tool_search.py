"""Deferred tools: found by the provider's search, referred to by a client's, and outside the cached prefix."""

from __future__ import annotations

from typing import Any

import anthropic
import openai

from tests.providers.strict_local.bodies import (
    LONG,
    OPUS,
    SHORT_LIFE,
    SONNET,
    Json,
    item,
    message,
    output_item,
    plain,
    response,
    response_tool,
    result,
    says,
    tool,
    user,
)

SEARCH: Json = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
LATER = tool("later", description="Looks later. " * 40, defer_loading=True)


def test_a_search_finds_the_tool_that_is_called_then(claude: anthropic.Anthropic) -> None:
    messages: list[Any] = [{"role": "user", "content": "call later"}]
    base = message(model=SONNET, tools=[SEARCH, LATER])
    first = claude.messages.create(**(base | {"messages": messages}))
    kinds = [block.type for block in first.content]
    assert kinds == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    found = plain(first.content[1])["content"]
    assert found["tool_references"] == [{"type": "tool_reference", "tool_name": "later"}]
    messages.append({"role": "assistant", "content": first.content})
    messages.append(user(result(plain(first.content[2])["id"])))
    second = claude.messages.create(**(base | {"messages": messages}))
    assert second.stop_reason == "end_turn"
    assert second.usage.input_tokens > first.usage.input_tokens + 250


def test_deferred_tools_cost_nothing_until_they_are_found(claude: anthropic.Anthropic) -> None:
    few = claude.messages.count_tokens(model=SONNET, messages=[user()], tools=[SEARCH])
    more = claude.messages.count_tokens(model=SONNET, messages=[user()], tools=[SEARCH, LATER])
    assert few.input_tokens == more.input_tokens


def test_a_deferred_tool_more_keeps_the_cached_prefix(claude: anthropic.Anthropic) -> None:
    system = [says(LONG, cache_control=SHORT_LIFE)]
    written = claude.messages.create(
        **message(model=OPUS, system=system, tools=[tool()])
    ).usage.cache_creation_input_tokens
    again = claude.messages.create(**message(model=OPUS, system=system, tools=[tool(), LATER]))
    assert again.usage.cache_read_input_tokens == written


def test_references_of_a_clients_own_search_load_the_tool(claude: anthropic.Anthropic) -> None:
    tools = [tool("find"), LATER]
    messages: list[Any] = [{"role": "user", "content": "call find"}]
    first = claude.messages.create(**message(tools=tools, messages=messages))
    call = plain(first.content[0])
    reference = {"type": "tool_reference", "tool_name": "later"}
    messages.append({"role": "assistant", "content": [call]})
    messages.append(user(result(call["id"], [reference])))
    loaded = claude.messages.create(**message(tools=tools, messages=messages))
    messages[-1] = user(result(call["id"], "nothing"))
    bare = claude.messages.create(**message(tools=tools, messages=messages))
    assert loaded.usage.input_tokens > bare.usage.input_tokens + 250


def test_responses_search_returns_the_definitions_and_then_calls(gpt: openai.OpenAI) -> None:
    later = response_tool("later", defer_loading=True, description="Looks later. " * 40)
    tools = [{"type": "tool_search"}, later]
    items: list[Any] = [item("user", "call later")]
    first = gpt.responses.create(**response(*items, tools=tools))
    kinds = [one.type for one in first.output]
    assert kinds == ["reasoning", "tool_search_call", "tool_search_output", "function_call"]
    items += [plain(one) for one in first.output]
    items.append(output_item(items[-1]["call_id"]))
    second = gpt.responses.create(**response(*items, tools=tools))
    assert second.output_text.startswith("[scripted] Done after 1 results")
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens + 100


def test_tools_of_a_namespace_are_called_with_its_name(gpt: openai.OpenAI) -> None:
    space = {
        "type": "namespace", "name": "crm", "description": "Customers.",
        "tools": [response_tool("lookup")],
    }  # fmt: skip
    answer = gpt.responses.create(**response(item("user", "call lookup"), tools=[space]))
    call = plain(answer.output[-1])
    assert (call["name"], call["namespace"]) == ("lookup", "crm")


def test_tools_appended_by_the_developer_keep_the_prefix(gpt: openai.OpenAI) -> None:
    head = [item("developer", LONG), item("user", "One?")]
    first = gpt.responses.create(**response(*head, tools=[response_tool()]))
    more = {"type": "additional_tools", "role": "developer", "tools": [response_tool("listen")]}
    second = gpt.responses.create(
        **response(*head, more, item("user", "call listen"), tools=[response_tool()])
    )
    assert plain(second.output[-1])["name"] == "listen"
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens == first.usage.input_tokens
