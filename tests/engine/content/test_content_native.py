"""Gemini, Bedrock and Ollama: bodies read in either spelling, thoughts taken out without touching another byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.content.decode import decode, strip_opaque
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.response import from_response
from ctxengine.engine.items import (
    ContentFormat,
    DecodedItem,
    FilePart,
    ForeignPart,
    ImagePart,
    ItemKind,
    TextPart,
)

GOOGLE, BEDROCK, OLLAMA = ContentFormat.GOOGLE, ContentFormat.BEDROCK, ContentFormat.OLLAMA


def items(format: ContentFormat, body: Any) -> tuple[DecodedItem, ...]:
    raw = body if isinstance(body, str) else json.dumps(body)
    return decode(format, raw, role="assistant").items


def google(*parts: Any) -> str:
    return json.dumps({"role": "model", "parts": list(parts)})


def test_gemini_parts_are_read_in_both_spellings() -> None:
    rest = google(
        {"text": "Look."},
        {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
        {"executableCode": {"code": "1+1"}},
        {"functionCall": {"id": "c1", "name": "look", "args": {"a": 1.0}}},
    )
    sdk = (
        rest.replace("inlineData", "inline_data")
        .replace("mimeType", "mime_type")
        .replace("functionCall", "function_call")
    )
    for body in (rest, sdk):
        message, call = items(GOOGLE, body)
        assert message.parts == (
            TextPart("Look."),
            ImagePart("image/png", "iVBO"),
            FilePart("application/pdf", "JVBE"),
            ForeignPart("executableCode", '{"executableCode": {"code": "1+1"}}', "google"),
        )
        assert (call.kind, call.call_id, call.name) == (ItemKind.TOOL_CALL, "c1", "look")
        assert call.arguments == '{"a": 1.0}'


@pytest.mark.parametrize("written", ["-_-_-w", "-_-_-w==", "+/+/+w=="])
def test_base64_that_is_safe_in_addresses_is_read_into_the_letters_that_every_api_takes(
    written: str,
) -> None:
    (message,) = items(GOOGLE, google({"inlineData": {"mimeType": "image/png", "data": written}}))
    assert message.parts == (ImagePart("image/png", "+/+/+w=="),)


def test_a_gemini_call_without_id_or_arguments_is_read() -> None:
    (call,) = items(GOOGLE, google({"functionCall": {"name": "look"}}))
    assert (call.call_id, call.arguments) == (None, "")


def test_gemini_signatures_stand_in_front_of_their_part() -> None:
    body = (
        '{"parts": [{"text":"Hm.","thought":true}, {"text":"Look."}, '
        '{"functionCall":{"name":"a"}, "thoughtSignature" : "c2ln"}, {"functionCall":{"name":"b"}},'
        ' {"text":"","thought_signature":"ZW5k"}], "role":"model"}'
    )
    stripped = strip_opaque(GOOGLE, body, role="assistant")
    assert stripped.body == (
        '{"parts": [{"text":"Look."}, {"functionCall":{"name":"a"}}, {"functionCall":{"name":"b"}}], "role":"model"}'
    )
    assert [(o.raw, o.before) for o in stripped.opaque] == [
        ('{"text":"Hm.","thought":true}', 0),
        ('{"thoughtSignature" : "c2ln"}', 1),
        ('{"text":"","thought_signature":"ZW5k"}', 3),
    ]
    assert {o.api for o in stripped.opaque} == {"google"}


def test_bedrock_blocks_are_read() -> None:
    said, call, result = items(
        BEDROCK,
        [
            {"text": "Look."},
            {"image": {"format": "png", "source": {"bytes": "iVBO"}}},
            {"document": {"format": "pdf", "name": "a", "source": {"bytes": "JVBE"}}},
            {"guardContent": {"text": {"text": "x"}}},
            {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"a": 1}}},
            {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"json": {"b": 2}}]}},
        ],
    )
    assert said.parts[:3] == (
        TextPart("Look."),
        ImagePart("image/png", "iVBO"),
        FilePart("application/pdf", "JVBE", name="a"),
    )
    assert isinstance(said.parts[3], ForeignPart) and said.parts[3].kind == "guardContent"
    assert (call.call_id, call.arguments) == ("t1", '{"a": 1}')
    assert (result.call_id, result.is_error, result.parts) == ("t1", True, (TextPart('{"b": 2}'),))


def test_an_ollama_message_keeps_its_thinking_out_of_the_body() -> None:
    body = '{"role":"assistant","content":"Look.","thinking":"Hm.",'
    body += '"tool_calls":[{"function":{"name":"a","arguments":{"x":1.0}}}]}'
    stripped = strip_opaque(OLLAMA, body, role="assistant")
    assert '"thinking"' not in stripped.body
    (opaque,) = stripped.opaque
    assert (opaque.raw, opaque.api) == ('{"thinking":"Hm."}', "ollama")
    said, call = items(OLLAMA, stripped.body)
    assert said.parts == (TextPart("Look."),)
    assert (call.name, call.arguments, call.call_id) == ("a", '{"x":1.0}', None)


signature = st.sampled_from(["thoughtSignature", "thought_signature"])
google_parts = st.one_of(
    st.fixed_dictionaries({"text": st.text(max_size=5)}),
    st.fixed_dictionaries({"text": st.text(max_size=5), "thought": st.booleans()}),
    st.fixed_dictionaries({"functionCall": st.fixed_dictionaries({"name": st.just("look")})}),
    st.fixed_dictionaries({"codeExecutionResult": st.fixed_dictionaries({"output": st.text()})}),
)
bedrock_blocks = st.one_of(
    st.fixed_dictionaries({"text": st.text(max_size=5)}),
    st.fixed_dictionaries({"reasoningContent": st.just({"redactedContent": "eA=="})}),
    st.fixed_dictionaries({"toolUse": st.just({"toolUseId": "t", "name": "look", "input": {}})}),
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[ContentFormat, str]:
    indent = draw(st.sampled_from([None, 1]))
    if draw(st.booleans()):
        return BEDROCK, json.dumps(draw(st.lists(bedrock_blocks, max_size=6)), indent=indent)
    parts = draw(st.lists(google_parts, max_size=6))
    signed = [{draw(signature): "c2ln"} | part if draw(st.booleans()) else part for part in parts]
    return GOOGLE, json.dumps({"role": "model", "parts": signed}, indent=indent)


@given(bodies())
def test_a_body_without_its_thoughts_gives_the_same_items(body: tuple[ContentFormat, str]) -> None:
    format, raw = body
    stripped = strip_opaque(format, raw, role="assistant")
    assert items(format, stripped.body) == items(format, raw)
    again = strip_opaque(format, stripped.body, role="assistant")
    assert (again.body, again.opaque) == (stripped.body, ())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"candidates": []}, "candidates"),
        ({"candidates": [{"content": {"parts": []}}]}, "chunks of a stream"),
        ({"output": {}, "stopReason": "end_turn"}, r"output\.message\.content"),
        ({"message": {"content": "x"}, "done": False}, "chunks of a stream"),
    ],
)
def test_what_is_no_finished_answer_is_refused(body: Any, says: str) -> None:
    with pytest.raises(ContentError, match=says):
        from_response(json.dumps(body))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "MALFORMED_FUNCTION_CALL"),
        ({"candidates": [{"content": {"role": "model"}, "finishReason": "SAFETY"}]}, "SAFETY"),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
        ({"candidates": [], "prompt_feedback": {"block_reason": "OTHER"}}, "OTHER"),
    ],
)
def test_an_answer_that_was_stopped_before_it_said_anything_keeps_reason_and_usage(
    body: Any, reason: str
) -> None:
    found = from_response(json.dumps({**body, "usageMetadata": {"promptTokenCount": 5}}))
    assert (found.stop_reason, found.usage_raw) == (reason, '{"promptTokenCount": 5}')
    assert items(found.format, found.body) == ()


@pytest.mark.parametrize(
    ("format", "body", "says"),
    [
        (GOOGLE, "[]", "object"),
        (GOOGLE, '{"parts":{}}', "array"),
        (GOOGLE, '{"parts":["x"]}', "object"),
        (GOOGLE, '{"parts":[{"text":1}]}', "string"),
        (BEDROCK, "{}", "array"),
        (BEDROCK, '[{"toolUse":{"name":1}}]', "string"),
    ],
)
def test_malformed_bodies_are_refused_by_place(format: ContentFormat, body: str, says: str) -> None:
    with pytest.raises(ContentError, match=says):
        decode(format, body, role="assistant")
