"""Valid conversations through the official SDKs: whole and streamed, with tools, for all three APIs."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from tests.providers.strict_local.bodies import (
    GPT,
    OLD_GPT,
    OPUS,
    SONNET,
    Json,
    chat,
    chat_result,
    function,
    item,
    message,
    output_item,
    plain,
    response,
    response_tool,
    result,
    tool,
    user,
)

ASK = 'call look {"where": "attic"} 3 times'


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", [OPUS, SONNET, "claude-fable-5-2", "strict/any"])
def test_messages_call_tools_until_they_are_done(
    claude: anthropic.Anthropic, model: str, streamed: bool
) -> None:
    messages: list[Any] = [{"role": "user", "content": ASK}]
    calls = 0
    while True:
        arguments: Any = message(model=model, max_tokens=500, tools=[tool()], messages=messages)
        if streamed:
            with claude.messages.stream(**arguments) as stream:
                answer: anthropic.types.Message = stream.get_final_message()
        else:
            answer = claude.messages.create(**arguments)
        messages.append({"role": "assistant", "content": answer.content})
        made = [block for block in answer.content if block.type == "tool_use"]
        assert answer.stop_reason == ("tool_use" if made else "end_turn")
        if not made:
            break
        assert made[0].input == {"where": "attic"}
        calls += len(made)
        messages.append(user(*[result(block.id) for block in made]))
    assert calls == 3
    assert answer.model == f"strict/{model.removeprefix('strict/')}"
    thinks = answer.content[0].type == "thinking"
    assert thinks == (model in {OPUS, "claude-fable-5-2"})
    assert answer.content[-1].type == "text"
    assert answer.content[-1].text.startswith("[scripted] Done after 3 results")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", [GPT, OLD_GPT])
def test_completions_call_tools_until_they_are_done(
    gpt: openai.OpenAI, model: str, streamed: bool
) -> None:
    messages: list[Any] = [{"role": "user", "content": ASK}]
    calls = 0
    while True:
        arguments: Any = chat(model=model, tools=[function()], messages=messages)
        if streamed:
            with gpt.chat.completions.stream(
                **arguments, stream_options={"include_usage": True}
            ) as stream:
                answer: Any = stream.get_final_completion()
        else:
            answer = gpt.chat.completions.create(**arguments)
        assert answer.usage.prompt_tokens > 0
        said = answer.choices[0].message
        messages.append(plain(said))
        if not said.tool_calls:
            break
        assert answer.choices[0].finish_reason == "tool_calls"
        assert json.loads(said.tool_calls[0].function.arguments) == {"where": "attic"}
        calls += len(said.tool_calls)
        messages += [chat_result(call.id) for call in said.tool_calls]
    assert calls == 3
    assert answer.model == f"strict/{model}"
    assert said.content.startswith("[scripted] Done after 3 results")


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_call_tools_with_reasoning_replayed_until_they_are_done(
    gpt: openai.OpenAI, streamed: bool
) -> None:
    items: list[Any] = [item("user", ASK)]
    calls = 0
    while True:
        arguments: Any = response(*items, tools=[response_tool()])
        if streamed:
            with gpt.responses.stream(**arguments) as stream:
                answer: Any = stream.get_final_response()
        else:
            answer = gpt.responses.create(**arguments)
        assert answer.output[0].type == "reasoning"
        assert answer.output[0].encrypted_content
        assert answer.input_transformations == []
        items += [plain(one) for one in answer.output]
        made = [one for one in answer.output if one.type == "function_call"]
        if not made:
            break
        calls += len(made)
        items += [output_item(one.call_id) for one in made]
    assert calls == 3
    assert answer.output_text.startswith("[scripted] Done after 3 results")


def test_a_stored_response_is_continued_by_its_id(gpt: openai.OpenAI) -> None:
    first = gpt.responses.create(model=GPT, input="Remember the word pear.")
    second = gpt.responses.create(
        model=GPT, input="reply with: pear", previous_response_id=first.id
    )
    assert second.output_text == "pear"
    assert second.usage is not None and first.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens - 5


def test_parallel_calls_are_made_in_one_step(claude: anthropic.Anthropic) -> None:
    tools: Any = [tool("look"), tool("listen")]
    answer = claude.messages.create(
        **message(tools=tools, messages=[{"role": "user", "content": "call look and listen"}])
    )
    assert [block.name for block in answer.content if block.type == "tool_use"] == [
        "look", "listen",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "stop"), [({"type": "any"}, "tool_use"), ({"type": "none"}, "end_turn")]
)
def test_a_tool_choice_is_obeyed(claude: anthropic.Anthropic, choice: Json, stop: str) -> None:
    ask = [{"role": "user", "content": "call look" if stop == "end_turn" else "Hello"}]
    answer = claude.messages.create(**message(tools=[tool()], tool_choice=choice, messages=ask))
    assert answer.stop_reason == stop


def test_a_schema_is_answered_with_an_object_of_it(gpt: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "size": {"enum": ["s", "m"]}},
        "required": ["city", "size"],
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    answer = gpt.chat.completions.create(**chat(response_format=form))
    assert json.loads(answer.choices[0].message.content or "") == {"city": "scripted", "size": "s"}


def test_an_exact_instruction_is_followed_and_the_answer_still_says_that_it_is_scripted(
    claude: anthropic.Anthropic,
) -> None:
    ask = [{"role": "user", "content": 'Reply with only this JSON: {"nonce": "a1"}'}]
    raw = claude.messages.with_raw_response.create(**message(messages=ask))
    assert plain(raw.parse().content[0]) == {"type": "text", "text": '{"nonce": "a1"}'}
    assert raw.headers["x-strict-provider"] == "scripted"
    assert raw.parse().model == f"strict/{SONNET}"


def test_queued_replies_come_in_order_then_the_rules(
    provider: StrictProvider, claude: anthropic.Anthropic
) -> None:
    provider.script.add(
        [Reply(text="One."), Reply(calls=(ScriptedCall("look", '{"a": 1}', "toolu_own"),))]
    )
    answers = [claude.messages.create(**message(tools=[tool()])).content[0] for _ in range(3)]
    assert plain(answers[0])["text"] == "[scripted] One."
    assert plain(answers[1]) == {
        "type": "tool_use", "id": "toolu_own", "name": "look", "input": {"a": 1},
    }  # fmt: skip
    assert plain(answers[2])["text"] == "[scripted] I was told: Hello"


def test_text_that_a_runtime_puts_beside_results_starts_nothing_new(
    claude: anthropic.Anthropic,
) -> None:
    ask: list[Any] = [{"role": "user", "content": "call look"}]
    first = claude.messages.create(**message(tools=[tool()], messages=ask))
    call = next(block for block in first.content if block.type == "tool_use")
    beside = {"type": "text", "text": "Working state: nothing is open."}
    ask += [{"role": "assistant", "content": first.content}, user(result(call.id), beside)]
    second = claude.messages.create(**message(tools=[tool()], messages=ask))
    assert second.stop_reason == "end_turn"
    assert plain(second.content[0])["text"].startswith("[scripted] Done after 1 results")


def test_counts_are_those_that_are_billed(claude: anthropic.Anthropic, gpt: openai.OpenAI) -> None:
    counted = claude.messages.count_tokens(model=SONNET, messages=[user()], tools=[tool()])
    billed = claude.messages.create(**message(tools=[tool()])).usage
    assert counted.input_tokens == billed.input_tokens > 300
    items: Any = [item("user", "Hello")]
    count = gpt.responses.input_tokens.count(model=GPT, input=items)
    usage = gpt.responses.create(**response(*items)).usage
    assert usage is not None
    assert count.input_tokens == usage.input_tokens > 0


def test_a_factor_scales_what_is_counted() -> None:
    body = b'{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"one two three"}]}'
    figures = []
    for factor in (1.0, 2.0):
        headers = {"anthropic-version": "2026-10-21", "x-api-key": "k"}
        call = Call("POST", "/v1/messages/count_tokens", headers, body)
        answer = StrictProvider(factor=factor).handle(call)
        figures.append(json.loads(answer.body)["input_tokens"])
    assert figures[0] * 1.7 < figures[1] <= figures[0] * 2.2


def test_models_are_listed_with_their_windows(
    claude: anthropic.Anthropic, gpt: openai.OpenAI
) -> None:
    assert OPUS in [model.id for model in claude.models.list()]
    assert claude.models.retrieve("claude-haiku-4-5").max_input_tokens == 200_000
    assert GPT in [model.id for model in gpt.models.list()]
    with pytest.raises(openai.NotFoundError):
        gpt.models.retrieve("unheard-of")
