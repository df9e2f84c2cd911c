"""The table of validity rules: every rule has a body that breaks it alone, and real requests pass."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import RULES, Rule, violations


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_failing_example_breaks_its_own_rule_and_no_other(rule: Rule) -> None:
    found = violations(rule.api, rule.failing_example)
    assert {violation.rule for violation in found} == {rule.id}
    assert all(violation.path.startswith("$") and violation.message for violation in found)


def test_rule_ids_are_unique_and_every_rule_says_what_and_whence() -> None:
    assert max(Counter(rule.id for rule in RULES).values()) == 1
    assert all(rule.text.endswith(".") and rule.source for rule in RULES)


def test_a_breach_names_its_place() -> None:
    rule = next(rule for rule in RULES if rule.id == "anthropic.pairs.next")
    (found,) = violations(rule.api, rule.failing_example)
    assert found.path == "$.messages[1].content[1]"
    assert "'b'" in found.message


def anthropic(*messages: Any, model: str = "claude-sonnet-4-6") -> bytes:
    return json.dumps({"model": model, "max_tokens": 9, "messages": messages}).encode()


ASK = {"role": "user", "content": "Look it up, then add 2 and 2."}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
ADD = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
FOUR = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "4"}


def test_a_server_tool_in_flight_beside_an_answered_call_is_legal() -> None:
    step = {"role": "assistant", "content": [SEARCH, ADD]}
    answer = {"role": "user", "content": [FOUR]}
    assert violations(WireApi.ANTHROPIC, anthropic(ASK, step, answer)) == ()


def test_a_paused_server_tool_may_end_the_conversation() -> None:
    paused = {"role": "assistant", "content": [SEARCH]}
    assert violations(WireApi.ANTHROPIC, anthropic(ASK, paused)) == ()


@pytest.mark.parametrize(
    ("model", "allowed"),
    [
        ("claude-3-5-sonnet-20241022", True),
        ("claude-sonnet-4-20250514", True),
        ("claude-opus-4-5", True),
        ("claude-sonnet-4-6", False),
        ("claude-opus-5-5", False),
        ("claude-fable-5-2", False),
    ],
)
def test_prefill_is_refused_from_the_models_that_refuse_it(model: str, allowed: bool) -> None:
    body = anthropic(ASK, {"role": "assistant", "content": "The answer is"}, model=model)
    assert (violations(WireApi.ANTHROPIC, body) == ()) is allowed
    trailing = anthropic(ASK, {"role": "assistant", "content": "It is "}, model=model)
    assert violations(WireApi.ANTHROPIC, trailing) != ()


def test_split_results_of_one_role_are_joined_before_they_are_judged() -> None:
    step = {"role": "assistant", "content": [ADD, ADD | {"id": "toolu_2"}]}
    first = {"role": "user", "content": [FOUR]}
    second = {"role": "user", "content": [FOUR | {"tool_use_id": "toolu_2"}]}
    assert violations(WireApi.ANTHROPIC, anthropic(ASK, step, first, second)) == ()


@pytest.mark.parametrize("api", list(WireApi))
@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'"\xff"', b"[" * 200_000], ids=range(5))
def test_what_is_no_request_at_all_is_reported_as_that(api: WireApi, body: bytes) -> None:
    (found,) = violations(api, body)
    assert found.rule == f"{api}.body.json"


@pytest.mark.parametrize("api", list(WireApi))
@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":{"a":1},"input":7,"tools":"x","system":[3]}',
        b'{"messages":[1,{"role":[],"content":[[],{"type":{}}]}],"input":[[],{"type":[]}]}',
    ],
    ids=range(2),
)
def test_nonsense_where_lists_belong_never_crashes_the_check(api: WireApi, body: bytes) -> None:
    assert all(found.rule.startswith(f"{api}.") for found in violations(api, body))


def test_numbers_of_any_length_are_read() -> None:
    call = json.dumps(ADD).replace("{}", '{"n":' + "9" * 5_000 + "}")
    body = anthropic(
        ASK, {"role": "assistant", "content": ["CALL"]}, {"role": "user", "content": [FOUR]}
    )
    assert violations(WireApi.ANTHROPIC, body.replace(b'"CALL"', call.encode())) == ()


ACCEPTED_THOUGH_OURS_ARE_STRICTER = {
    "anthropic.first.user",
    "openai-responses.ids.partner",
}
"""Two recorded requests that a provider took although the documents say otherwise, or that ours never are."""


@pytest.mark.corpus
def test_requests_that_providers_accepted_pass_the_rules(corpus_folder: Path) -> None:
    seen = 0
    for folder in ("anthropic_messages", "openai_chat", "openai_responses"):
        for path in sorted((corpus_folder / folder).glob("*.exchanges.json")):
            for exchange in json.loads(path.read_text("utf-8"))["exchanges"]:
                if exchange["status"] != 200:
                    continue
                found = violations(
                    api_of(exchange["uri"]), json.dumps(exchange["request"]).encode()
                )
                assert {v.rule for v in found} <= ACCEPTED_THOUGH_OURS_ARE_STRICTER, path.name
                seen += 1
    assert seen > 30


def api_of(uri: str) -> WireApi:
    if "anthropic" in uri:
        return WireApi.ANTHROPIC
    return WireApi.OPENAI_CHAT if "/chat/" in uri else WireApi.OPENAI_RESPONSES
