"""Values no API allows, in files that are read all the same: numbers without end, lists where words belong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.anthropic_messages import AnthropicMessages, content_turn
from ctxengine.engine.importers.openai_responses import OpenAIResponses, item_turns
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.texts import has_lone_surrogate, json_text, time_of_epoch
from ctxengine.engine.lexeme import parse
from tests.engine.importers.accounts import assert_sound

LONG = "9" * 5_000
"""More digits than the interpreter turns into a number by itself."""

CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "n", "input": "i"}, "n": "LONG"}
USER = {"role": "user", "content": "Go."}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "k"}]}

FILES: list[Any] = [
    {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [CUSTOM]}]},
    {"object": "response", "created_at": "LONG", "output": [SAID]},
    {"trajectory_format": "m", "messages": [{**USER, "extra": {"timestamp": "LONG"}}]},
    [{**USER, "ts": "LONG"}, {"role": "assistant", "content": "k", "ts": "LONG"}],
    {"system": "s", "messages": [USER, {"role": "assistant", "content": [{"type": ["x"]}]}]},
]


def written(value: Any) -> str:
    return json.dumps(value).replace('"LONG"', LONG)


@pytest.mark.parametrize("value", FILES)
def test_a_value_that_no_api_allows_stops_no_import(value: Any) -> None:
    assert_sound(read(written(value), name="x"))


@pytest.mark.parametrize(
    "kind", [["x"], {"a": 1}, "LONG", None, True, "text", "tool_use", "tool_result"]
)
def test_every_block_can_be_recognised_again(kind: Any) -> None:
    block = written({"type": kind, "id": "LONG", "text": ["y"], "n": "LONG"})
    turn = content_turn("user", parse(f"[{block}]"))
    assert AnthropicMessages().tokens(turn) == AnthropicMessages().tokens(turn)
    (item,) = item_turns([parse(block)])
    assert OpenAIResponses().tokens(item) == OpenAIResponses().tokens(item)


def test_a_streamed_answer_keeps_its_numbers() -> None:
    events = [
        {"type": "message_start", "message": {"role": "assistant", "n": "LONG"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "x", "n": "LONG"}},
    ]
    joined = AnthropicMessages().stream(map(written, events))
    assert joined is not None and joined.count(LONG) == 2
    parse(joined)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers() | st.just("LONG"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test_a_value_is_written_as_it_is(value: Any) -> None:
    meant = parse(written(value)).value()
    for sort_keys in (False, True):
        assert (parse(json_text(meant, sort_keys=sort_keys)).value() == meant) is True


@pytest.mark.parametrize("per_second", [1, 1_000])
def test_a_time_is_a_time_or_nothing(per_second: int) -> None:
    odd = [10**400, -(10**400), 1e308, float("inf"), float("nan"), 0, True, "1", None, [1]]
    assert not any(time_of_epoch(value, per_second=per_second) for value in odd)
    at = time_of_epoch(1_793_000_000 * per_second, per_second=per_second)
    assert at == "2026-10-26T07:33:20Z"


@pytest.mark.parametrize(
    ("written", "is_half"),
    [
        ('{"a":"\\ud83d"}', True),
        ('{"\\ud83d":1}', True),
        ('["\\ud83d\\ude00"]', False),
        ('["\\ude00\\ud83d"]', True),
        ('["\\\\ud83d"]', False),
        (f'["\\ud83d",{LONG}]', True),
        (f'["\\ud83d\\ude00",{LONG}]', False),
    ],
)
def test_half_characters_are_found_beside_anything(written: str, is_half: bool) -> None:
    assert has_lone_surrogate(written) == is_half


@pytest.mark.parametrize("output", ["a text", {"type": "message"}, [], None])
def test_a_response_without_a_list_of_items_stands_in_the_report(output: Any) -> None:
    answer = {"object": "response", "output": [SAID]}
    messages = [USER, answer, {"object": "response", "output": output}]
    transcript = read(json.dumps({"trajectory_format": "m", "messages": messages}), name="x")
    assert_sound(transcript)
    (session,) = transcript.sessions
    (repair,) = session.repairs
    assert (repair.code, repair.where) == ("unreadable_message", "message 3")
    assert json.dumps(output) in repair.raw
