"""Logs of single tools, in small: what each calls a call, a result and a thought."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import EntryType
from ctxengine.engine.items import ImagePart
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


def test_gemini_calls_without_ids_are_matched_by_tool_and_place() -> None:
    calls = [{"functionCall": {"name": "topic", "args": {"n": n}}} for n in (1, 2)]
    results = [
        {"functionResponse": {"id": f"made-up-{n}", "name": "topic", "response": {"result": word}}}
        for n, word in ((1, "cars"), (2, "birds"))
    ]
    body = {
        "systemInstruction": {"parts": [{"text": "Be funny."}]},
        "tools": [{"functionDeclarations": [{"name": "topic", "description": "A topic."}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "Two jokes."}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}, *calls]},
            {"role": "user", "parts": results},
        ],
    }
    transcript = read_value(body)
    assert transcript.format == "google_generate_content"
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result", "result"]
    assert [text_of(entry) for entry in session.entries[2:]] == ["cars", "birds"]
    assert session.instructions == "Be funny." and not session.tools[0].synthesised
    assert codes(session) == ["reasoning_unkept"]
    assert_sound(transcript)


def test_a_streamed_gemini_answer_is_put_together() -> None:
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "Good "}]}}]},
        {
            "candidates": [{"content": {"parts": [{"text": "day"}]}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": 9,
                "cachedContentTokenCount": 4,
                "candidatesTokenCount": 2,
            },
            "modelVersion": "gemini-3-flash",
        },
    ]
    exchange = {
        "uri": "https://g.example/v1/models/gemini-3-flash:streamGenerateContent?alt=sse",
        "request": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        "response": "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks),
    }
    session = only_session(read_value({"exchanges": [exchange]}))
    answer = session.entries[1]
    assert text_of(answer) == "Good day" and answer.stop_reason == "STOP"
    assert answer.usage is not None
    assert (answer.usage.fresh, answer.usage.cache_read, answer.usage.output) == (5, 4, 2)


def test_bedrock_blocks_are_read_and_cache_points_are_no_content() -> None:
    use = {"toolUse": {"toolUseId": "t", "name": "look", "input": {"n": 1}}}
    signed = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "SIG"}}}
    answer = {"toolResult": {"toolUseId": "t", "content": [{"text": "21"}], "status": "error"}}
    body = {
        "messages": [
            {"role": "user", "content": [{"text": "Look."}, {"cachePoint": {"type": "default"}}]},
            {"role": "assistant", "content": [signed, use]},
            {"role": "user", "content": [answer]},
        ]
    }
    transcript = read_value(body)
    assert transcript.format == "bedrock_converse"
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result"]
    assert session.entries[2].is_error
    assert [opaque.kind for opaque in session.entries[1].opaque] == ["thinking"]
    assert sorted(codes(session)) == ["cache_point", "reasoning_kept", "synthesised_tool"]
    assert_sound(transcript)


def test_a_gemini_cli_record_holds_call_and_result() -> None:
    call = {
        "id": "c-1",
        "name": "run_shell",
        "args": {"command": "ls"},
        "status": "error",
        "result": [
            {"functionResponse": {"id": "c-1", "name": "run_shell", "response": {"output": "no"}}}
        ],
    }
    gemini = {
        "type": "gemini",
        "content": "",
        "toolCalls": [call, {"id": "c-2", "name": "run_shell", "args": {}}],
        "thoughts": [{"subject": "s", "description": "d"}],
        "tokens": {"input": 10, "cached": 4, "output": 2, "thoughts": 3},
        "model": "gemini-3-pro",
    }
    messages = [{"type": "user", "content": "List."}, gemini, {"type": "info", "content": "bye"}]
    head = {"sessionId": "s", "projectHash": "p", "startTime": "2026-11-01T00:00:00Z"}
    for transcript in (
        read_value({**head, "messages": messages}),
        read_records([head, *messages]),
    ):
        assert transcript.format == "gemini_cli"
        session = only_session(transcript)
        assert types(session) == ["user", "assistant", "result", "result"]
        assert session.entries[2].is_error and session.entries[3].synthetic
        usage = session.entries[1].usage
        assert usage is not None and (usage.fresh, usage.cache_read, usage.output) == (6, 4, 5)
        assert_sound(transcript)


def test_pi_sessions_as_lines_and_as_a_tree() -> None:
    call = {"type": "toolCall", "id": "t", "name": "bash", "arguments": {}, "partialJson": '{"com'}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "SIG"}

    def message(role: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "message",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "message": {"role": role, **more},
        }

    records: list[dict[str, Any]] = [
        {"type": "session", "id": "s", "cwd": "/x"},
        message("user", content="Go."),
        message(
            "assistant",
            content=[thought, call],
            usage={"input": 1, "cacheRead": 2, "cacheWrite": 3, "output": 4},
        ),
        message(
            "toolResult",
            toolCallId="t",
            toolName="bash",
            content=[{"type": "text", "text": "ok"}],
            isError=True,
        ),
        message("bashExecution", command="ls", output="a"),
        {"type": "compaction", "summary": "So far.", "firstKeptEntryIndex": 2},
        message("assistant", content=[]),
    ]
    transcript = read_records(records)
    assert transcript.format == "pi_session"
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result", "input", "summary"]
    assert session.entries[2].is_error
    assert items_of(session.entries[1])[0].arguments == '{"com'
    assert "broken_arguments" in codes(session)
    assert_sound(transcript)
    tree = [
        records[0],
        {**records[1], "id": "1", "parentId": None},
        {
            **message("assistant", content=[{"type": "text", "text": "old"}]),
            "id": "2",
            "parentId": "1",
        },
        {
            **message("assistant", content=[{"type": "text", "text": "new"}]),
            "id": "3",
            "parentId": "1",
        },
    ]
    main, fork = read_records(tree).sessions
    assert [text_of(e) for e in main.entries] == ["Go.", "new"]
    assert [text_of(e) for e in fork.entries] == ["old"] and fork.parent == ("s", 0)


def test_openhands_actions_of_one_answer_are_one_entry() -> None:
    def event(kind: str, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "source": "agent", "timestamp": "2026-11-01T10:00:00", **more}

    def action(call_id: str, thought: str) -> dict[str, Any]:
        return event(
            "ActionEvent",
            thought=[{"type": "text", "text": thought}],
            reasoning_content="secret",
            tool_name="terminal",
            tool_call_id=call_id,
            tool_call={"id": call_id, "name": "terminal", "arguments": '{"command":"ls"}'},
            llm_response_id="r-1",
        )

    observed = {"content": [{"type": "text", "text": "a b"}], "is_error": False}
    transcript = read_records(
        [
            event("SystemPromptEvent", system_prompt={"type": "text", "text": "Be careful."}),
            event(
                "MessageEvent",
                source="user",
                llm_message={"role": "user", "content": [{"type": "text", "text": "List."}]},
            ),
            action("c-1", "<think>secret</think>\n\nI list."),
            action("c-2", ""),
            event(
                "ObservationEvent", tool_name="terminal", tool_call_id="c-2", observation=observed
            ),
            event("AgentErrorEvent", tool_name="terminal", tool_call_id="c-1", error="no shell"),
            event("Condensation", summary="Listed."),
            event("Novelty"),
        ]
    )
    assert transcript.format == "openhands_events"
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result", "result", "summary"]
    assert session.instructions == "Be careful."
    assert text_of(session.entries[1]) == "I list."
    assert [entry.is_error for entry in session.entries[2:4]] == [True, False]
    assert "secret" not in "".join(entry.body + entry.extra for entry in session.entries)
    assert_sound(transcript)


def test_inspect_samples_are_sessions_and_texts_kept_apart_are_put_back() -> None:
    digest = "0123456789abcdef0123456789abcdef"
    messages = [
        {"role": "user", "content": [{"type": "image", "image": "data:image/png;base64,iVBO"}]},
        {
            "id": "m",
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "t", "function": "look", "arguments": {"n": 1.0}}],
        },
        {
            "role": "tool",
            "tool_call_id": "t",
            "function": "look",
            "content": f"attachment://{digest}",
            "error": {"type": "timeout"},
        },
    ]
    event = {
        "event": "model",
        "timestamp": "2026-11-01T10:00:00+00:00",
        "tools": [{"name": "look", "parameters": {"type": "object"}}],
        "output": {
            "model": "m-1",
            "choices": [{"message": {"id": "m"}, "stop_reason": "tool_calls"}],
            "usage": {
                "input_tokens": 10,
                "output_tokens": 2,
                "total_tokens": 12,
                "input_tokens_cache_read": 4,
            },
        },
    }
    sample = {
        "id": 1,
        "epoch": 2,
        "messages": messages,
        "events": [event],
        "attachments": {digest: 'a "page"'},
    }
    log = {"version": 2, "status": "success", "eval": {"model": "m"}, "samples": [sample, sample]}
    transcript = read_value(log)
    assert transcript.format == "inspect_ai_log" and len(transcript.sessions) == 2
    session = transcript.sessions[0]
    assert types(session) == ["user", "assistant", "result"]
    assert isinstance(items_of(session.entries[0])[0].parts[0], ImagePart)
    assert text_of(session.entries[2]) == 'a "page"' and session.entries[2].is_error
    assert items_of(session.entries[1])[0].arguments == '{"n": 1.0}'
    usage = session.entries[1].usage
    assert usage is not None and (usage.fresh, usage.cache_read) == (6, 4)
    assert [tool.synthesised for tool in session.tools] == [False]
    assert_sound(transcript)


def otlp(spans: list[dict[str, Any]]) -> dict[str, Any]:
    def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
        kinds = {str: "stringValue", int: "intValue"}
        return [
            {"key": k, "value": {kinds[type(v)]: v if isinstance(v, str) else str(v)}}
            for k, v in values.items()
        ]

    written = [{**span, "attributes": attributes(span["attributes"])} for span in spans]
    return {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}


def test_genai_spans_give_a_conversation_in_the_order_of_time() -> None:
    user = {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
    call = {"type": "tool_call", "id": "t", "name": "weather", "arguments": {"city": "Oslo"}}
    asked = {"role": "assistant", "parts": [call], "finish_reason": "tool_call"}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t", "response": "3 C"}]}
    said = {"role": "assistant", "parts": [{"type": "text", "content": "3 degrees."}]}

    def chat(start: int, given: list[Any], got: Any) -> dict[str, Any]:
        return {
            "spanId": str(start),
            "name": "chat",
            "startTimeUnixNano": str(start * 1_000_000_000),
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-5.5",
                "gen_ai.system_instructions": json.dumps(
                    [{"type": "text", "content": "Be brief."}]
                ),
                "gen_ai.input.messages": json.dumps(given),
                "gen_ai.output.messages": json.dumps([got]),
                "gen_ai.usage.input_tokens": 10,
                "gen_ai.usage.cache_read.input_tokens": 4,
                "gen_ai.usage.output_tokens": 2,
            },
        }

    tool = {
        "spanId": "x",
        "name": "execute_tool weather",
        "startTimeUnixNano": str(1_793_000_005 * 1_000_000_000),
        "attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"},
    }
    spans = [
        chat(1_793_000_010, [user, asked, told], said),
        tool,
        chat(1_793_000_000, [user], asked),
    ]
    transcript = read_value(otlp(spans))
    assert transcript.format == "otel_genai"
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result", "assistant"]
    assert session.instructions == "Be brief." and session.model == "gpt-5.5"
    assert session.entries[1].at == "2026-10-26T07:33:20Z"
    usage = session.entries[1].usage
    assert usage is not None and (usage.fresh, usage.cache_read, usage.output) == (6, 4, 2)
    assert_sound(transcript)
    flat = [
        {"name": "chat", "start_time": "2026-11-01T10:00:00Z", "attributes": span["attributes"]}
        for span in spans[:1]
    ]
    assert read_value(flat).format == read_records(flat).format == "otel_genai"


def test_cline_histories_tell_the_task_from_what_tools_say() -> None:
    messages = [
        {
            "role": "user",
            "ts": 1_793_000_000_000,
            "content": [{"type": "text", "text": "<task>\nFix it\n</task>"}],
        },
        {
            "role": "assistant",
            "ts": 1_793_000_001_000,
            "content": [{"type": "text", "text": "<read_file><path>a</path></read_file>"}],
        },
        {
            "role": "user",
            "ts": 1_793_000_002_000,
            "content": [{"type": "text", "text": "[read_file for 'a'] Result:\nx"}],
        },
        {
            "role": "assistant",
            "ts": 1_793_000_003_000,
            "content": [{"type": "text", "text": "Done."}],
        },
        {
            "role": "user",
            "ts": 1_793_000_004_000,
            "content": [{"type": "text", "text": "<feedback>\nMore\n</feedback>"}],
        },
    ]
    transcript = read_value(messages)
    assert transcript.format == "cline_history"
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "input", "assistant", "user"]
    assert session.started_at == "2026-10-26T07:33:20Z"
    assert_sound(transcript)


CASSETTE = """\
interactions:
- request:
    body: '{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
    method: POST
    uri: https://api.example/v1/chat/completions
  response:
    body:
      string: '{"choices": [{"message": {"role": "assistant", "content": "Yo"}}]}'
    status: {code: 200, message: OK}
  recorded_at: '2026-11-01T10:00:00Z'
version: 1
"""


def test_a_cassette_is_a_recording() -> None:
    transcript = read(CASSETTE, name="tape")
    assert transcript.format == "vcr_yaml_sse"
    session = only_session(transcript)
    assert [text_of(entry) for entry in session.entries] == ["Hi", "Yo"]
    assert session.entries[0].at == "2026-11-01T10:00:00Z"
    assert_sound(transcript)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("interactions: &a [*a]\n", "aliases"),
        ("interactions: {a: [}\n", "no YAML"),
        ("interactions: 5\n", "no list of interactions"),
        ("interactions: []\n", "no message"),
        ("interactions:\n- !!python/object/apply:os.system ['x']\n", "no YAML"),
    ],
)
def test_yaml_that_is_no_recording_is_refused(text: str, words: str) -> None:
    with pytest.raises(NotATranscript) as refusal:
        read(text, name="tape.yaml")
    assert words in refusal.value.reason and refusal.value.reason.startswith("tape.yaml")


def test_a_mini_trajectory_with_its_frame() -> None:
    messages = [
        {"role": "system", "content": "You act."},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "```mswea_bash_command\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
    ]
    framed = {"trajectory_format": "mini-swe-agent-1", "info": {}, "messages": messages}
    for value in (framed, messages):
        transcript = read_value(value)
        assert transcript.format == "mini_swe_agent"
        session = only_session(transcript)
        assert types(session) == ["user", "assistant", "input"]
        assert session.entries[2].type is EntryType.INPUT
