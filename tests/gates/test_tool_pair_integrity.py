"""Gate: no call without its result and no result without its call ever passes the wire check."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxengine.engine.wire.base import WireCall, WireMessage, WireRenderer, WireResult
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.engine.wire.rules import violations
from tests.engine.wire.conversations import PARAMS, PREFIX, conversations

pytestmark = pytest.mark.gate

every_api = pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])


def broken_rules(renderer: WireRenderer, messages: list[WireMessage]) -> set[str]:
    fragments = tuple(f for message in messages for f in renderer.fragments(message))
    body = renderer.body(PREFIX, fragments, PARAMS)
    return {violation.rule.rsplit(".", 2)[-2] for violation in violations(renderer.api, body)}


def without(messages: tuple[WireMessage, ...], turn: int, part: int) -> list[WireMessage]:
    changed = list(messages)
    parts = messages[turn].parts
    changed[turn] = WireMessage(messages[turn].role, parts[:part] + parts[part + 1 :])
    return changed


def places(messages: tuple[WireMessage, ...], kind: type) -> list[tuple[int, int]]:
    return [
        (turn, part)
        for turn, message in enumerate(messages)
        for part, value in enumerate(message.parts)
        if isinstance(value, kind)
    ]


@every_api
@given(conversations())
def test_whole_pairs_pass(provider: str, messages: tuple[WireMessage, ...]) -> None:
    assert broken_rules(renderer_for(provider), list(messages)) == set()


@every_api
@given(conversations(), st.data())
def test_a_lost_result_is_always_caught(
    provider: str, messages: tuple[WireMessage, ...], data: st.DataObject
) -> None:
    results = places(messages, WireResult)
    assume(results)
    turn, part = data.draw(st.sampled_from(results))
    assert "pairs" in broken_rules(renderer_for(provider), without(messages, turn, part))


@every_api
@given(conversations(), st.data())
def test_a_lost_call_is_always_caught(
    provider: str, messages: tuple[WireMessage, ...], data: st.DataObject
) -> None:
    calls = places(messages, WireCall)
    assume(calls)
    turn, part = data.draw(st.sampled_from(calls))
    assert "pairs" in broken_rules(renderer_for(provider), without(messages, turn, part))


@every_api
@given(conversations(), st.data())
def test_a_repeated_result_is_always_caught(
    provider: str, messages: tuple[WireMessage, ...], data: st.DataObject
) -> None:
    results = places(messages, WireResult)
    assume(results)
    turn, part = data.draw(st.sampled_from(results))
    changed = list(messages)
    again = messages[turn].parts[part]
    changed[turn] = WireMessage("user", (*messages[turn].parts, again))
    assert "pairs" in broken_rules(renderer_for(provider), changed)
