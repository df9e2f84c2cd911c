"""Each invalid Chat or Responses request is refused in OpenAI's words, as the official SDK sees it."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.providers.strict_local.bodies import (
    LONG,
    MARK,
    OLD_GPT,
    Json,
    call_item,
    chat,
    chat_calls,
    chat_result,
    function,
    item,
    output_item,
    plain,
    response,
    response_tool,
)

HELLO = {"role": "user", "content": "Hello"}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
ASKED = item("user", "Hello")

CHAT: dict[str, tuple[str, str | None, Json]] = {
    "call without tool message": (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to"
        " each 'tool_call_id'. The following tool_call_ids did not have response messages: b, c",
        None,
        chat(messages=[HELLO, chat_calls("a", "b", "c"), chat_result("a"), HELLO]),
    ),
    "tool message without call": (
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message"  # codespell:ignore
        " with 'tool_calls'.",
        None,
        chat(messages=[HELLO, chat_result("a")]),
    ),
    "two tool messages for one call": (
        "must be a response to a preceeding message",  # codespell:ignore
        None,
        chat(messages=[HELLO, chat_calls("a"), chat_result("a"), chat_result("a")]),
    ),
    "id pattern": (
        "Invalid 'messages[1].tool_calls[0].id': string does not match pattern",
        "invalid_value",
        chat(messages=[HELLO, chat_calls("look:0"), chat_result("look:0")]),
    ),
    "id too long": (
        "string too long. Expected a string with maximum length 40, but got a string with length 41"
        " instead.",
        "string_above_max_length",
        chat(messages=[HELLO, chat_calls("a" * 41), chat_result("a" * 41)]),
    ),
    "function name": (
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that"
        " matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "invalid_value",
        chat(tools=[function("web.fetch")]),
    ),
    "function names not unique": ("occurs twice", None, chat(tools=[function(), function()])),
    "too many tools": (
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an"
        " array with length 129 instead.",
        "array_above_max_length",
        chat(tools=[function(f"look_{number}") for number in range(129)]),
    ),
    "tools on a model that takes them elsewhere": (
        "Please use /v1/responses instead.",
        None,
        chat(model="gpt-6-astra", tools=[function()]),
    ),
    "picture in a tool message": (
        "Image URLs are only allowed for messages with role 'user', but this message with role"
        " 'tool' contains an image URL.",
        "invalid_value",
        chat(messages=[HELLO, chat_calls("a"), chat_result("a", [PICTURE])]),
    ),
    "message that says nothing": (
        "Invalid value for 'content': expected a string, got null.",
        None,
        chat(messages=[HELLO, {"role": "assistant", "content": None}, HELLO]),
    ),
    "arguments that are no object": (
        "expected a string that holds a JSON object",
        "invalid_value",
        chat(messages=[HELLO, chat_calls("a", arguments='{"path":'), chat_result("a")]),
    ),
    "unknown role": (
        "Invalid value: 'summary'. Supported values are: 'system', 'assistant', 'user',",
        "invalid_value",
        chat(messages=[HELLO, {"role": "summary", "content": "Earlier."}]),
    ),
    "no messages": ("Invalid 'messages': empty array.", "empty_array", chat(messages=[])),
    "sampling on a reasoning model": (
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "unsupported_parameter",
        chat(temperature=0.5),
    ),
    "old name of the output limit": (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
        " 'max_completion_tokens' instead.",
        "unsupported_parameter",
        chat(max_tokens=10),
    ),
    "tool choice without tools": (
        "'tool_choice' is only allowed when 'tools' are specified.",
        None,
        chat(tool_choice="auto"),
    ),
    "cache options on an older model": (
        "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
        "unsupported_parameter",
        chat(model=OLD_GPT, prompt_cache_options={"mode": "explicit"}),
    ),
    "cache key too long": (
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64",
        "string_above_max_length",
        chat(prompt_cache_key="k" * 65),
    ),
    "unknown parameter": (
        "Unknown parameter: 'context_size'.",
        "unknown_parameter",
        chat(extra_body={"context_size": 5}),
    ),
    "prompt too long": (
        "This model's maximum context length is 2000 tokens. However, your messages resulted in ",
        "context_length_exceeded",
        chat(model="gpt-4.1-nano", messages=[{"role": "user", "content": LONG}]),
    ),
}

RESPONSES: dict[str, tuple[str, str | None, Json]] = {
    "call without output": (
        "No tool output found for function call b.",
        None,
        response(ASKED, call_item("a"), call_item("b"), output_item("a")),
    ),
    "output without call": (
        "No tool call found for function call output with call_id a.",
        None,
        response(ASKED, output_item("a")),
    ),
    "two outputs for one call": (
        "The output of call 'a' occurs twice",
        None,
        response(ASKED, call_item("a"), output_item("a"), output_item("a")),
    ),
    "call ids not unique": (
        "The call id 'a' occurs twice",
        None,
        response(ASKED, call_item("a"), call_item("a"), output_item("a")),
    ),
    "call id too long": (
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but"
        " got a string with length 65 instead.",
        "string_above_max_length",
        response(ASKED, call_item("a" * 65), output_item("a" * 65)),
    ),
    "function name": (
        "Invalid 'tools[0].name': string does not match pattern.",
        "invalid_value",
        response(tools=[response_tool("web.fetch")]),
    ),
    "output too long": (
        "Invalid 'input[2].output': string too long. Expected a string with maximum length"
        " 10485760",
        "string_above_max_length",
        response(ASKED, call_item("a"), output_item("a", "x" * 10_485_761)),
    ),
    "reasoning alone": (
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        None,
        response(ASKED, REASONING, item("user", "And?")),
    ),
    "reasoning without summary": (
        "Missing required parameter: 'input[1].summary'.",
        "missing_required_parameter",
        response(ASKED, {"type": "reasoning", "id": "rs_1"}, item("assistant", "Yes.")),
    ),
    "forged reasoning": (
        "The encrypted content for item rs_1 could not be verified.",
        "invalid_encrypted_content",
        response(ASKED, REASONING | {"encrypted_content": "gAAA"}, item("assistant", "Yes.")),
    ),
    "message without content": (
        "Missing required parameter: 'input[1].content'.",
        "missing_required_parameter",
        response(ASKED, item("assistant", [])),
    ),
    "arguments that are no object": (
        "Invalid 'input[1].arguments'",
        "invalid_value",
        response(ASKED, call_item("a", arguments="[1]"), output_item("a")),
    ),
    "unknown role": (
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and"
        " 'user'.",
        "invalid_value",
        response(ASKED, item("tool", "fine")),
    ),
    "unknown item": ("Invalid value: 'note'.", "invalid_value", response({"type": "note"})),
    "input part in an assistant message": (
        "Invalid value: 'input_text'. Supported values are: 'output_text'.",
        "invalid_value",
        response(ASKED, item("assistant", [{"type": "input_text", "text": "Yes."}])),
    ),
    "two kinds of state": (
        "Mutually exclusive parameters. Ensure you are only providing one of:"
        " 'previous_response_id' or 'conversation'.",
        "mutually_exclusive_parameters",
        response(previous_response_id="resp_1", conversation="conv_1"),
    ),
    "unknown previous response": (
        "Previous response with id 'resp_1' not found.",
        "previous_response_not_found",
        response(previous_response_id="resp_1"),
    ),
    "deferred tool without a search": (
        "Deferred tools require tools.tool_search",
        None,
        response(tools=[response_tool(defer_loading=True)]),
    ),
    "trigger that is not last": (
        "A 'compaction_trigger' must be the last input item.",
        None,
        response({"type": "compaction_trigger"}, ASKED),
    ),
    "threshold too small": (
        "Invalid 'context_management[0].compact_threshold': integer below minimum value. Expected a"
        " value >= 1000, but got 10 instead.",
        "integer_below_min_value",
        response(context_management=[{"type": "compaction", "compact_threshold": 10}]),
    ),
    "in-memory retention on a newer model": (
        "Invalid value: 'in_memory'. Supported values are: '24h'.",
        "invalid_value",
        response(prompt_cache_retention="in_memory"),
    ),
    "sampling on a reasoning model": (
        "Unsupported parameter: 'top_p' is not supported with this model.",
        "unsupported_parameter",
        response(top_p=0.5),
    ),
    "prompt too long": (
        "Your input exceeds the context window of this model. Please adjust your input and try"
        " again.",
        "context_length_exceeded",
        response(ASKED, item("user", LONG), model="strict/small"),
    ),
}


@pytest.mark.parametrize("name", CHAT)
def test_an_invalid_completion_is_refused_in_the_providers_words(
    shared_gpt: openai.OpenAI, name: str
) -> None:
    wording, code, arguments = CHAT[name]
    with pytest.raises(openai.BadRequestError) as caught:
        shared_gpt.chat.completions.create(**arguments)
    _as_said(caught.value, wording, code)


@pytest.mark.parametrize("name", RESPONSES)
def test_an_invalid_response_is_refused_in_the_providers_words(
    shared_gpt: openai.OpenAI, name: str
) -> None:
    wording, code, arguments = RESPONSES[name]
    with pytest.raises(openai.BadRequestError) as caught:
        shared_gpt.responses.create(**arguments)
    _as_said(caught.value, wording, code)


def _as_said(error: openai.BadRequestError, wording: str, code: str | None) -> None:
    body: Any = error.body
    assert wording in body["message"]
    assert error.code == code
    assert body["type"] == "invalid_request_error"


def test_the_two_tables_are_long_enough() -> None:
    assert len(CHAT) + len(RESPONSES) >= 40


def test_more_breakpoints_than_are_kept_are_no_error(shared_gpt: openai.OpenAI) -> None:
    parts = [
        {"type": "input_text", "text": f"Part {n}", "prompt_cache_breakpoint": MARK}
        for n in range(6)
    ]
    assert shared_gpt.responses.create(**response(item("user", parts))).status == "completed"


def test_an_unknown_model_is_not_found(shared_gpt: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        shared_gpt.chat.completions.create(**chat(model="claude-opus-5"))
    assert caught.value.code == "model_not_found"


def test_the_id_of_a_produced_item_demands_its_reasoning(shared_gpt: openai.OpenAI) -> None:
    asked = item("user", "call look")
    first = shared_gpt.responses.create(**response(asked, tools=[response_tool()]))
    reasoning, call = (plain(one) for one in first.output)
    answer = output_item(str(call["call_id"]))
    with pytest.raises(openai.BadRequestError) as caught:
        shared_gpt.responses.create(**response(asked, call, answer, tools=[response_tool()]))
    assert (
        f"Item '{call['id']}' of type 'function_call' was provided without its required 'reasoning'"
        f" item: '{reasoning['id']}'." in str(caught.value)
    )
    bare = {key: value for key, value in call.items() if key != "id"}
    for pair in ([reasoning, call], [bare]):
        again = shared_gpt.responses.create(**response(asked, *pair, answer))
        assert again.status == "completed"
