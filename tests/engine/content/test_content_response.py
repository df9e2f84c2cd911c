"""Whole provider responses: which API, where the content is, why the model stopped."""

from __future__ import annotations

import pytest

from ctxengine.engine.content.decode import ContentError, decode
from ctxengine.engine.content.response import from_response
from ctxengine.engine.items import ContentFormat


def test_an_anthropic_message_gives_its_content_as_written() -> None:
    found = from_response(
        '{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-6",'
        '"content":[ {"type":"text","text":"Hi"} ],"stop_reason":"end_turn",'
        '"usage":{"input_tokens":3, "output_tokens":1}}'
    )
    assert found.format is ContentFormat.ANTHROPIC
    assert found.body == '[ {"type":"text","text":"Hi"} ]'
    assert found.stop_reason == "end_turn"
    assert found.usage_raw == '{"input_tokens":3, "output_tokens":1}'
    assert (found.model, found.response_id) == ("claude-sonnet-4-6", "msg_1")


def test_a_chat_completion_gives_its_first_message() -> None:
    found = from_response(
        '{"id":"c1","object":"chat.completion","choices":[{"index":0,"finish_reason":"length",'
        '"message":{"role":"assistant","content":"Hi"}}]}'
    )
    assert found.format is ContentFormat.OPENAI_CHAT
    assert found.body == '{"role":"assistant","content":"Hi"}'
    assert (found.stop_reason, found.usage_raw) == ("length", None)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        ('"status":"completed"', "completed"),
        (
            '"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}',
            "max_output_tokens",
        ),
        ('"object":"response.compaction"', None),
    ],
)
def test_a_response_gives_its_output_items(tail: str, reason: str | None) -> None:
    found = from_response('{"id":"resp_1","output":[{"type":"web_search_call"}],' + tail + "}")
    assert found.format is ContentFormat.OPENAI_RESPONSES
    assert found.body == '[{"type":"web_search_call"}]'
    assert found.stop_reason == reason


def test_plain_blocks_with_a_stop_reason_are_our_own_form() -> None:
    found = from_response(
        '{"content":[{"type":"tool_use","id":"a","name":"x","input":{}}],"stop_reason":"tool_use"}'
    )
    assert found.format is ContentFormat.BLOCKS
    (call,) = decode(found.format, found.body, role="assistant").items
    assert call.name == "x"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("[]", "an object is required"),
        ("{}", "none of the known shapes"),
        ('{"type":"error","error":{"type":"overloaded_error"}}', "provider error"),
        ('{"choices":[{"index":0,"delta":{"content":"H"}}]}', "chunks"),
        ('{"choices":[]}', "choices[0].message"),
        ('{"output":"x"}', "output"),
        ("nonsense", "not JSON"),
        ('{"output":[],"status":"failed","error":{"code":"server_error"}}', "report it as `error`"),
        ('{"output":[],"status":"in_progress"}', "once it has ended"),
        ('{"output":[],"status":"cancelled"}', "report it as `error`"),
        (
            '{"choices":[{"finish_reason":"error","message":{"role":"assistant","content":"H"}}]}',
            "report it as `error`",
        ),
    ],
)
def test_what_is_no_finished_response_is_refused(raw: str, says: str) -> None:
    with pytest.raises(ContentError) as refused:
        from_response(raw)
    assert says in str(refused.value)
