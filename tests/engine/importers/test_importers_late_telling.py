"""Lists that say nothing about their API for long: what then comes is read as what it is, never as the user's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.registry import HEAD, detect, read
from ctxengine.engine.items import ItemKind
from tests.engine.importers.accounts import assert_sound, items_of, text_of
from tests.engine.importers.work import lines_run

Messages = list[dict[str, Any]]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def answer(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def plain(pairs: int) -> Messages:
    return [m for n in range(pairs) for m in (user(f"ask {n}"), answer(f"said {n}"))]


TELLING: dict[str, Messages] = {
    "anthropic_messages": [
        answer([{"type": "tool_use", "id": "t", "name": "look", "input": {}}]),
        user([{"type": "tool_result", "tool_use_id": "t", "content": "found"}]),
    ],
    "openai_responses": [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "t", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t", "output": "found"},
    ],
    "google_generate_content": [
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "found"}}}]},
    ],
    "bedrock_converse": [
        answer([{"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]),
        user([{"toolResult": {"toolUseId": "t", "content": [{"text": "found"}]}}]),
    ],
    "openai_chat": [
        answer(None, tool_calls=[{"id": "t", "function": {"name": "look", "arguments": "{}"}}]),
        {"role": "tool", "tool_call_id": "t", "content": "found"},
    ],
}  # fmt: skip
FRAMEWORKS: dict[str, Messages] = {
    "ai_sdk": [
        answer([{"type": "tool-call", "toolCallId": "t", "toolName": "look", "input": {}}]),
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "t", "toolName": "look",
                                      "output": {"type": "text", "value": "found"}}]},
    ],
    "ai_sdk_in_the_users_role": [
        answer([{"type": "tool-call", "toolCallId": "t", "toolName": "look", "args": {}}]),
        user([{"type": "tool-result", "toolCallId": "t", "toolName": "look", "result": "found"}]),
    ],
    "conventions": [
        answer([{"type": "tool_call", "id": "t", "name": "look", "arguments": {}}]),
        user([{"type": "tool_call_response", "id": "t", "response": "found"}]),
    ],
}  # fmt: skip
ALL = {**TELLING, **FRAMEWORKS}


def written(messages: Messages, form: str) -> str:
    if form == "lines":
        return "".join(json.dumps(message) + "\n" for message in messages)
    if form == "lines of bodies":
        bodies = [{"messages": messages}, {"messages": plain(1)}]
        return "".join(json.dumps(body) + "\n" for body in bodies)
    return json.dumps(messages if form == "list" else {"messages": messages})


def assert_call_and_result(text: str) -> None:
    """One call and its own result, nothing of which is anybody's words."""
    transcript = read(text, name="x")
    assert_sound(transcript)
    entries = [entry for session in transcript.sessions for entry in session.entries]
    items = [(entry, item) for entry in entries for item in items_of(entry)]
    (call,) = (item for _, item in items if item.kind is ItemKind.TOOL_CALL)
    (result,) = (entry for entry, item in items if item.kind is ItemKind.TOOL_RESULT)
    assert call.name == "look" and text_of(result) == "found"
    assert (result.type, result.trust.name, result.synthetic) == (
        "result", "EXTERNAL_UNTRUSTED", False,
    )  # fmt: skip
    assert not any("found" in entry.body for entry in entries if entry is not result)


@pytest.mark.parametrize("form", ["list", "body", "lines", "lines of bodies"])
@pytest.mark.parametrize("kind", sorted(ALL))
def test_results_behind_any_number_of_plain_messages_are_results(kind: str, form: str) -> None:
    for pairs in (0, 24, 26, 60):
        assert_call_and_result(written([*plain(pairs), *ALL[kind]], form))


@pytest.mark.parametrize("kind", sorted(TELLING))
def test_a_document_is_judged_by_all_its_messages(kind: str) -> None:
    for form in ("list", "body"):
        assert detect(written([*plain(60), *TELLING[kind]], form)) == kind


@pytest.mark.parametrize("kind", sorted(ALL))
def test_results_behind_one_long_line_are_results(kind: str) -> None:
    long = user("word " * (HEAD // 4))
    assert_call_and_result(written([long, *plain(1), *ALL[kind]], "lines"))
    assert_call_and_result(written([long, user("word " * 4 * HEAD), *ALL[kind]], "lines"))


@pytest.mark.parametrize("kind", sorted(ALL))
@pytest.mark.parametrize("around", ["openai_chat", "anthropic_messages", "openai_responses"])
def test_what_another_api_says_among_many_messages_is_never_the_users(
    kind: str, around: str
) -> None:
    many = [m for _ in range(9) for m in ({"role": "user", "content": "ask"}, *TELLING[around])]
    strange = json.loads(json.dumps(ALL[kind]).replace("found", "strange"))
    transcript = read(json.dumps([*many, *strange]), name="x")
    assert_sound(transcript)
    for entry in transcript.sessions[0].entries:
        assert "strange" not in entry.body or entry.trust.name == "EXTERNAL_UNTRUSTED"


def test_parallel_items_on_lines_of_their_own_are_one_answer() -> None:
    calls = [
        {"type": "function_call", "call_id": name, "name": "look", "arguments": "{}"}
        for name in ("a", "b")
    ]
    results = [{"type": "function_call_output", "call_id": n, "output": n} for n in ("a", "b")]
    session = read(written([*plain(60), *calls, *results], "lines"), name="x").sessions[0]
    assert [str(entry.type) for entry in session.entries[-3:]] == ["assistant", "result", "result"]


def test_judging_a_document_twice_as_long_is_twice_the_work() -> None:
    def work(pairs: int) -> int:
        text = written([*plain(pairs), *TELLING["anthropic_messages"]], "list")
        return lines_run(lambda: detect(text))

    small, large = work(100), work(400)
    assert large < 5 * small


@pytest.mark.parametrize("around", ["anthropic_messages", "openai_chat"])
def test_what_stands_beside_results_in_a_tools_message_is_the_tools(around: str) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "found"}
    gave = {"role": "tool", "content": [{"type": "text", "text": "Obey."}, result]}
    for messages in ([*TELLING[around], gave], [*TELLING[around] * 3, gave], [*plain(60), gave]):
        transcript = read(written([user("Go."), *messages], "list"), name="x")
        assert_sound(transcript)
        for entry in transcript.sessions[0].entries:
            assert "Obey." not in entry.body or entry.trust.name == "EXTERNAL_UNTRUSTED"
