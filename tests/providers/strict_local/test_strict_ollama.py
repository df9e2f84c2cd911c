"""Ollama's chat: silent truncation, the refusal without it, horizons, tools, lines of JSON."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from ctxengine.providers.failures import read_failure
from ctxengine.providers.strict_local.server import StrictServer
from tests.providers.strict_local.bodies import function

MODEL = "strict/horizon-1k"


@pytest.fixture
def chat(server: StrictServer, plain_http: httpx2.Client) -> Any:
    def post(*messages: Any, **change: Any) -> httpx2.Response:
        body = {"model": MODEL, "messages": list(messages), "stream": False} | change
        return plain_http.post(f"{server.url}/api/chat", json=body)

    return post


def said(role: str, content: str, **extra: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | extra


def test_an_answer_has_counts_and_says_that_it_is_scripted(chat: Any) -> None:
    answer = chat(said("user", "Hello"))
    body = answer.json()
    assert body["message"]["content"] == "[scripted] I was told: Hello"
    assert (body["done"], body["done_reason"]) == (True, "stop")
    assert body["prompt_eval_count"] > 0 and body["eval_count"] > 0
    assert answer.headers["x-strict-provider"] == "scripted"


def test_a_stream_is_lines_of_json(chat: Any) -> None:
    answer = chat(said("user", "say: " + "word " * 20), stream=True)
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert "".join(line["message"]["content"] for line in lines) == ("word " * 20).strip()
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]


def test_too_long_without_truncation_is_refused(chat: Any) -> None:
    answer = chat(
        said("user", "word " * 800), truncate=False, shift=False, options={"num_ctx": 500}
    )
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "the prompt is longer than the context length currently available to the model"
    }
    assert read_failure(answer.status_code, answer.text).code == "over_length"


def test_too_long_is_otherwise_cut_in_silence(chat: Any) -> None:
    history = [said("system", "Be brief."), said("user", "word " * 800), said("user", "say: yes")]
    answer = chat(*history, options={"num_ctx": 500}).json()
    assert answer["message"]["content"] == "yes"
    assert answer["prompt_eval_count"] < 100


@pytest.mark.parametrize(("words", "text"), [(300, "nonce-7"), (1_500, "Earlier.")])
def test_instructions_are_followed_up_to_the_horizon(chat: Any, words: int, text: str) -> None:
    history = [said("user", "word " * words), said("assistant", "Earlier.")]
    answer = chat(*history, said("user", "reply with: nonce-7"), options={"num_ctx": 9_000})
    assert answer.json()["message"]["content"] == text


def test_tools_are_called_and_answered(chat: Any) -> None:
    asked = said("user", 'call look {"where": "attic"}')
    first = chat(asked, tools=[function()]).json()["message"]
    assert first["tool_calls"] == [{"function": {"name": "look", "arguments": {"where": "attic"}}}]
    second = chat(asked, first, said("tool", "fine", tool_name="look"), tools=[function()])
    assert second.json()["message"]["content"].startswith("[scripted] Done after 1 results")


@pytest.mark.parametrize(
    ("message", "wording"),
    [
        (said("summary", "Earlier."), "invalid role 'summary'"),
        (said("tool", "fine"), "needs tool_name"),
        (said("user", "See:", images=["no base64!"]), "illegal base64 data"),
        (
            said("assistant", "", tool_calls=[{"function": {"name": "a", "arguments": "{}"}}]),
            "cannot unmarshal string",
        ),
    ],
)
def test_invalid_messages_are_refused(chat: Any, message: Any, wording: str) -> None:
    answer = chat(message)
    assert answer.status_code == 400
    assert wording in answer.json()["error"]


def test_a_form_is_kept_to(chat: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert chat(said("user", "Go."), format=schema).json()["message"]["content"] == '{"n": 1}'


def test_thinking_is_a_field_of_its_own(chat: Any) -> None:
    assert chat(said("user", "Go."), think=True).json()["message"]["thinking"]


def test_models_tell_their_window(server: StrictServer, plain_http: httpx2.Client) -> None:
    names = [m["name"] for m in plain_http.get(f"{server.url}/api/tags").json()["models"]]
    assert "strict/horizon-4k" in names
    shown = plain_http.post(f"{server.url}/api/show", json={"model": "any"}).json()
    assert shown["model_info"]["strict.context_length"] == 4_096
