"""What goes wrong by script or by directive, over the wire: limits, refusals, errors, stalls, cut streams, horizons."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.providers.strict_local.exchange import Call, dump
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.rule_answers import RuleAnswers, example_of
from ctxengine.providers.strict_local.script import (
    Offer,
    Reply,
    ScriptInvalid,
    Turn,
    View,
    reply_from,
)
from ctxengine.providers.strict_local.server import StrictServer
from tests.providers.strict_local.bodies import (
    GPT,
    LONG,
    SONNET,
    chat,
    item,
    message,
    plain,
    response,
    user,
)


def ask(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_a_directive_fails_once_and_the_sdk_tries_again(
    server: StrictServer, plain_http: httpx2.Client
) -> None:
    client = anthropic.Anthropic(
        base_url=server.url, api_key="test", max_retries=2, http_client=plain_http
    )
    answer = client.messages.create(
        **message(messages=ask("strict: 429 retry-after 0.01\nreply with: now"))
    )
    assert plain(answer.content[0])["text"] == "now"
    statuses = [entry.status for entry in server.provider.log.entries()]
    assert statuses == [429, 200]


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.OverloadedError, "overloaded_error"),
    ],
)
def test_errors_by_directive_are_typed_for_anthropic(
    claude: anthropic.Anthropic, status: int, error: type[anthropic.APIStatusError], kind: str
) -> None:
    with pytest.raises(error) as caught:
        claude.messages.create(**message(messages=ask(f"strict: {status} retry-after 7")))
    assert caught.value.type == kind
    assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_errors_by_script_are_typed_for_openai(
    gpt: openai.OpenAI, provider: StrictProvider, status: int, error: type[openai.APIStatusError]
) -> None:
    provider.script.add([Reply(status=status), Reply(status=status)])
    with pytest.raises(error):
        gpt.chat.completions.create(**chat())
    with pytest.raises(error):
        gpt.responses.create(**response())


def test_truncation_says_so_in_each_dialect(
    claude: anthropic.Anthropic, gpt: openai.OpenAI
) -> None:
    cut = "strict: truncate\nsay: " + "word " * 50
    said = claude.messages.create(**message(messages=ask(cut)))
    assert said.stop_reason == "max_tokens"
    assert said.usage.output_tokens <= 8
    completion = gpt.chat.completions.create(**chat(messages=ask(cut)))
    assert completion.choices[0].finish_reason == "length"
    answer = gpt.responses.create(**response(*ask(cut), reasoning={"effort": "none"}))
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


def test_the_output_limit_is_kept(claude: anthropic.Anthropic) -> None:
    said = claude.messages.create(**message(max_tokens=12, messages=ask("say: " + "word " * 99)))
    assert said.stop_reason == "max_tokens"
    assert said.usage.output_tokens <= 12


def test_the_window_ends_an_answer(claude: anthropic.Anthropic) -> None:
    count = 1_000
    while True:
        text = "say: " + "word " * count
        tokens = claude.messages.count_tokens(model="strict/small", messages=ask(text)).input_tokens
        if tokens > 1_700:
            break
        count += 50
    said = claude.messages.create(
        **message(model="strict/small", max_tokens=3_000, messages=ask(text))
    )
    assert said.stop_reason == "model_context_window_exceeded"


def test_refusals_say_so_in_each_dialect(claude: anthropic.Anthropic, gpt: openai.OpenAI) -> None:
    text = "strict: refuse"
    assert claude.messages.create(**message(messages=ask(text))).stop_reason == "refusal"
    completion = gpt.chat.completions.create(**chat(messages=ask(text)))
    assert (completion.choices[0].message.refusal or "").startswith("[scripted]")
    answer = gpt.responses.create(**response(*ask(text)))
    assert plain(answer.output[-1])["content"][0]["type"] == "refusal"


def test_a_cut_stream_is_a_lost_connection(claude: anthropic.Anthropic, gpt: openai.OpenAI) -> None:
    text = ask("strict: cut")
    with (
        pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)),
        claude.messages.stream(**message(messages=text)) as stream,
    ):
        stream.get_final_message()
    with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
        list(gpt.chat.completions.create(**chat(messages=text, stream=True)))
    with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
        list(gpt.responses.create(**response(*text, stream=True)))


def test_a_cut_answer_is_a_lost_connection(claude: anthropic.Anthropic) -> None:
    with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
        claude.messages.create(**message(messages=ask("strict: cut")))


def test_a_stall_runs_into_the_clients_limit(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.APITimeoutError):
        claude.messages.create(**message(messages=ask("strict: stall 20"), timeout=0.05))


def test_what_a_stalled_request_writes_cannot_be_read_before_it_begins(
    provider: StrictProvider,
) -> None:
    marked = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
    headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
    call = Call("POST", "/v1/messages", headers, dump(message(messages=[user(marked)])))
    first, second = provider.handle(call), provider.handle(call)
    assert b'"cache_read_input_tokens":0' in second.body
    provider.begin(first)
    assert b'"cache_read_input_tokens":0' not in provider.handle(call).body


# --- horizon ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "follows"), [(100, True), (2_000, False)])
@pytest.mark.parametrize("api", ["anthropic", "openai", "responses"])
def test_a_horizon_model_follows_as_long_as_the_prompt_is_short(
    claude: anthropic.Anthropic, gpt: openai.OpenAI, api: str, words: int, follows: bool
) -> None:
    model = "strict/horizon-1k"
    history: list[Any] = [
        {"role": "user", "content": "word " * words},
        {"role": "assistant", "content": "Noted that."},
        {"role": "user", "content": "reply with: nonce-7"},
    ]
    if api == "anthropic":
        arguments = message(model=model, messages=history)
        text = plain(claude.messages.create(**arguments).content[0])["text"]
    elif api == "openai":
        completion = gpt.chat.completions.create(**chat(model=model, messages=history))
        text = completion.choices[0].message.content
    else:
        text = gpt.responses.create(**response(*history, model=model)).output_text
    assert text == ("nonce-7" if follows else "Noted that.")


# --- rules ------------------------------------------------------------------------------------------------------------

OFFERS = (
    Offer("look", {"properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    Offer("hear"),
)


def view(*turns: Turn, **change: Any) -> View:
    return View(api="anthropic", model=SONNET, tokens=10, turns=turns, offers=OFFERS, **change)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Please call look.", [("look", '{"n": 1}')]),
        (
            'use the tool `look` with {"n": 7}, then call hear',
            [("look", '{"n": 7}'), ("hear", "{}")],
        ),
        ("call nothing", []),
        ("Do not bother to look.", []),
    ],
)
def test_instructions_to_call(text: str, calls: list[tuple[str, str]]) -> None:
    reply = RuleAnswers()(view(Turn("user", (text,))))
    assert [(call.name, call.arguments) for call in reply.calls] == calls


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Reply with exactly: yes", "yes"),
        ("Say: `one two`", "one two"),
        ('Answer only with this JSON: {"a": {"b": 1}} and no more.', '{"a": {"b": 1}}'),
        ('Respond with {"a": 1}', '{"a": 1}'),
    ],
)
def test_instructions_to_say(text: str, said: str) -> None:
    reply = RuleAnswers()(view(Turn("user", (text,))))
    assert (reply.text, reply.plain) == (said, True)


def test_an_older_instruction_is_not_taken_up_again() -> None:
    turns = [
        Turn("user", ("call look",)), Turn("assistant", calls=("look",)),
        Turn("user", results=("fine",)), Turn("assistant", ("Done.",)), Turn("user", ("Thanks.",)),
    ]  # fmt: skip
    assert RuleAnswers()(view(*turns)).text == "I was told: Thanks."


@given(st.text(max_size=200))
def test_any_text_gets_an_answer(text: str) -> None:
    reply = RuleAnswers()(view(Turn("user", (text,))))
    assert reply.text is not None or reply.calls or reply.status or reply.refuse


def test_examples_satisfy_the_plain_parts_of_a_schema() -> None:
    schema = {
        "properties": {
            "kind": {"const": "x"}, "n": {"type": ["integer", "null"]}, "list": {"type": "array"},
            "in": {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]},
            "any": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "left": {"type": "string"},
        },
        "required": ["kind", "n", "list", "in", "any"],
    }  # fmt: skip
    assert example_of(schema) == {"kind": "x", "n": 1, "list": [], "in": {"b": True}, "any": 1}


@pytest.mark.parametrize(
    "data", [[], {"txt": "x"}, {"text": 5}, {"calls": [{"arguments": {}}]}], ids=str
)
def test_a_script_that_says_nothing_sensible_is_refused(data: Any) -> None:
    with pytest.raises(ScriptInvalid):
        reply_from(data)


def test_a_reply_from_json() -> None:
    data = {"text": "Yes.", "calls": [{"name": "look", "arguments": {"a": 1}}], "stall_seconds": 1}
    reply = reply_from(data)
    assert (reply.text, reply.calls[0].arguments, reply.stall_seconds) == ("Yes.", '{"a": 1}', 1)


def test_an_answering_function_goes_before_the_rules() -> None:
    seen: list[View] = []

    def answer(asked: View) -> Reply | None:
        seen.append(asked)
        return Reply(text="Mine.") if len(seen) == 1 else None

    with StrictServer(StrictProvider(answer=answer)) as server:
        url = f"{server.openai_url}/responses"
        body = response(item("user", "Hello"), model=GPT)
        headers = {"authorization": "Bearer k"}
        texts = [
            httpx2.post(url, json=body, headers=headers, verify=False).json()["output"][-1]
            for _ in range(2)
        ]
    assert texts[0]["content"][0]["text"] == "[scripted] Mine."
    assert texts[1]["content"][0]["text"] == "[scripted] I was told: Hello"
    assert seen[0].turns[0].texts == ("Hello",)
