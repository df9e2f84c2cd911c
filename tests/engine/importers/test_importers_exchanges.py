"""Recorded exchanges: repeated history is imported once, whatever the API and however the answer came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.transcript import ForeignUsage
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    items_of,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)

CHAT = "https://api.example/v1/chat/completions"
MESSAGES = "https://api.example/v1/messages"
RESPONSES = "https://api.example/v1/responses"


def exchange(
    uri: str, request: Any, response: Any, status: int = 200, **more: Any
) -> dict[str, Any]:
    record = {"method": "POST", "uri": uri, "request": request, "response": response}
    return {**record, "status": status, **more}


def chat_answer(content: str | None, **message: Any) -> dict[str, Any]:
    return {
        "id": "c-1",
        "created": 1_793_000_000,
        "model": "gpt-5.5-2026-08-01",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": content, "refusal": None, **message},
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
            "completion_tokens": 7,
        },
    }


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def test_a_request_that_extends_the_conversation_adds_only_what_is_new() -> None:
    transcript = read_value(
        {
            "exchanges": [
                exchange(CHAT, {"model": "gpt-5.5", "messages": [user("One?")]}, chat_answer("1")),
                exchange(
                    CHAT,
                    {"model": "gpt-5.5", "messages": [user("One?"), assistant("1"), user("Two?")]},
                    chat_answer("2"),
                ),
            ]
        }
    )
    session = only_session(transcript)
    assert [text_of(entry) for entry in session.entries] == ["One?", "1", "Two?", "2"]
    usage = session.entries[1].usage
    assert usage is not None
    assert (usage.fresh, usage.cache_read, usage.cache_write, usage.output) == (10, 60, 30, 7)
    assert session.entries[1].at == "2026-10-26T07:33:20Z"
    assert [(r.code, r.items) for r in session.repairs] == [("repeated_history", 2)]
    assert_sound(transcript)


def test_the_same_question_again_and_an_unrelated_one_are_sessions_of_their_own() -> None:
    asked = {"messages": [user("One?")]}
    other = {"messages": [user("Weather?")]}
    transcript = read_value(
        {
            "exchanges": [
                exchange(CHAT, asked, chat_answer("1")),
                exchange(CHAT, asked, chat_answer("one")),
                exchange(CHAT, other, chat_answer("fair")),
            ]
        }
    )
    assert [len(session.entries) for session in transcript.sessions] == [2, 2, 2]


def test_conversations_that_take_turns_are_kept_apart() -> None:
    def say(*texts: str) -> dict[str, Any]:
        speakers = (user, assistant)
        return {"messages": [speakers[n % 2](text) for n, text in enumerate(texts)]}

    transcript = read_value(
        {
            "exchanges": [
                exchange(CHAT, say("a"), chat_answer("A")),
                exchange(CHAT, say("b"), chat_answer("B")),
                exchange(CHAT, say("a", "A", "aa"), chat_answer("AA")),
                exchange(CHAT, say("b", "B", "bb"), chat_answer("BB")),
            ]
        }
    )
    assert [[text_of(e) for e in s.entries] for s in transcript.sessions] == [
        ["a", "A", "aa", "AA"],
        ["b", "B", "bb", "BB"],
    ]


def test_a_pair_to_a_line_is_a_recording_too() -> None:
    first = {"messages": [user("One?")]}
    second = {"messages": [user("One?"), assistant("1"), user("Two?")]}
    transcript = read_records(
        [
            {"request": first, "response": chat_answer("1")},
            {"request": second, "response": chat_answer("2")},
        ]
    )
    assert types(only_session(transcript)) == ["user", "assistant", "user", "assistant"]


def test_responses_are_chained_by_their_ids() -> None:
    def answer(name: str, text: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text}
        item = {"type": "message", "id": f"m-{name}", "role": "assistant", "content": [part]}
        return {"id": name, "object": "response", "model": "gpt-5.5", "output": [item]}

    transcript = read_value(
        {
            "exchanges": [
                exchange(RESPONSES, {"model": "gpt-5.5", "input": "One?"}, answer("r1", "1")),
                exchange(
                    RESPONSES,
                    {"model": "gpt-5.5", "input": "Two?", "previous_response_id": "r1"},
                    answer("r2", "2"),
                ),
            ]
        }
    )
    assert [text_of(e) for e in only_session(transcript).entries] == ["One?", "1", "Two?", "2"]


def events(*records: dict[str, Any]) -> str:
    return (
        "".join(f"event: {r.get('type', 'x')}\ndata: {json.dumps(r)}\n\n" for r in records)
        + "data: [DONE]\n\n"
    )


def test_a_streamed_chat_answer_is_put_together() -> None:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "model": "gpt-5.5", "choices": [choice]}

    def piece(arguments: str, **more: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "function": {"arguments": arguments}, **more}]}

    opening = {
        "tool_calls": [{"index": 0, "id": "k", "function": {"name": "sum", "arguments": ""}}]
    }
    stream = events(
        chunk({"role": "assistant", "content": "Let "}),
        chunk({"content": "me."}),
        chunk(opening),
        chunk(piece('{"n": 1')),
        chunk(piece(".0}"), "tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
    )
    transcript = read_value({"exchanges": [exchange(CHAT, {"messages": [user("Add.")]}, stream)]})
    session = only_session(transcript)
    message, call = items_of(session.entries[1])
    assert text_of(session.entries[1]) == "Let me." and message.ordinal == 0
    assert (call.call_id, call.name, call.arguments) == ("k", "sum", '{"n": 1.0}')
    assert session.entries[1].stop_reason == "tool_calls"
    assert session.entries[1].usage is not None and session.entries[1].usage.fresh == 9
    assert_sound(transcript)


def test_a_stream_of_items_that_breaks_off_gives_those_that_were_done() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So"}]}  # fmt: skip
    stream = events(
        {"type": "response.created", "response": {"id": "r", "model": "gpt-5.5", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": said},
        {"type": "response.output_text.delta", "delta": "and"},
    )
    transcript = read_value({"exchanges": [exchange(RESPONSES, {"input": "Why?"}, stream)]})
    session = only_session(transcript)
    assert [text_of(entry) for entry in session.entries] == ["Why?", "So"]
    assert (session.entries[1].model, codes(session)) == ("gpt-5.5", [])
    assert_sound(transcript)


def test_a_streamed_call_of_the_first_kind_is_put_together() -> None:
    pieces = [{"name": "sum", "arguments": ""}, {"arguments": '{"n": '}, {"arguments": "1}"}]
    deltas = [{"choices": [{"index": 0, "delta": {"function_call": piece}}]} for piece in pieces]
    body = {"messages": [user("Add.")]}
    transcript = read_value({"exchanges": [exchange(CHAT, body, events({"choices": [], "id": "c"}, *deltas))]})  # fmt: skip
    (call,) = items_of(only_session(transcript).entries[1])
    assert (call.name, call.arguments) == ("sum", '{"n": 1}')
    assert_sound(transcript)


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (['{"city": "Os', 'lo", "n": 1.0}'], '{"city": "Oslo", "n": 1.0}'),
        (['{"city": "Os'], '{"city": "Os'),
    ],
)
def test_streamed_anthropic_input_is_kept_as_it_came(pieces: list[str], arguments: str) -> None:
    start = {
        "id": "m",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "usage": {"input_tokens": 5},
    }
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    stream = events(
        {"type": "message_start", "message": start},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "S"},
        },
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": "Well"},
        },
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t", "name": "weather", "input": {}},
        },
        *({"type": "content_block_delta", "index": 2, "delta": delta} for delta in deltas),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 3},
        },
    )
    transcript = read_value({"exchanges": [exchange(MESSAGES, {"messages": [user("?")]}, stream)]})
    session = only_session(transcript)
    answer = session.entries[1]
    assert items_of(answer)[1].arguments == arguments
    assert answer.usage is not None
    assert (answer.usage.fresh, answer.usage.output) == (5, 3)
    assert [opaque.kind for opaque in answer.opaque] == ["thinking"]
    assert_sound(transcript)


def test_a_request_in_a_string_and_a_failed_one_and_another_address() -> None:
    asked = json.dumps({"messages": [user("One?")]})
    transcript = read_value(
        {
            "exchanges": [
                exchange(CHAT, asked, json.dumps(chat_answer("1"))),
                exchange("https://api.example/v1/files", {"purpose": "x"}, {}),
                exchange(CHAT, {"messages": [user("Two?")]}, {"error": {"message": "no"}}, 429),
            ]
        }
    )
    first, second = transcript.sessions
    assert types(first) == ["user", "assistant"]
    assert types(second) == ["user"] and codes(second) == ["failed_exchange"]
    assert [repair.code for repair in transcript.repairs] == ["other_exchange"]
    assert_sound(transcript)


def test_a_recorders_time_is_the_time_of_what_was_said() -> None:
    body = {"messages": [user([{"type": "text", "text": "?"}])], "system": "Be kind."}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    record = exchange(MESSAGES, body, answer, recorded_at="2026-11-16T10:05:17Z")
    session = only_session(read_value({"exchanges": [record]}))
    assert session.instructions == "Be kind."
    assert [entry.at for entry in session.entries] == ["2026-11-16T10:05:17Z"] * 2
    assert session.entries[1].usage is None or isinstance(session.entries[1].usage, ForeignUsage)
