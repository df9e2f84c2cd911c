"""OpenAI Chat and Responses bodies in detail."""

from __future__ import annotations

import json
from typing import Any

from ctxengine.engine.wire.base import (
    Marker,
    WireApi,
    WireCall,
    WireFile,
    WireMessage,
    WireOpaque,
    WireRenderer,
    WireResult,
    WireText,
)
from ctxengine.engine.wire.openai_chat import OpenAIChatRenderer
from ctxengine.engine.wire.openai_responses import OpenAIResponsesRenderer
from ctxengine.engine.wire.rules import violations
from tests.engine.wire.conversations import PARAMS, PIXEL, PREFIX, REASONING

CHAT = OpenAIChatRenderer()
RESPONSES = OpenAIResponsesRenderer()
ASK = WireMessage("user", (WireText("Weather in Oslo and Rome?"),))
CALLS = WireMessage(
    "assistant",
    (WireCall("w1", "look", '{"city": "Oslo"}'), WireCall("w2", "look", '{"city":"Rome"}')),
)
RESULTS = WireMessage(
    "user",
    (
        WireResult("w1", "look", (WireText("3 C"),)),
        WireResult("w2", "look", (WireText("21 C"),), is_error=True),
    ),
)


def sent(renderer: WireRenderer, *messages: WireMessage, markers: tuple[Marker, ...] = ()) -> Any:
    parts = tuple(f for message in messages for f in renderer.fragments(message))
    return json.loads(renderer.body(PREFIX, parts, PARAMS, markers))


def test_chat_keys_stand_in_prefix_order() -> None:
    body = sent(CHAT, ASK)
    assert list(body) == ["model", "max_completion_tokens", "tools", "messages", "prompt_cache_key"]
    assert body["messages"] == [
        {"role": "system", "content": "You look after the house.\n\nPersona: calm."},
        {"role": "user", "content": "Weather in Oslo and Rome?"},
    ]


def test_chat_answers_each_call_with_a_tool_message_in_call_order() -> None:
    messages = sent(CHAT, ASK, CALLS, RESULTS)["messages"]
    assert messages[2]["content"] is None
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == '{"city": "Oslo"}'
    assert [m["tool_call_id"] for m in messages[3:]] == ["w1", "w2"]
    assert messages[4]["content"].startswith("[The call failed")


def test_a_chat_result_with_an_image_stands_whole_behind_the_tool_messages() -> None:
    opening, closing = WireText("<untrusted>"), WireText("</untrusted>")
    results = WireMessage(
        "user",
        (
            WireResult("w1", "look", (opening, PIXEL, closing)),
            WireResult("w2", "look", (WireText("21 C"),)),
        ),
    )
    messages = sent(CHAT, ASK, CALLS, results)["messages"]
    assert [m["role"] for m in messages[3:]] == ["tool", "tool", "user"]
    assert "untrusted" not in messages[3]["content"]
    assert [part["type"] for part in messages[5]["content"]] == ["text", "image_url", "text"]


def test_chat_reasoning_members_return_inside_their_message() -> None:
    member = WireOpaque('{"reasoning_content": "h\\u00e4"}', "reasoning_content")
    message = WireMessage("assistant", (member, *CALLS.parts))
    (fragment,) = CHAT.fragments(message)
    assert b'{"role":"assistant","reasoning_content": "h\\u00e4","content":null,' in fragment.data
    part = WireOpaque('{"type":"thinking","thinking":[]}', "reasoning")
    (fragment,) = CHAT.fragments(WireMessage("assistant", (part, WireText("x"))))
    assert json.loads(fragment.data)["content"][0] == {"type": "thinking", "thinking": []}


def test_chat_files_go_inline_and_linked_files_become_a_note() -> None:
    files = WireMessage(
        "user",
        (
            WireFile("application/pdf", base64="JVBE"),
            WireFile(None, url="https://example.org/b.pdf"),
        ),
    )
    content = sent(CHAT, files)["messages"][1]["content"]
    assert content[0]["file"]["file_data"] == "data:application/pdf;base64,JVBE"
    assert content[1]["text"].startswith("[A file stood here")


def test_chat_breakpoints_turn_off_the_automatic_one() -> None:
    markers = (Marker("after_tools"), Marker("after_system"), Marker("run", 1))
    body = sent(CHAT, ASK, CALLS, RESULTS, markers=markers)
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert body["messages"][0]["content"][0].items() >= mark.items()
    # Index 1 is the assistant message, which cannot be marked: the user's in front of it is.
    assert body["messages"][1]["content"][0].items() >= mark.items()
    assert "prompt_cache_options" not in sent(CHAT, ASK)


def test_responses_keys_and_the_developer_message() -> None:
    body = sent(RESPONSES, ASK)
    assert list(body) == [
        "model",
        "store",
        "include",
        "max_output_tokens",
        "tools",
        "input",
        "prompt_cache_key",
    ]
    developer, user = body["input"]
    assert [part["text"] for part in developer["content"]] == list(PREFIX.system)
    assert developer["role"] == "developer"
    assert user["content"] == [{"type": "input_text", "text": "Weather in Oslo and Rome?"}]


def test_responses_pairs_go_out_without_item_ids() -> None:
    items = sent(RESPONSES, ASK, CALLS, RESULTS)["input"][2:]
    assert [(i["type"], i["call_id"]) for i in items] == [
        ("function_call", "w1"),
        ("function_call", "w2"),
        ("function_call_output", "w1"),
        ("function_call_output", "w2"),
    ]
    assert not any("id" in item for item in items)


def test_responses_reasoning_stands_byte_for_byte_in_front_of_its_item() -> None:
    step = WireMessage("assistant", (REASONING, CALLS.parts[0]))
    data = b",".join(fragment.data for fragment in RESPONSES.fragments(step))
    assert data.startswith(REASONING.raw.encode() + b',{"type":"function_call","id":"fc_1"')
    said = WireMessage("assistant", (REASONING, WireText("Hi."), WireText("There.")), "commentary")
    _, first, second = RESPONSES.fragments(said)
    assert json.loads(first.data)["id"] == "fc_1"
    assert json.loads(second.data) == {
        "type": "message",
        "role": "assistant",
        "content": "There.",
        "phase": "commentary",
    }
    assert RESPONSES.fragments(WireMessage("assistant", (REASONING,))) == ()


def test_responses_reasoning_at_the_end_of_a_turn_is_refused_before_sending() -> None:
    step = WireMessage("assistant", (WireText("Done."), REASONING))
    parts = (*RESPONSES.fragments(ASK), *RESPONSES.fragments(step), *RESPONSES.fragments(ASK))
    body = RESPONSES.body(PREFIX, parts, PARAMS)
    found = violations(WireApi.OPENAI_RESPONSES, body)
    assert [v.rule for v in found] == ["openai-responses.reasoning.followed"]


def test_responses_outputs_hold_images() -> None:
    result = WireMessage(
        "user", (WireResult("w1", "look", (WireText("see"), PIXEL), is_error=True),)
    )
    (fragment,) = RESPONSES.fragments(result)
    failed, text, image = json.loads(fragment.data)["output"]
    assert failed["text"].startswith("[The call failed")
    assert text == {"type": "input_text", "text": "see"}
    assert image["image_url"].startswith("data:image/png;base64,")


def test_responses_breakpoints_stand_on_messages_and_outputs() -> None:
    markers = (Marker("after_system"), Marker("carried_history", 0), Marker("run", 4))
    body = sent(RESPONSES, ASK, CALLS, RESULTS, markers=markers)
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert body["input"][0]["content"][-1].items() >= mark.items()
    assert body["input"][1]["content"][-1].items() >= mark.items()
    assert body["input"][-1]["output"][-1].items() >= mark.items()
