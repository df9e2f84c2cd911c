"""What each format decodes to: items in order, content exactly as received."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxengine.engine.content.decode import ContentError, Role, decode, strip_opaque
from ctxengine.engine.items import (
    ContentFormat,
    DecodedItem,
    FilePart,
    ForeignPart,
    ImagePart,
    ItemKind,
    TextPart,
)

CHAT = ContentFormat.OPENAI_CHAT
RESPONSES = ContentFormat.OPENAI_RESPONSES
ANTHROPIC = ContentFormat.ANTHROPIC
BLOCKS = ContentFormat.BLOCKS


def items(format: ContentFormat, value: Any, role: Role = "user") -> tuple[DecodedItem, ...]:
    body = value if isinstance(value, str) else json.dumps(value)
    return decode(format, body, role=role).items


def kinds(found: tuple[DecodedItem, ...]) -> list[ItemKind]:
    return [item.kind for item in found]


def test_plain_text_is_one_item_of_the_role_and_keeps_every_character() -> None:
    (item,) = items(ContentFormat.TEXT, "a\x00b\ud83d ")
    assert item.kind is ItemKind.USER_MESSAGE
    assert item.parts == (TextPart("a\x00b\ud83d "),)
    (said,) = items(ContentFormat.TEXT, "", "assistant")
    assert said.kind is ItemKind.ASSISTANT_MESSAGE


def test_neighbouring_parts_share_an_item_and_calls_stand_alone() -> None:
    found = items(
        ANTHROPIC,
        '[{"type":"text","text":"a"},{"type":"text","text":"b"},'
        '{"type":"tool_use","id":"t1","name":"sh","input":{ "b":1.0,"a":12345678901234567890}},'
        '{"type":"text","text":"c"}]',
        "assistant",
    )
    assert kinds(found) == [
        ItemKind.ASSISTANT_MESSAGE,
        ItemKind.TOOL_CALL,
        ItemKind.ASSISTANT_MESSAGE,
    ]
    assert found[0].parts == (TextPart("a"), TextPart("b"))
    assert found[1].arguments == '{ "b":1.0,"a":12345678901234567890}'
    assert [item.ordinal for item in found] == [0, 1, 2]


def test_an_anthropic_string_is_one_text() -> None:
    assert items(ANTHROPIC, '"hi \\ud83d"')[0].parts == (TextPart("hi \ud83d"),)


def test_a_result_keeps_its_images_its_error_and_its_emptiness() -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    shown, empty = items(
        ANTHROPIC,
        [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "is_error": True,
                "content": [{"type": "text", "text": "see"}, {"type": "image", "source": image}],
            },
            {"type": "tool_result", "tool_use_id": "t2", "content": ""},
        ],
    )
    assert shown.kind is ItemKind.TOOL_RESULT
    assert (shown.call_id, shown.is_error) == ("t1", True)
    assert shown.parts == (TextPart("see"), ImagePart("image/png", "iVBO"))
    assert empty.parts == ()


@pytest.mark.parametrize(
    "kind", ["server_tool_use", "web_search_tool_result", "compaction", "something_new"]
)
def test_blocks_of_one_provider_stay_raw(kind: str) -> None:
    raw = f'{{"type":"{kind}",  "id":"srvtoolu_1","input":{{}}}}'
    (item,) = items(ANTHROPIC, f"[{raw}]", "assistant")
    assert item.parts == (ForeignPart(kind, raw, "anthropic"),)


def test_neutral_blocks_take_calls_with_text_or_object_arguments() -> None:
    found = items(
        BLOCKS,
        '[{"type":"tool_call","id":"a","name":"x","arguments":"{\\"k\\": 1"},'
        '{"type":"tool_call","id":"b","name":"x","arguments":{"k": 1}},'
        '{"type":"tool_result","call_id":"a","content":"out"},'
        '{"type":"image","media_type":"image/png","data":"iVBO","width":10,"height":20},'
        '{"type":"file","url":"https://example.org/a.pdf","name":"a.pdf"}]',
        "assistant",
    )
    assert [item.arguments for item in found[:2]] == ['{"k": 1', '{"k": 1}']
    assert found[2].call_id == "a"
    assert found[3].parts == (
        ImagePart("image/png", "iVBO", None, 10, 20),
        FilePart(None, None, "https://example.org/a.pdf", "a.pdf"),
    )


def test_broken_chat_arguments_stay_as_the_model_wrote_them() -> None:
    found = items(
        CHAT,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "b1", "type": "function", "function": {"name": "w", "arguments": '{"p":"n'}},
                {"id": "b2", "type": "function", "function": {"name": "now", "arguments": ""}},
                {"id": "b3", "type": "function", "function": {"name": "s", "arguments": "[1,2]"}},
            ],
        },
    )
    assert [item.arguments for item in found] == ['{"p":"n', "", "[1,2]"]
    assert [item.call_id for item in found] == ["b1", "b2", "b3"]


def test_empty_chat_text_beside_calls_is_no_message() -> None:
    call = {"id": "m1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    found = items(CHAT, {"role": "assistant", "content": "", "tool_calls": [call]})
    assert kinds(found) == [ItemKind.TOOL_CALL]


def test_chat_tool_messages_and_refusals() -> None:
    (result,) = items(CHAT, {"role": "tool", "tool_call_id": "m1", "content": ""})
    assert (result.kind, result.call_id, result.parts) == (ItemKind.TOOL_RESULT, "m1", ())
    (said,) = items(CHAT, {"role": "assistant", "content": None, "refusal": "No."})
    assert said.parts == (TextPart("No."),)


def test_the_legacy_function_call_has_no_id() -> None:
    (call,) = items(
        CHAT,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
    )
    assert (call.call_id, call.name) == (None, "f")


def test_chat_images_by_data_address_are_inline() -> None:
    (item,) = items(
        CHAT,
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
            ],
        },
    )
    image, audio = item.parts
    assert image == ImagePart("image/png", "iVBO")
    assert isinstance(audio, ForeignPart)
    assert audio.kind == "input_audio"


def test_every_responses_message_is_an_item_with_its_phase() -> None:
    found = items(
        RESPONSES,
        [
            {"role": "user", "content": "Deploy it."},
            {
                "type": "message",
                "role": "assistant",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "On it."}],
            },
            {"type": "function_call", "call_id": "c1", "name": "deploy", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "queued"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
            {"type": "web_search_call", "id": "ws_1"},
        ],
    )
    assert [item.phase for item in found[:2]] == [None, "commentary"]
    assert found[4].arguments == "*** Begin"
    assert found[5].call_id == "c2"
    (foreign,) = found[6].parts
    assert isinstance(foreign, ForeignPart)
    assert foreign.api == "openai-responses"


@pytest.mark.parametrize(
    ("format", "body", "says"),
    [
        (ANTHROPIC, "[", "not JSON"),
        (ANTHROPIC, '{"type":"text"}', "array of blocks"),
        (ANTHROPIC, "[1]", "content[0]"),
        (ANTHROPIC, '[{"text":"x"}]', "needs a `type`"),
        (ANTHROPIC, '[{"type":"text","text":7}]', "content[0].text"),
        (ANTHROPIC, '[{"type":"tool_use","id":"a"}]', "content[0].name"),
        (CHAT, "[]", "an object is required"),
        (CHAT, '{"role":"narrator","content":"x"}', "'narrator'"),
        (CHAT, '{"role":"user","content":7}', "message.content"),
        (CHAT, '{"role":"assistant","tool_calls":[{"id":"a"}]}', "tool_calls[0]"),
        (RESPONSES, '{"role":"user"}', "an array is required"),
        (RESPONSES, "[{}]", "neither"),
        (RESPONSES, '[{"role":"narrator","content":"x"}]', "'narrator'"),
        (BLOCKS, "[" * 5_000 + "]" * 5_000, "nested deeper"),
    ],
)
def test_malformed_bodies_are_refused_by_place(format: ContentFormat, body: str, says: str) -> None:
    with pytest.raises(ContentError) as refused:
        decode(format, body)
    assert says in str(refused.value)


@pytest.mark.corpus
def test_every_message_of_the_corpus_decodes_the_same_with_and_without_reasoning(
    corpus_folder: Path,
) -> None:
    seen = 0
    for folder in ("anthropic_messages", "openai_chat", "openai_responses"):
        for path in sorted((corpus_folder / folder).glob("*.exchanges.json")):
            for exchange in json.loads(path.read_text("utf-8"))["exchanges"]:
                for format, body, role in bodies(exchange):
                    stripped = strip_opaque(format, body, role=role)
                    assert decode(format, stripped.body, role=role) == decode(
                        format, body, role=role
                    )
                    seen += 1
    assert seen > 50


def bodies(exchange: dict[str, Any]) -> list[tuple[ContentFormat, str, Role]]:
    request = exchange["request"]
    if "input" in request:
        is_list = isinstance(request["input"], list)
        return [(RESPONSES, json.dumps(request["input"], indent=1), "user")] if is_list else []
    anthropic = "anthropic" in exchange["uri"]
    return [
        (
            ANTHROPIC if anthropic else CHAT,
            json.dumps(message["content"] if anthropic else message),
            "assistant" if message["role"] == "assistant" else "user",
        )
        for message in request.get("messages", [])
    ]
