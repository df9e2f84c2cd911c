"""Logs of agents in their older and newer versions: what each keeps twice, beside its messages, or in another place."""

from __future__ import annotations

import json
from typing import Any

from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)

AT = "2026-01-01T00:00:00"


def completion(key: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": calls,
        "reasoning_content": "SECRET",
    }
    return {
        "id": key,
        "object": "chat.completion",
        "model": "m",
        "created": 1_767_225_600,
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 60},
            "cache_creation_input_tokens": 20,
        },
    }


def call(key: str, arguments: str = '{"command": "ls"}') -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def test_openhands_events_are_read_from_lines_a_list_a_page_and_one_by_one() -> None:
    events: list[dict[str, Any]] = [
        {
            "kind": "MessageEvent",
            "source": "user",
            "timestamp": AT,
            "llm_message": {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            "extended_content": [{"type": "text", "text": "A skill for going."}],
        },
        {
            "kind": "ActionEvent",
            "source": "agent",
            "timestamp": AT,
            "thought": [],
            "llm_response_id": "r",
            "tool_call_id": "c",
            "tool_call": {"id": "c", "name": "bash", "arguments": "{}"},
        },
        {
            "kind": "ObservationEvent",
            "source": "environment",
            "timestamp": AT,
            "tool_call_id": "c",
            "observation": {"content": [{"type": "text", "text": "a"}]},
            "extended_content": [],
        },
    ]
    lines = read_records(events)
    assert lines.format == "openhands_events"
    assert_sound(lines)
    session = only_session(lines)
    assert types(session) == ["user", "input", "assistant", "result"]
    assert (text_of(session.entries[1]), session.entries[1].extra) == ("A skill for going.", "")
    assert read_value(events).sessions == read_value({"items": events}).sessions == lines.sessions
    assert types(only_session(read_value(events[0]))) == ["user", "input"]


def test_older_openhands_events_give_one_answer_for_each_response() -> None:
    response = completion("r", [call("a"), call("b", '{"command": "pwd"}')])

    def told(kind: str, key: str, number: int, **more: Any) -> dict[str, Any]:
        about = {"function_name": "bash", "tool_call_id": key, "model_response": response}
        return {
            "id": number,
            "source": "agent",
            "timestamp": AT,
            **more,
            "tool_call_metadata": about,
        }

    transcript = read_value(
        [
            {
                "id": 0,
                "source": "agent",
                "timestamp": AT,
                "action": "system",
                "args": {
                    "content": "Be good.",
                    "tools": [{"type": "function", "function": {"name": "bash"}}],
                },
            },
            {
                "id": 1,
                "source": "user",
                "timestamp": AT,
                "action": "message",
                "args": {"content": "Go.", "image_urls": ["data:image/png;base64,aGk="]},
            },
            {
                "id": 2,
                "source": "environment",
                "timestamp": AT,
                "observation": "recall",
                "content": "Added knowledge",
                "extras": {"knowledge": "k"},
            },
            told("run", "a", 3, action="run", args={"command": "ls", "thought": "I look."}),
            told("run", "a", 4, observation="run", content="a.py"),
            told("run", "b", 5, action="run", args={"command": "pwd", "thought": ""}),
            told("run", "b", 6, observation="error", content="no"),
            {
                "id": 7,
                "source": "environment",
                "timestamp": AT,
                "observation": "agent_state_changed",
                "content": "",
                "extras": {},
            },
            {
                "id": 7,
                "source": "agent",
                "timestamp": AT,
                "action": "system",
                "args": {"content": "Be a helper."},
            },
            {
                "id": 8,
                "source": "agent",
                "timestamp": AT,
                "action": "condensation",
                "args": {"summary": "All so far."},
            },
            {
                "id": 9,
                "source": "agent",
                "timestamp": AT,
                "action": "browse",
                "args": {"url": "x", "thought": "I see."},
            },
            {
                "id": 10,
                "source": "agent",
                "timestamp": AT,
                "observation": "browse",
                "content": "a page",
                "cause": 9,
            },
            {
                "id": 11,
                "source": "agent",
                "timestamp": AT,
                "action": "message",
                "args": {"content": "Done."},
            },
        ]
    )
    assert transcript.format == "openhands_events"
    assert_sound(transcript)
    session = only_session(transcript)
    assert [r.raw for r in session.repairs if r.code == "other_instructions"] == ["Be a helper."]
    assert types(session) == [
        "user",
        "assistant",
        "result",
        "result",
        "summary",
        "assistant",
        "result",
        "assistant",
    ]
    usage = session.entries[1].usage
    assert usage is not None
    assert (usage.fresh, usage.cache_read, usage.cache_write) == (20, 60, 20)
    assert [entry.is_error for entry in session.entries[2:4]] == [False, True]
    assert session.instructions == "Be good." and not session.tools[0].synthesised
    assert not any(entry.synthetic for entry in session.entries)
    assert "SECRET" not in "".join(entry.body + entry.extra for entry in session.entries)


def test_a_mini_trajectory_keeps_no_second_copy_of_its_responses() -> None:
    asks = {"role": "assistant", "content": "I look.", "tool_calls": [call("a")]}
    extra = {"actions": [1], "response": completion("r", [call("a")]), "timestamp": 1_767_225_601.5}
    given = {
        "info": {"config": {"model": {"model_name": "x/m"}}},
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "Go."},
            {**asks, "extra": extra},
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": "a.py",
                "extra": {"raw_output": "a.py", "returncode": 0, "timestamp": 1_767_225_602},
            },
            {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    transcript = read_value(given)
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result"]
    step, result = session.entries[1:]
    assert step.usage is not None and step.usage.output == 10
    assert (step.model, step.at) == ("m", "2026-01-01T00:00:01.500000Z")
    assert json.loads(step.body) == asks
    assert json.loads(result.extra) == {"returncode": 0}
    assert "SECRET" not in "".join(entry.body + entry.extra for entry in session.entries)
    assert "exit_note" in codes(session)


def test_a_mini_trajectory_of_the_responses_api_is_one_conversation() -> None:
    output = [
        {"type": "reasoning", "summary": [], "encrypted_content": "SEALED"},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": "{}"},
    ]
    transcript = read_value(
        {
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": "Go."},
                {
                    "object": "response",
                    "model": "m",
                    "output": output,
                    "usage": {"input_tokens": 9, "output_tokens": 2},
                    "extra": {"cost": 1},
                },
                {"type": "function_call_output", "call_id": "a", "output": "a.py", "extra": {}},
                {"role": "user", "content": "Wrong format."},
                {"role": "exit", "content": ""},
            ],
            "trajectory_format": "mini-swe-agent-1.1",
        }
    )
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result", "input"]
    assert session.provider == "openai-responses"
    assert session.entries[1].usage is not None


def test_a_swe_agent_trajectory_names_its_model_in_its_replay() -> None:
    config = json.dumps({"agent": {"model": {"name": "the-model"}}})
    history = [{"role": "user", "content": "Go.", "agent": "main"}]
    session = only_session(
        read_value({"history": history, "trajectory": [], "info": {}, "replay_config": config})
    )
    assert session.model == "the-model"


def test_pi_sessions_have_names_and_extensions_that_speak() -> None:
    def message(key: str, parent: str, **told: Any) -> dict[str, Any]:
        return {
            "type": "message",
            "id": key,
            "parentId": parent,
            "timestamp": AT + "Z",
            "message": told,
        }

    transcript = read_records(
        [
            {"type": "session", "version": 3, "id": "S", "timestamp": AT + "Z", "cwd": "/x"},
            {"type": "session_info", "id": "i", "parentId": None, "name": "My name"},
            message("u", "i", role="user", content="Go."),
            message("k", "u", role="custom", customType="x", content="A note.", display=True),
            message("c", "k", role="compactionSummary", summary="All so far.", tokensBefore=5),
            message("a", "c", role="assistant", content=[{"type": "text", "text": "Done."}]),
        ]
    )
    assert transcript.format == "pi_session"
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", "input", "summary", "assistant"]
    assert session.title == "My name"


def test_tools_that_a_provider_ran_in_an_inspect_log_are_no_open_calls() -> None:
    served = {
        "type": "tool_use",
        "tool_type": "web_search",
        "id": "w",
        "name": "web_search",
        "result": "r",
    }
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [served, {"type": "text", "text": "Done."}]},
    ]
    transcript = read_value(
        {"version": 2, "status": "success", "eval": {}, "samples": [{"messages": messages}]}
    )
    assert_sound(transcript)
    assert types(only_session(transcript)) == ["user", "assistant"]


def test_newer_cline_histories_keep_models_figures_and_whose_words_are_whose() -> None:
    metrics = {"tokens": {"prompt": 10, "completion": 5, "cached": 3}}
    transcript = read_value(
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "<task>\nFix it.\n</task>"}],
                "ts": 1_767_225_600_000,
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {}}],
                "ts": 1_767_225_601_000,
                "modelInfo": {"modelId": "m"},
                "metrics": metrics,
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "a.py"},
                    {"type": "text", "text": "<feedback>\nNo.\n</feedback>"},
                    {"type": "text", "text": "<environment_details>\nx\n</environment_details>"},
                ],
                "ts": 1_767_225_602_000,
            },
        ]
    )
    assert transcript.format == "cline_history"
    assert_sound(transcript)
    session = only_session(transcript)
    assert session.title == "Fix it."
    assert [entry.trust.name for entry in session.entries[2:]] == [
        "EXTERNAL_UNTRUSTED",
        "USER",
        "EXTERNAL_UNTRUSTED",
    ]
    step = session.entries[1]
    assert step.usage is not None and (step.model, step.usage.fresh, step.usage.cache_read) == (
        "m",
        10,
        3,
    )


def test_an_extension_of_pi_loses_no_part_of_what_it_says() -> None:
    parts = [
        {"type": "text", "text": "A note."},
        {"type": "tool_result", "tool_use_id": "none", "content": "MARK"},
        5,
    ]
    transcript = read_records(
        [
            {"type": "session", "version": 3, "id": "S", "timestamp": AT + "Z", "cwd": "/x"},
            {"type": "message", "message": {"role": "user", "content": "Go."}},
            {"type": "message", "message": {"role": "custom", "content": parts}},
            {"type": "message", "message": {"role": "custom", "content": parts[1:]}},
        ]
    )
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", "input"]
    assert [codes(session).count(c) for c in ("orphan_result", "unreadable_part")] == [2, 2]
    assert sum("MARK" in repair.raw for repair in session.repairs) == 2


def older(number: int, source: str, **told: Any) -> dict[str, Any]:
    return {"id": number, "source": source, "timestamp": AT, **told}


def test_what_others_than_the_agent_do_is_no_call_of_the_model() -> None:
    transcript = read_value(
        [
            older(1, "user", action="message", args={"content": "Go."}),
            older(2, "user", action="run", args={"command": "ls"}),
            older(3, "environment", observation="run", content="a.py", cause=2),
            older(4, "environment", action="edit", args={"path": "a.py"}),
            older(5, "agent", action="run", args={"command": "pwd"}),
            older(6, "environment", observation="run", content="/x", cause=5),
        ]
    )
    assert transcript.format == "openhands_events"
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", *["input"] * 3, "assistant", "result"]
    assert [entry.trust.name for entry in session.entries[1:4]] == ["EXTERNAL_UNTRUSTED"] * 3
    assert [text_of(entry) for entry in session.entries[1:4]] == [
        "$ ls",
        "a.py",
        'edit {"path": "a.py"}',
    ]


def test_messages_and_results_of_openhands_keep_what_they_hold_in_other_forms() -> None:
    odd = {"type": "tool_result", "tool_use_id": "none", "content": "MARK"}
    said = [{"type": "text", "text": "Go."}, odd]
    event = {"kind": "MessageEvent", "source": "user", "timestamp": AT}
    transcript = read_records(
        [
            {**event, "llm_message": {"role": "user", "content": said}, "extended_content": [odd]},
            {**event, "source": "agent", "llm_message": {"role": "assistant", "content": [odd]}},
        ]
    )
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user"]
    assert [repair.raw.count("MARK") for repair in session.repairs] == [1] * 3
