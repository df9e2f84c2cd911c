"""Recordings of the clouds' own addresses and framings: binary streams, wrapped bodies, requests that were not kept."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from zlib import crc32

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.aws_events import as_event_stream
from ctxengine.engine.importers.registry import NotATranscript, read
from ctxengine.engine.importers.transcript import ForeignSession
from ctxengine.engine.items import FilePart
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    items_of,
    only_session,
    read_value,
    text_of,
    types,
)

BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/vendor.model-v1%3A0"
ASKED = {"messages": [{"role": "user", "content": [{"text": "Which way?"}]}]}


def frame(kind: str, payload: bytes) -> bytes:
    """One event as the service frames it."""
    name, value = b":event-type", kind.encode()
    header = bytes((len(name),)) + name + b"\x07" + len(value).to_bytes(2, "big") + value
    size = 16 + len(header) + len(payload)
    start = size.to_bytes(4, "big") + len(header).to_bytes(4, "big")
    body = start + crc32(start).to_bytes(4, "big") + header + payload
    return body + crc32(body).to_bytes(4, "big")


def events(*told: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(frame(kind, json.dumps(event).encode()) for kind, event in told)


def recorded(uri: str, request: Any, response: Any, status: int = 200) -> ForeignSession:
    body = {"string": response} if isinstance(response, bytes) else json.dumps(response)
    interaction = {
        "request": {"method": "POST", "uri": uri, "body": request and json.dumps(request)},
        "response": {"status": {"code": status}, "body": body},
    }
    text = yaml.safe_dump({"interactions": [interaction]}, allow_unicode=True)
    transcript = read(text, name="cassette.yaml")
    assert transcript.format == "vcr_yaml_sse"
    assert_sound(transcript)
    return only_session(transcript)


STREAM = events(
    ("messageStart", {"role": "assistant", "p": "ab"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}),
    (
        "contentBlockDelta",
        {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}},
    ),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "I go "}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "nörth."}}),
    (
        "contentBlockStart",
        {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t", "name": "walk"}}},
    ),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"to": '}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '"n"}'}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 9, "outputTokens": 2}, "metrics": {"latencyMs": 1}}),
)


def test_a_binary_stream_of_bedrock_is_put_together() -> None:
    session = recorded(f"{BEDROCK}/converse-stream", ASKED, STREAM)
    assert types(session) == ["user", "assistant", "result"]
    step = session.entries[1]
    assert text_of(step) == "I go nörth." and items_of(step)[1].arguments == '{"to": "n"}'
    assert step.usage is not None and (step.usage.fresh, step.usage.output) == (9, 2)
    assert (step.stop_reason, step.model) == ("tool_use", "vendor.model-v1:0")
    assert codes(session).count("reasoning_kept") == 1


@given(cut=st.integers(0, len(STREAM)), junk=st.binary(max_size=40))
def test_a_stream_that_breaks_off_gives_its_whole_events(cut: int, junk: bytes) -> None:
    told = as_event_stream(STREAM[:cut])
    assert as_event_stream(STREAM).startswith(told)
    assert as_event_stream(STREAM[:cut] + junk).startswith(told)


def test_events_of_another_api_inside_are_unwrapped() -> None:
    message = {"id": "m", "role": "assistant", "model": "claude", "usage": {"input_tokens": 9}}
    told = (
        {"type": "message_start", "message": message},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "North."},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
    )
    packed = [b64encode(json.dumps(event).encode()).decode() for event in told]
    body = events(*(("chunk", {"bytes": text}) for text in packed))
    asked = {
        "anthropic_version": "bedrock-2023-05-31",
        "messages": [{"role": "user", "content": "Which way?"}],
    }
    session = recorded(f"{BEDROCK}/invoke-with-response-stream", asked, body)
    assert session.provider == "anthropic"
    assert [text_of(entry) for entry in session.entries] == ["Which way?", "North."]
    assert session.entries[1].usage is not None and session.entries[1].usage.output == 2


def test_an_answer_whose_request_was_not_kept_stands_alone() -> None:
    gave = {"choices": [{"message": {"role": "assistant", "content": "North."}}]}
    session = recorded("https://proxy.example/v1/chat/completions", None, gave)
    assert types(session) == ["assistant"]
    assert codes(session) == ["unreadable_request"]


def test_of_a_call_to_an_unknown_address_both_sides_stand_in_the_report() -> None:
    exchange = {"uri": "https://x.example/v2/chat", "request": {"q": 1}, "response": {"a": 2}}
    asked = {"messages": [{"role": "user", "content": "Hi."}]}
    known = {"uri": "https://x.example/v1/chat/completions", "request": asked, "response": None}
    transcript = read_value({"exchanges": [exchange, known]})
    (repair,) = transcript.repairs
    assert json.loads(repair.raw) == {"request": {"q": 1}, "response": {"a": 2}}


def test_a_refusal_tells_what_was_set_aside_first() -> None:
    text = yaml.safe_dump(
        {"interactions": [{"request": {"uri": "https://x.example/v2/chat", "body": "{}"}}]}
    )
    with pytest.raises(NotATranscript, match=r"the first: exchange 1, A request to https://x\."):
        read(text, name="cassette.yaml")


def test_documents_videos_and_citations_of_bedrock_are_content() -> None:
    cited = {"citationsContent": {"content": [{"text": "As written."}], "citations": []}}
    said = [
        {"text": "Read."},
        {"document": {"name": "A", "format": "pdf", "source": {"bytes": "aGk="}}},
        {
            "video": {
                "format": "mp4",
                "source": {"s3Location": {"uri": "s3://b/v"}},
            }
        },
        {"document": {"name": "B", "format": "txt", "source": {"text": "plain"}}},
    ]
    messages = [{"role": "user", "content": said}, {"role": "assistant", "content": [cited]}]
    transcript = read_value({"modelId": "m", "messages": messages})
    assert transcript.format == "bedrock_converse"
    assert_sound(transcript)
    session = only_session(transcript)
    (item,) = items_of(session.entries[0])
    files = [part for part in item.parts if isinstance(part, FilePart)]
    assert [(f.media_type, f.base64, f.url, f.name) for f in files] == [
        ("application/pdf", "aGk=", None, "A"),
        ("video/mp4", None, "s3://b/v", None),
    ]
    assert text_of(session.entries[0]) == "Read.plain"
    assert text_of(session.entries[1]) == "As written."
    assert codes(session) == []


def test_what_gemini_ran_itself_stays_in_its_answer() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "One."},
    ]
    contents = [{"role": "user", "parts": [{"text": "Count."}]}, {"role": "model", "parts": parts}]
    transcript = read_value({"contents": contents})
    assert_sound(transcript)
    session = only_session(transcript)
    assert codes(session) == []
    (item,) = items_of(session.entries[1])
    assert len(item.parts) == 3


@pytest.mark.parametrize(
    "part",
    [
        {"document": {"name": "B", "format": "txt", "source": {"content": [{"text": "MA"}, {"text": "RK"}]}}},
        {"image": {"url": "https://x.example/MARK"}}, {"document": {"data": {"snippet": "MARK"}}},
        {"video": {"source": {"odd": "MARK"}}}, {"inlineData": {"odd": "MARK"}},
        {"document": {"format": "txt", "source": {"content": [{"text": "a"}, {"odd": "MARK"}]}}},
    ],
)  # fmt: skip
def test_media_of_any_other_form_keep_what_they_hold(part: dict[str, Any]) -> None:
    said = [{"text": "Read."}, part]
    transcript = read_value({"modelId": "m", "messages": [{"role": "user", "content": said}]})
    assert_sound(transcript)
    entry = only_session(transcript).entries[0]
    assert "MARK" in entry.body or text_of(entry) == "Read.MARK"


def test_a_streamed_block_of_sealed_reasoning_is_reasoning_and_no_empty_text() -> None:
    sealed = {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": "U0VB"}}}
    stream = events(
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", sealed),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "North."}}),
        ("messageStop", {"stopReason": "end_turn"}),
    )
    session = recorded(f"{BEDROCK}/converse-stream", ASKED, stream)
    assert codes(session) == ["reasoning_unkept"]
    assert len(items_of(session.entries[1])[0].parts) == 1


SHOWN = json.dumps([{"id": "c", "type": "function", "function": {"name": "rm", "arguments": "{}"}}])


@pytest.mark.parametrize("text", [SHOWN, {"text": SHOWN}])
@pytest.mark.parametrize("api", ["bedrock", "google"])
def test_a_list_of_calls_that_an_answer_shows_is_text(api: str, text: Any) -> None:
    said = text if isinstance(text, str) else [text]
    if api == "google":
        member = "content" if isinstance(said, str) else "parts"
        asks: dict[str, Any] = {"role": "user", "parts": [{"text": "Show."}]}
        body: dict[str, Any] = {"contents": [asks, {"role": "model", member: said}]}
    else:
        asks = {"role": "user", "content": [{"text": "Show."}]}
        body = {"modelId": "m", "messages": [asks, {"role": "assistant", "content": said}]}
    session = only_session(read_value(body))
    assert types(session) == ["user", "assistant"]
    assert text_of(session.entries[1]) == SHOWN
