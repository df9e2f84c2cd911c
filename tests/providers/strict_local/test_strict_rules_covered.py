"""Every validity rule of the engine either has the provider's words or is known to be no rule of the provider."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import RULES, Rule
from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.rules import ACCEPTED
from ctxengine.providers.strict_local.rules_anthropic import WORDINGS
from ctxengine.providers.strict_local.rules_openai import CHAT, RESPONSES

PATHS = {
    WireApi.ANTHROPIC: "/v1/messages",
    WireApi.OPENAI_CHAT: "/v1/chat/completions",
    WireApi.OPENAI_RESPONSES: "/v1/responses",
}
OLLAMA = "/api/chat"
"""A server of one's own: it takes most of what the rules refuse, and never fails over any of it."""
NOT_SPOKEN = {WireApi.GOOGLE, WireApi.BEDROCK}
HELD = [rule for rule in RULES if rule.api in PATHS]


def named(rule: Rule) -> str:
    return rule.id


def post(rule: Rule, path: str = "") -> tuple[int, str]:
    headers = {"authorization": "Bearer test", "anthropic-version": "2026-10-21"}
    call = Call("POST", path or PATHS[rule.api], headers, rule.failing_example)
    answer = StrictProvider().handle(call)
    return answer.status, answer.body.decode()


@pytest.mark.parametrize("rule", [rule for rule in HELD if rule.id not in ACCEPTED], ids=named)
def test_the_example_of_a_rule_is_refused(rule: Rule) -> None:
    status, body = post(rule)
    assert status == 400
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("rule", [rule for rule in HELD if rule.id in ACCEPTED], ids=named)
def test_the_example_of_a_house_rule_is_accepted(rule: Rule) -> None:
    status, body = post(rule)
    assert status == 200, body


def test_no_rule_has_words_and_an_exemption() -> None:
    worded = {*WORDINGS, *CHAT, *RESPONSES}
    assert worded.isdisjoint(ACCEPTED)
    assert worded | set(ACCEPTED) == {rule.id for rule in HELD}


def test_every_api_is_held_taken_or_not_spoken() -> None:
    assert set(PATHS) | {WireApi.OLLAMA} | NOT_SPOKEN == set(WireApi)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.api is WireApi.OLLAMA], ids=named)
def test_ollama_answers_the_example_of_any_rule(rule: Rule) -> None:
    status, body = post(rule, OLLAMA)
    assert status in {200, 400}, body
