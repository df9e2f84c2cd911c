"""Signed thinking: what may be done to a conversation that holds some, and what may not."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from ctxengine.providers.strict_local.exchange import Call, dump
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from tests.providers.strict_local.bodies import (
    OPUS,
    SHORT_LIFE,
    Json,
    message,
    plain,
    result,
    says,
    tool,
    user,
)

BOUND = "The block is bound to a different conversation"
CONTROLS = "thinking-binding-controls-2026-08-01"
ADAPTIVE: Json = {"type": "adaptive"}
DROPPING: Json = ADAPTIVE | {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def talk(claude: anthropic.Anthropic, steps: int = 3, **change: Any) -> Json:
    """A conversation of some steps, each with thinking and a call; its next request."""
    base = message(model=OPUS, max_tokens=500, tools=[tool()], system="Be brief.") | change
    messages: list[Json] = [{"role": "user", "content": f"call look {steps} times"}]
    for _ in range(steps):
        answer = claude.messages.create(**(base | {"messages": messages}))
        content = [plain(block) for block in answer.content]
        messages.append({"role": "assistant", "content": content})
        messages.append(user(*[result(b["id"]) for b in content if b["type"] == "tool_use"]))
    return base | {"messages": messages}


def send(claude: anthropic.Anthropic, request: Json, **change: Any) -> anthropic.types.Message:
    answer: anthropic.types.Message = claude.messages.create(**(request | change))
    return answer


def without_thinking(request: Json, *steps: int) -> Json:
    """The request without the thinking of some steps."""
    messages = [
        one | {"content": [b for b in one["content"] if b["type"] != "thinking"]}
        if one["role"] == "assistant" and number // 2 in steps
        else one
        for number, one in enumerate(request["messages"])
    ]
    return request | {"messages": messages}


ALLOWED: dict[str, Any] = {
    "nothing": lambda r: r,
    "marking": lambda r: r | {"system": [says("Be brief.", cache_control=SHORT_LIFE)]},
    "another effort": lambda r: r | {"output_config": {"effort": "low"}},
    "another limit": lambda r: r | {"max_tokens": 300},
    "another choice": lambda r: r | {"tool_choice": {"type": "none"}},
    "a deferred tool more": lambda r: r | {"tools": [*r["tools"], tool("t", defer_loading=True)]},
    "no thinking at the start": lambda r: without_thinking(r, 0),
    "no thinking at the end": lambda r: without_thinking(r, 2),
    "no thinking at all": lambda r: without_thinking(r, 0, 1, 2),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_may_change_around_thinking(claude: anthropic.Anthropic, name: str) -> None:
    assert send(claude, ALLOWED[name](talk(claude))).stop_reason == "end_turn"


def with_result(request: Json, text: str) -> Json:
    """The request with its first tool result rewritten."""
    messages = list(request["messages"])
    call_id = messages[2]["content"][0]["tool_use_id"]
    messages[2] = user(result(call_id, text))
    return request | {"messages": messages}


FORBIDDEN: dict[str, Any] = {
    "another system text": lambda r: r | {"system": "Be verbose."},
    "another tool": lambda r: r | {"tools": [*r["tools"], tool("listen")]},
    "a shortened result": lambda r: with_result(r, "(cut)"),
    "no thinking in the middle": lambda r: without_thinking(r, 1),
    "another first message": lambda r: r | {"messages": [user(says("Go on.")), *r["messages"][1:]]},
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_may_not_change_before_thinking(claude: anthropic.Anthropic, name: str) -> None:
    request = FORBIDDEN[name](talk(claude))
    with pytest.raises(anthropic.BadRequestError, match=BOUND):
        send(claude, request)
    with pytest.raises(anthropic.BadRequestError, match=BOUND):
        claude.messages.count_tokens(**{k: v for k, v in request.items() if k != "max_tokens"})


def test_thinking_that_was_taken_away_cannot_come_back(claude: anthropic.Anthropic) -> None:
    request = talk(claude, steps=1)
    bare = without_thinking(request, 0)
    ask = user(*bare["messages"][-1]["content"], says("call look 9 times"))
    longer = [*bare["messages"][:-1], ask]
    answer = send(claude, bare, messages=longer)
    assert answer.stop_reason == "tool_use"
    call = next(block for block in answer.content if block.type == "tool_use")
    restored = [*request["messages"][:-1], ask]
    tail: list[Any] = [{"role": "assistant", "content": answer.content}, user(result(call.id))]
    assert send(claude, bare, messages=[*longer, *tail]).id
    with pytest.raises(anthropic.BadRequestError, match=BOUND):
        send(claude, bare, messages=[*restored, *tail])


def test_a_mismatch_is_dropped_and_reported_on_request(claude: anthropic.Anthropic) -> None:
    request = with_result(talk(claude), "(cut)")
    answer = claude.beta.messages.create(**request, thinking=DROPPING, betas=[CONTROLS])
    assert answer.input_transformations is not None
    assert [plain(one) for one in answer.input_transformations] == [
        {
            "type": "thinking_dropped",
            "path": f"messages.{number}.content.0",
            "reason": "prefix_binding_mismatch",
        }
        for number in (3, 5)
    ]
    again = claude.beta.messages.create(**request, thinking=DROPPING, betas=[CONTROLS])
    assert again.usage.input_tokens == answer.usage.input_tokens


def test_the_control_needs_its_header(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="block_binding: Extra inputs"):
        send(claude, talk(claude, steps=1), thinking=DROPPING)


def test_changed_thinking_is_refused_by_place(claude: anthropic.Anthropic) -> None:
    request = talk(claude, steps=2)
    newest, older = request["messages"][3]["content"][0], request["messages"][1]["content"][0]
    newest["thinking"] += "!"
    with pytest.raises(
        anthropic.BadRequestError, match="blocks in the latest assistant message cannot be modified"
    ):
        send(claude, request)
    newest["thinking"] = newest["thinking"][:-1]
    older["thinking"] += "!"
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.1\.content\.0: Invalid `sig"):
        send(claude, request)


def test_models_that_do_not_bind_take_an_edited_prefix(claude: anthropic.Anthropic) -> None:
    request = talk(claude, model="claude-opus-4-8", thinking=ADAPTIVE)
    assert request["messages"][1]["content"][0]["type"] == "thinking"
    assert send(claude, with_result(request, "(cut)")).stop_reason == "end_turn"


def test_thinking_of_a_model_that_cannot_be_read_is_dropped_silently_and_unbilled(
    claude: anthropic.Anthropic,
) -> None:
    request = talk(claude, model="claude-fable-5-2")
    bare = without_thinking(request, 0, 1, 2)
    for model in ("claude-opus-4-8", OPUS):
        billed = [send(claude, one, model=model).usage.input_tokens for one in (request, bare)]
        assert billed[0] == billed[1]


def test_thinking_of_earlier_turns_is_kept_or_stripped_by_model(
    claude: anthropic.Anthropic,
) -> None:
    budget = {"type": "enabled", "budget_tokens": 1_024}
    costs = {}
    for model in ("claude-sonnet-4-6", "strict/claude-sonnet-4-5"):
        request = talk(claude, model=model, max_tokens=2_000, thinking=budget)
        request["messages"].append({"role": "assistant", "content": [says("Done.")]})
        request["messages"].append(user(says("Thanks.")))
        bare = without_thinking(request, 0, 1, 2)
        costs[model] = [send(claude, one).usage.input_tokens for one in (request, bare)]
    kept, stripped = costs.values()
    assert kept[0] > kept[1]
    assert stripped[0] == stripped[1]


def test_signatures_stay_good_when_the_server_starts_again(claude: anthropic.Anthropic) -> None:
    request = talk(claude, steps=1)
    call = Call(
        "POST", "/v1/messages", {"x-api-key": "k", "anthropic-version": "2026-10-21"}, dump(request)
    )
    assert StrictProvider().handle(call).status == 200
    assert StrictProvider(secret=b"another").handle(call).status == 400


def test_scripted_thinking_is_signed_too(
    claude: anthropic.Anthropic, provider: StrictProvider
) -> None:
    provider.script.add([Reply(text="Yes.", thinking="I wonder.")])
    answer = claude.messages.create(**message(model="claude-opus-4-8"))
    first = answer.content[0]
    assert first.type == "thinking" and first.thinking == "I wonder."
    assert answer.usage.output_tokens_details is not None
    assert 0 < answer.usage.output_tokens_details.thinking_tokens < answer.usage.output_tokens
    again = [user(), {"role": "assistant", "content": answer.content}, user()]
    assert claude.messages.create(**message(model="claude-opus-4-8", messages=again)).id
