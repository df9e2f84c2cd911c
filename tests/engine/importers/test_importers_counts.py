"""The quick count of a message: nothing, or exactly what the decoder finds; so that no block stops a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.content.decode import Role
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.shapes import (
    Shape,
    anthropic_shape,
    chat_shape,
    decoded_shape,
    responses_shape,
)
from ctxengine.engine.items import ContentFormat
from tests.engine.importers.accounts import assert_sound

ODD = st.sampled_from(
    [None, "", "x", 0, 1, True, False, 1.0, [], {}, "{}", '{"a":1}', ["x"], {"a": 1}, [None], [[]],
     [{"type": "text", "text": "t"}], [{"type": "text", "text": ""}], [{"type": "text"}], "\ud800"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["text", "tool_use", "tool_result", "thinking", "reasoning", "server_tool_use", "compaction",
     "web_search_tool_result", "image_url", "input_text", "output_text", "refusal", "input_image",
     "input_file", "file", "image", "document", "audio", "input_audio", "tool_call", "foo", "", None,
     5]
)  # fmt: skip
MEMBERS = ["text", "id", "name", "input", "tool_use_id", "is_error", "content", "call_id", "arguments",
           "source", "data", "url", "title", "refusal", "image_url", "file", "thinking"]  # fmt: skip
SOUND = {"text": "t", "id": "i", "name": "n", "input": {}, "tool_use_id": "i"}


@st.composite
def blocks(draw: st.DrawFn) -> Any:
    odd = draw(st.dictionaries(st.sampled_from(MEMBERS), ODD, max_size=3))
    sound = SOUND if draw(st.booleans()) else {}
    return {"type": draw(KINDS), **sound, **odd}


CONTENT = st.lists(blocks(), max_size=3) | ODD
CALLS = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": ODD | st.just("n"), "arguments": ODD}) | ODD},
    optional={"id": ODD | st.just("i"), "type": ODD, "custom": ODD | st.just({"name": "n", "input": "i"})},
)  # fmt: skip
CHAT = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system"]), "content": CONTENT},
    optional={
        **dict.fromkeys(["refusal", "audio", "function_call", "tool_call_id", "name", "tool_name"], ODD),
        **dict.fromkeys(["reasoning_content", "thinking_blocks", "provider_specific_fields"], ODD),
        "tool_calls": st.lists(CALLS, max_size=2) | ODD,
    },
)  # fmt: skip
ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(
        ["message", "reasoning", "function_call", "custom_tool_call", "function_call_output",
         "custom_tool_call_output", "local_shell_call", "shell_call_output", "web_search_call",
         "mcp_call", "foo_output", "compaction", "foo", None, "", 5])},
    optional={
        **dict.fromkeys(["id", "arguments", "input", "output", "phase", "action", "summary"], ODD),
        "call_id": ODD | st.just("c"), "name": ODD | st.just("n"), "content": CONTENT,
        "role": st.sampled_from(["user", "assistant", "tool", None]),
    },
)  # fmt: skip


def assert_same(quick: Shape | None, format: ContentFormat, value: Any, role: Role) -> None:
    if quick is not None:
        assert quick == decoded_shape(format, json.dumps(value), role=role), value


@settings(max_examples=400)
@given(CONTENT, st.sampled_from(["user", "assistant"]))
def test_the_count_of_anthropic_content_is_the_decoders(content: Any, role: Role) -> None:
    assert_same(anthropic_shape(content), ContentFormat.ANTHROPIC, content, role)


@settings(max_examples=400)
@given(CHAT)
def test_the_count_of_a_chat_message_is_the_decoders(message: Any) -> None:
    assert_same(chat_shape(message), ContentFormat.OPENAI_CHAT, message, "user")


@settings(max_examples=400)
@given(st.lists(ITEMS, min_size=1, max_size=3))
def test_the_count_of_responses_items_is_the_decoders(items: Any) -> None:
    assert_same(responses_shape(items), ContentFormat.OPENAI_RESPONSES, items, "assistant")


USE = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
CASES: list[tuple[Any, Any]] = [
    (anthropic_shape, [{"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": flag}])
    for flag in (0, 1, 0.0, "true", "")
]  # fmt: skip
CASES += [
    (anthropic_shape, [{"type": kind, "text": None}])
    for kind in ("input_text", "output_text", "refusal", "text")
]
CASES += [
    (anthropic_shape, [{"type": "input_audio", "input_audio": {"data": 5}}]),
    (anthropic_shape, [{"type": "audio", "data": {}}]),
    (responses_shape, [{"type": "function_call", "call_id": "c", "name": "", "arguments": ""}]),
    (chat_shape, {"role": "tool", "tool_call_id": "t", "content": "x", "tool_name": True}),
]


@pytest.mark.parametrize(("count", "value"), CASES)
def test_what_the_decoder_refuses_is_not_counted(count: Any, value: Any) -> None:
    assert count(value) is None


@settings(max_examples=150, deadline=None)
@given(st.lists(blocks(), min_size=1, max_size=3), st.lists(blocks(), min_size=1, max_size=3))
def test_no_block_stops_a_file(first: list[Any], second: list[Any]) -> None:
    """Whatever the first words are, the title among what is made of them."""
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "found"}]
    messages = [
        {"role": "user", "content": [*first, {"type": "text", "text": "Go."}]},
        {"role": "assistant", "content": [*second, USE]},
        {"role": "user", "content": result},
    ]
    for text in (
        json.dumps({"system": "S", "messages": messages}),
        json.dumps(messages),
        "".join(json.dumps(message) + "\n" for message in messages),
    ):
        assert_sound(read(text, name="x"))


LOOSE_KINDS = ["tool_use", "tool_call", "tool_result", "text", "input_text", "refusal", "file", "image",
               "document", "input_audio", "thinking", "reasoning", "toolUse", "function_call", "foo"]  # fmt: skip


@pytest.mark.parametrize("kind", LOOSE_KINDS)
def test_no_odd_part_of_any_form_stops_a_file(kind: str) -> None:
    """A part that its reader does not know must not be framed as one that the decoder takes for a call or a text."""
    parts: list[Any] = [{kind: {"a": 1}}, {"type": kind}, {"type": kind, kind: {"a": 1}}]
    parts += [{"type": kind, "text": 5}, {kind: 5}, {"type": "tool_use", "tool_type": "tool"}]
    for part in parts:
        files: list[Any] = [
            {"contents": [{"role": role, "parts": [part, {"text": "Go."}]} for role in ("user", "model")]},
            {"messages": [{"role": role, "content": [part, {"text": "Go."}]} for role in ("user", "assistant")]},
            [{"role": role, "content": [{"toolUse": {}}, part, {"text": "Go."}]} for role in ("user", "assistant")],
        ]  # fmt: skip
        for file in files:
            assert_sound(read(json.dumps(file), name="x"))
