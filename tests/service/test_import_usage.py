"""Usage of every format in buckets that do not overlap, each figure counted once (corpus traps, design 7.17)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ctxengine.engine.importers.registry import FORMATS, read
from ctxengine.engine.importers.transcript import EntryType
from ctxengine.ledger.models import RequestRow
from ctxengine.service.import_transcript import import_file
from tests.cast import new_actor


class Buckets(NamedTuple):
    fresh: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None


ASK = {"role": "user", "content": "Hi"}
TEXT = [{"type": "text", "text": "Hello."}]
ANTHROPIC_USAGE = {
    "input_tokens": 3,
    "cache_read_input_tokens": 40,
    "cache_creation_input_tokens": 7,
    "output_tokens": 5,
}


def doc(value: Any) -> str:
    return json.dumps(value)


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def message(usage: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": TEXT,
        "stop_reason": "end_turn",
        "usage": usage,
    }


def messages_pair(usage: Any) -> str:
    request = {"model": "claude-sonnet-4-6", "system": "S", "messages": [ASK]}
    return doc([{"request": request, "response": message(usage)}])


def claude_line(uuid: str, parent: str | None, kind: str, said: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": said}


def claude_code() -> str:
    """One answer over two lines, both with the usage of the whole."""
    first = {**message(ANTHROPIC_USAGE | {"output_tokens": 1}), "id": "msg_1"}
    tool = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    second = {**message(ANTHROPIC_USAGE), "id": "msg_1", "content": [tool]}
    return lines(
        claude_line("a", None, "user", ASK),
        claude_line("b", "a", "assistant", first),
        claude_line("c", "b", "assistant", second),
    )


def codex() -> str:
    """Counts come twice, and beside the call's own figures stand the session's sums."""

    def record(kind: str, payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload}

    def said(role: str, kind: str, text: str) -> dict[str, Any]:
        content = [{"type": kind, "text": text}]
        return record("response_item", {"type": "message", "role": role, "content": content})

    usage = {"input_tokens": 50, "cached_input_tokens": 40, "output_tokens": 5}
    info = {"last_token_usage": usage, "total_token_usage": {"input_tokens": 999_999}}
    count = record("event_msg", {"type": "token_count", "info": info})
    return lines(
        record("session_meta", {"id": "s", "instructions": "Work."}),
        said("user", "input_text", "Hi"),
        said("assistant", "output_text", "Hello."),
        count,
    )


def exchange(uri: str, request: Any, response: Any) -> str:
    return doc({"exchanges": [{"uri": uri, "request": request, "response": response}]})


def google() -> str:
    return exchange(
        "https://g/v1/models/gemini-3:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}],
            "usageMetadata": {
                "promptTokenCount": 50,
                "cachedContentTokenCount": 40,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 2,
                "totalTokenCount": 55,
            },
        },
    )


def bedrock() -> str:
    return exchange(
        "https://b/model/claude/converse",
        {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}},
            "stopReason": "end_turn",
            "usage": {
                "inputTokens": 3,
                "inputTokenCount": 3,
                "cacheReadInputTokens": 40,
                "cacheReadInputTokenCount": 40,
                "cacheWriteInputTokens": 7,
                "outputTokens": 5,
                "totalTokens": 55,
            },
        },
    )


def chat_answer(usage: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Yo."},
    }
    return {"id": "c", "model": "gpt-5.5", "choices": [choice], "usage": usage}


CHAT_USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def chat() -> str:
    return doc([{"request": {"messages": [ASK]}, "response": chat_answer(CHAT_USAGE)}])


def openhands_log() -> str:
    body = {"messages": [ASK], "response": chat_answer(CHAT_USAGE), "kwargs": {}, "latency_sec": 1}
    return doc(body)


def responses() -> str:
    output = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello."}],
    }
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    answer = {"object": "response", "id": "r", "output": [output], "usage": usage}
    return exchange("https://o/v1/responses", {"model": "m", "input": "Hi"}, answer)


def gemini_cli() -> str:
    tokens = {"input": 50, "cached": 40, "output": 3, "thoughts": 2, "tool": 0, "total": 55}
    return doc(
        {
            "sessionId": "s",
            "projectHash": "h",
            "startTime": "2026-01-02T03:04:05Z",
            "messages": [
                {"type": "user", "content": "Hi"},
                {"type": "gemini", "content": "Hello.", "model": "gemini-3", "tokens": tokens},
            ],
        }
    )


def pi() -> str:
    usage = {"input": 3, "cacheRead": 40, "cacheWrite": 7, "output": 5, "totalTokens": 55}
    said = {"role": "assistant", "content": TEXT, "usage": usage, "stopReason": "stop"}
    return lines(
        {"type": "session", "id": "s", "cwd": "/x"},
        {"type": "message", "message": ASK},
        {"type": "message", "message": said},
    )


def inspect(usage: dict[str, int]) -> str:
    answer = {"id": "m2", "role": "assistant", "content": "Hello."}
    output = {"model": "m", "choices": [{"message": answer, "stop_reason": "stop"}], "usage": usage}
    sample = {
        "id": 1,
        "messages": [{"id": "m1", **ASK}, answer],
        "events": [{"event": "model", "output": output}],
    }
    return doc({"version": 2, "status": "success", "eval": {}, "samples": [sample]})


def langfuse(usage: dict[str, int]) -> str:
    generation = {
        "id": "g",
        "type": "GENERATION",
        "startTime": "2026-01-02T03:04:05Z",
        "model": "m",
        "input": [ASK],
        "output": {"role": "assistant", "content": "Hello."},
        "usageDetails": usage,
    }
    return doc({"trace": {"name": "t"}, "observations": [generation]})


def otel() -> str:
    parts = [{"type": "text", "content": "Hi"}]
    given = [{"role": "user", "parts": parts}]
    said = [{"role": "assistant", "parts": parts}]
    return doc(
        [
            {
                "name": "chat m",
                "attributes": {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": doc(given),
                    "gen_ai.output.messages": doc(said),
                    "gen_ai.usage.input_tokens": 50,
                    "gen_ai.usage.cache_read.input_tokens": 40,
                    "gen_ai.usage.cache_write.input_tokens": 7,
                    "gen_ai.usage.output_tokens": 5,
                },
            }
        ]
    )


def cassette() -> str:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    start = {**message({**ANTHROPIC_USAGE, "output_tokens": 1}), "content": []}
    stream = (
        event("message_start", message=start)
        + event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        + event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hello."})
        + event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5})
    )
    request = doc({"model": "claude-sonnet-4-6", "messages": [ASK]})
    return (
        "interactions:\n- request:\n    method: POST\n    uri: https://a/v1/messages\n"
        f"    body: {json.dumps(request)}\n"
        f"  response:\n    status: {{code: 200}}\n    body: {{string: {json.dumps(stream)}}}\nversion: 1\n"
    )


ALL = Buckets(3, 40, 7, 5)
READ_ONLY = Buckets(10, 40, None, 5)
CASES: dict[str, tuple[str, Callable[[], str], Buckets]] = {
    "openai_chat": ("openai_chat", chat, ALL),
    "anthropic_messages": ("anthropic_messages", lambda: messages_pair(ANTHROPIC_USAGE), ALL),
    "openai_responses": ("openai_responses", responses, READ_ONLY),
    "claude_code": ("claude_code", claude_code, ALL),
    "codex_rollout": ("codex_rollout", codex, READ_ONLY),
    "gemini_cli": ("gemini_cli", gemini_cli, READ_ONLY),
    "google_generate_content": ("google_generate_content", google, READ_ONLY),
    "bedrock_converse": ("bedrock_converse", bedrock, ALL),
    "openhands_llm_log": ("openhands_llm_log", openhands_log, ALL),
    "pi_session": ("pi_session", pi, ALL),
    "otel_genai": ("otel_genai", otel, ALL),
    "vcr_yaml_sse": ("vcr_yaml_sse", cassette, ALL),
    "inspect: cached tokens beside the input": (
        "inspect_ai_log",
        lambda: inspect(
            {
                "input_tokens": 3,
                "input_tokens_cache_read": 40,
                "input_tokens_cache_write": 7,
                "output_tokens": 5,
                "total_tokens": 55,
            }
        ),
        ALL,
    ),
    "inspect: cached tokens inside the input": (
        "inspect_ai_log",
        lambda: inspect(
            {
                "input_tokens": 50,
                "input_tokens_cache_read": 40,
                "output_tokens": 5,
                "total_tokens": 55,
            }
        ),
        READ_ONLY,
    ),
    "langfuse: cached tokens beside the input": (
        "langfuse_otel_trace",
        lambda: langfuse(
            {
                "input": 3,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 7,
                "output": 5,
                "total": 55,
            }
        ),
        ALL,
    ),
    "langfuse: cached tokens inside the input": (
        "langfuse_otel_trace",
        lambda: langfuse({"input": 50, "input_cached_tokens": 40, "output": 5, "total": 55}),
        READ_ONLY,
    ),
    "iterations: a compaction that the top level leaves out": (
        "anthropic_messages",
        lambda: messages_pair(
            {
                "input_tokens": 20,
                "output_tokens": 9,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0,
                "iterations": [
                    {
                        "type": "compaction",
                        "input_tokens": 100,
                        "output_tokens": 30,
                        "cache_creation_input_tokens": 55_000,
                        "cache_read_input_tokens": 0,
                    },
                    {
                        "type": "message",
                        "input_tokens": 20,
                        "output_tokens": 9,
                        "cache_creation_input_tokens": 0,
                        "cache_read_input_tokens": 500,
                    },
                ],
            }
        ),
        Buckets(120, 500, 55_000, 39),
    ),
    "iterations: a top level that is their sum already": (
        "anthropic_messages",
        lambda: messages_pair(
            {
                "input_tokens": 300,
                "output_tokens": 12,
                "iterations": [
                    {"type": "message", "input_tokens": 100, "output_tokens": 5},
                    {"type": "message", "input_tokens": 200, "output_tokens": 7},
                ],
            }
        ),
        Buckets(300, None, None, 12),
    ),
    "figures that are no counts": (
        "anthropic_messages",
        lambda: messages_pair(
            {
                "input_tokens": True,
                "output_tokens": -4,
                "cache_read_input_tokens": "9",
                "cache_creation_input_tokens": 1.5,
            }
        ),
        Buckets(None, None, None, None),
    ),
}
NO_USAGE = {"mini_swe_agent", "swe_agent_traj", "openhands_events", "cline_history"}
"""Formats whose messages carry no usage."""


@pytest.mark.parametrize("case", CASES)
def test_the_buckets_of_an_answer_do_not_overlap(case: str) -> None:
    format, make, expected = CASES[case]
    transcript = read(make(), name=case)
    assert transcript.format == format
    answers = [
        entry
        for session in transcript.sessions
        for entry in session.entries
        if entry.type is EntryType.ASSISTANT
    ]
    (usage,) = [answer.usage for answer in answers]
    assert usage is not None
    assert (usage.fresh, usage.cache_read, usage.cache_write, usage.output) == expected


def test_every_format_that_reports_usage_is_looked_at() -> None:
    assert {format for format, _, _ in CASES.values()} | NO_USAGE == set(FORMATS)


@pytest.mark.django_db
def test_the_request_of_an_imported_answer_shows_the_originals_usage_and_what_it_adds_up_to() -> (
    None
):
    outcome = import_file(actor=new_actor(), name="x", data=messages_pair(ANTHROPIC_USAGE).encode())
    (row,) = RequestRow.objects.filter(session_id=outcome.session_ids[0])
    assert row.usage["of_original"] is True
    assert row.usage["prompt_total"] == 50
    assert (row.usage["fresh"], row.usage["cache_read"], row.usage["output"]) == (3, 40, 5)
