"""What a provider says reaches us as a stranger's text: none of it, anywhere in a report, may be more than we can keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ctxengine.ledger.models import RequestRow
from ctxengine.service.usage import read_usage, usage_json
from tests.api.door import Door, key_for, new_tenant

pytestmark = pytest.mark.django_db

WORDS = ("a\\u0000b", "\\ud800", "\\udc00x\\ud83d")
"""JSON escapes of what columns and jsonb cannot hold."""
BOTH = ('"a\\u0000b\\ud800"',)
FIGURES = ("9" * 20, "9" * 400, "9" * 5_000, "-1", "1e400")

ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [
        {"type": "thinking", "thinking": "so", "signature": "sig"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bergen"}},
        {"type": "server_thing", "name": "other", "data": "d"},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": "s",
    "diagnostics": {"cache_miss_reason": {"type": "changed", "cache_missed_input_tokens": 5}},
    "input_transformations": [{"type": "reasoning", "action": "removed"}],
    "usage": {
        "input_tokens": 10,
        "output_tokens": 3,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
        "iterations": [
            {"type": "compaction", "input_tokens": 80, "output_tokens": 5},
            {"type": "message", "input_tokens": 10, "output_tokens": 3},
        ],
    },
}
CHAT = {
    "id": "chatcmpl-1",
    "model": "gpt-5.2",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "hi",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": "{}"},
                    }
                ],
            },
        }
    ],
    "prompt_cache_diagnostics": {"reason": "moved", "type": "miss", "cache_missed_tokens": 7},
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    },
}
RESPONSES = {
    "id": "resp_1",
    "model": "gpt-5.2",
    "status": "completed",
    "incomplete_details": {"reason": "r"},
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hi"}],
        },
        {
            "type": "function_call",
            "id": "f",
            "call_id": "c1",
            "name": "weather",
            "arguments": "{}",
        },
    ],
    "usage": {
        "input_tokens": 12,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}
REPORTS = {"anthropic": ANTHROPIC, "openai": CHAT, "openai-responses": RESPONSES}
MODELS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.2", "openai-responses": "gpt-5.2"}
MARK = "\x01here\x01"


def spoilt(value: Any, kind: type) -> Iterator[Any]:
    """The value once for each leaf of a kind, with a mark in that leaf's place."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from (value | {name: other} for other in spoilt(member, kind))
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from (
                [*value[:place], other, *value[place + 1 :]] for other in spoilt(member, kind)
            )
    elif isinstance(value, kind):
        yield MARK


def bodies(report: dict[str, Any], kind: type, texts: tuple[str, ...]) -> Iterator[str]:
    """The report as JSON text, once for each leaf of a kind and each text in its place."""
    for spoiled in spoilt(report, kind):
        whole = json.dumps(spoiled)
        yield from (whole.replace(json.dumps(MARK), text) for text in texts)


@pytest.fixture
def door() -> Door:
    return Door(key_for(new_tenant("hostile")))


@pytest.mark.parametrize("provider", REPORTS)
@pytest.mark.parametrize("kind", [str, int], ids=["words", "figures"])
def test_no_word_and_no_figure_of_a_response_is_more_than_we_can_keep(
    door: Door, provider: str, kind: type
) -> None:
    model = {"provider": provider, "name": MODELS[provider]}
    session = door.open(model=model)
    seen = 0
    for body in bodies(REPORTS[provider], kind, BOTH if kind is str else FIGURES):
        # A spoilt block of one answer would stand in the next request.
        session = door.open(model=model) if kind is str else session
        run = door.run(session)
        request = door.assemble(run)["request_id"]
        answer = door.post(f"runs/{run}/responses", raw=f'{{"response":{body}}}'.encode())
        assert answer.status in (200, 422), (body, answer.raw[:500])
        if answer.status == 200:
            assert door.replays(request)
            seen += 1
        door.post(f"runs/{run}/end", {"outcome": "completed"})
    assert seen > 5
    assert door.get("metrics").status == 200


def test_what_the_provider_s_own_iterations_read_and_wrote_is_kept_beside_the_prompt(
    door: Door,
) -> None:
    run = door.run(door.open())
    request = door.assemble(run)["request_id"]
    door.post(f"runs/{run}/responses", {"response": ANTHROPIC}).ok()
    row = RequestRow.objects.get(id=request)
    assert (row.usage["extra_input"], row.usage["extra_output"]) == (80, 5)
    usage = read_usage("anthropic", json.dumps(ANTHROPIC["usage"]), None)
    assert usage is not None
    kept = usage_json(usage)
    assert kept["prompt_total"] + kept["extra_input"] == usage.billed_input
    assert kept["output"] + kept["extra_output"] == usage.billed_output


@pytest.mark.parametrize("figure", ["0", "9" * 20, "9" * 400, "9" * 5_000], ids=len)
@pytest.mark.parametrize(
    "wording",
    [
        "prompt is too long: {} tokens > 150000 maximum",
        "prompt is too long: 210000 tokens > {} maximum",
    ],
)
def test_an_over_length_error_with_senseless_numbers_is_taken_as_one_without(
    door: Door, wording: str, figure: str
) -> None:
    run = door.run(door.open())
    door.assemble(run)
    error = {"status": 400, "body": {"error": {"message": wording.format(figure)}}}
    taken = door.post(f"runs/{run}/responses", {"error": error}).ok()
    assert taken["next"] == "reassemble"
    # What was learnt is no smaller than what a session needs, so that the tenant can go on.
    door.assemble(door.run(door.open()))


@pytest.mark.parametrize("word", WORDS)
def test_the_reason_that_a_provider_gives_for_a_miss_is_kept_as_it_can_be_shown(
    door: Door, word: str
) -> None:
    run = door.run(door.open())
    request = door.assemble(run)["request_id"]
    raw = json.dumps(ANTHROPIC).replace('"changed"', f'"{word}"')
    door.post(f"runs/{run}/responses", raw=f'{{"response":{raw}}}'.encode()).ok()
    kept = RequestRow.objects.get(id=request).verdict["provider_reason"]
    assert kept
    assert "\0" not in kept
    assert kept.encode() == kept.encode("utf-8", "strict")
