"""What a file is: told from its content, or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import FORMATS, detect, read

CHAT = {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\ufeff\n", "is empty"),
        ("PK\x03\x04\0\0", "binary"),
        ("hello there", "is no transcript: it begins with 'h'"),
        ("null", "is no transcript"),
        ('"a text"', "is no transcript"),
        ('{"messages": [{"role": "user", "content": "He', "cut short"),
        ('{"name": "x", "version": 2}', "top-level keys 'name', 'version'"),
        ("[1, 2, 3]", "a list of"),
        ("[]", "an empty list"),
        ('{"a": 1}\n{"b": 2}\n', "JSON lines but no known transcript"),
        ('{"messages": []}', "no known transcript"),
        ('{"messages": [{"role": "user", "content": []}]}', "no message that can be read"),
        ("[" * 5_000 + "]" * 5_000, "nested deeper"),
    ],
)
def test_what_is_no_transcript_is_refused_by_name_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(NotATranscript) as refusal:
        read(text, name="some file.json")
    assert words in refusal.value.reason
    assert refusal.value.reason.startswith("some file.json")


def test_the_name_never_decides() -> None:
    assert read(json.dumps(CHAT), name="session.yaml").format == "openai_chat"


@pytest.mark.parametrize("prefix", ["", "\ufeff", "\n\n  "])
def test_a_byte_order_mark_and_blank_lines_do_not_matter(prefix: str) -> None:
    assert detect(prefix + json.dumps(CHAT)) == "openai_chat"
    assert len(read(prefix + json.dumps(CHAT), name="x").sessions) == 1
    lines = "".join(json.dumps(message) + "\n" for message in CHAT["messages"])
    assert len(read(prefix + lines, name="x").sessions[0].entries) == 2


def test_detection_works_on_bytes_and_on_the_beginning_of_a_file() -> None:
    tool_use = {"type": "tool_use", "id": "t", "name": "sh", "input": {}}
    body = {"messages": [{"role": "assistant", "content": [tool_use]}] * 40}
    text = json.dumps(body)
    assert detect(text.encode()) == "anthropic_messages"
    assert detect(text[: len(text) // 2]) == "anthropic_messages"
    assert detect(b"\x1f\x8b\x08\0binary") is None
    assert detect("") is None


def test_every_format_that_is_detected_can_be_read() -> None:
    assert detect(json.dumps(CHAT)) in FORMATS


def test_lines_are_taken_one_by_one_and_only_once() -> None:
    message = json.dumps({"role": "user", "content": "x" * 1_000}) + "\n"
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        for _ in range(200):
            taken += 1
            yield message

    (session,) = read(lines(), name="x").sessions
    assert len(session.entries) == taken == 200


def test_a_document_given_as_lines_is_read_whole() -> None:
    text = json.dumps(CHAT, indent=2)
    assert read(text.splitlines(keepends=True), name="x") == read(text, name="x")


def test_a_line_that_breaks_off_is_reported_and_the_rest_is_read() -> None:
    lines = "".join(json.dumps(message) + "\n" for message in CHAT["messages"])
    transcript = read(lines + '{"role": "user", "con', name="x")
    assert len(transcript.sessions[0].entries) == 2
    (broken,) = transcript.repairs
    assert (broken.code, broken.where, broken.items) == ("broken_line", "line 3", 1)
    assert transcript.items_in == 1


def test_only_a_line_feed_ends_a_line() -> None:
    separators = json.dumps({"role": "user", "content": "a\u2028b\u0085c"}, ensure_ascii=False)
    answer = json.dumps({"role": "assistant", "content": "ok"})
    (session,) = read(f"{separators}\r\n{answer}\r\n", name="x").sessions
    assert len(session.entries) == 2


ASKED, SAID = CHAT["messages"]


@pytest.mark.parametrize(
    "decorated",
    [
        {"parentUuid": None},
        {"sessionId": "s", "type": "user"},
        {"source": "web", "timestamp": "t", "kind": "question"},
        {"source": "web", "timestamp": "t", "action": "ask"},
        {"record_type": "train"},
        {"projectHash": "h"},
    ],
)
def test_a_message_that_somebody_decorated_stays_a_message(decorated: dict[str, Any]) -> None:
    messages = [{**ASKED, **decorated}, SAID]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    for text in (json.dumps(messages), lines):
        transcript = read(text, name="x")
        assert transcript.format == "openai_chat"
        assert len(transcript.sessions[0].entries) == 2


@pytest.mark.parametrize(
    "about", [{"record_type": "train"}, {"id": "1", "timestamp": "t", "instructions": "Be good."}]
)
def test_a_body_with_facts_about_it_stays_a_body(about: dict[str, Any]) -> None:
    body = {**about, **CHAT}
    for text in (json.dumps(body), f"{json.dumps(body)}\n" * 2, json.dumps([body])):
        assert read(text, name="x").format == "openai_chat"


def test_one_record_among_many_messages_does_not_decide() -> None:
    item = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
    state = {"source": "x", "timestamp": "t", "kind": "state"}
    assert detect(json.dumps([item, state, item, item])) == "openai_responses"
    assert detect(json.dumps([state, {**state, "kind": "other"}, item])) == "openhands_events"


@pytest.mark.parametrize(
    ("message", "format_name"),
    [
        (
            {"role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]},
            "openai_chat",
        ),
        ({"role": "user", "parts": [{"type": "text", "text": "Hi"}]}, None),
        ({"role": "user", "parts": [{"text": "Hi"}]}, "google_generate_content"),
        ({"role": "function", "parts": [{"functionResponse": {}}]}, "google_generate_content"),
        ({"role": "function", "content": "x"}, "openai_chat"),
    ],
)
def test_parts_are_googles_only_without_a_type_and_without_content(
    message: dict[str, Any], format_name: str | None
) -> None:
    assert detect(json.dumps([message])) == format_name
