"""Development case dev-20: the size of a context read from usage, cache tiers neither left out nor counted twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.tokens.usage import normalise, output_of_message
from ctxengine.ledger.models import Calibration
from tests.cast import Runtime, answer
from tests.service.conftest import Case

OWN_20: dict[str, Any] = {
    "receipts": [
        {
            "name": "anthropic",
            "usage": {
                "input_tokens": 210,
                "cache_read_input_tokens": 70_000,
                "cache_creation_input_tokens": 790,
                "output_tokens": 9,
            },
        },
        {
            "name": "openai_chat",
            "usage": {
                "prompt_tokens": 31_000,
                "prompt_tokens_details": {"cached_tokens": 30_976},
                "completion_tokens": 8,
            },
        },
        {
            "name": "full_hit",
            "usage": {"input_tokens": 0, "cache_read_input_tokens": 71_000, "output_tokens": 5},
        },
        {
            "name": "server_compaction",
            "usage": {
                "input_tokens": 200,
                "output_tokens": 9,
                "iterations": [
                    {"type": "compaction", "input_tokens": 50_000, "output_tokens": 90},
                    {"type": "message", "input_tokens": 200, "output_tokens": 9},
                ],
            },
        },
    ],
    "lines_of_one_message": [
        {"message_id": "m", "output_tokens": 3},
        {"message_id": "m", "output_tokens": 40},
    ],
}


def receipts_of(case: Case) -> dict[str, dict[str, Any]]:
    return {one["name"]: one["usage"] for one in case("20", OWN_20)["receipts"]}


def test_20_the_prompt_is_the_sum_of_what_was_sent(case: Case) -> None:
    receipts = receipts_of(case)
    first = normalise("anthropic", receipts["anthropic"])
    parts = receipts["anthropic"]
    assert first.prompt_total == sum(parts[name] for name in parts if name != "output_tokens")
    chat = normalise("openai", receipts["openai_chat"])
    assert chat.prompt_total == receipts["openai_chat"]["prompt_tokens"]
    assert chat.fresh + chat.cache_read == chat.prompt_total
    hit = normalise("anthropic", receipts["full_hit"])
    assert hit.prompt_total == receipts["full_hit"]["cache_read_input_tokens"]


def test_20_a_server_side_compaction_is_billed_and_teaches_nothing(case: Case) -> None:
    usage = receipts_of(case)["server_compaction"]
    found = normalise("anthropic", usage)
    assert found.billed_input == sum(entry["input_tokens"] for entry in usage["iterations"])
    assert not found.calibrates


def test_20_lines_of_one_message_are_one_message(case: Case) -> None:
    lines = [line["output_tokens"] for line in case("20", OWN_20)["lines_of_one_message"]]
    assert output_of_message(lines) == max(lines)


@pytest.mark.django_db
def test_20_a_session_shows_the_sizes_and_keeps_a_factor_per_model(case: Case) -> None:
    receipts = receipts_of(case)
    factors = {}
    for provider, name in (("anthropic", "full_hit"), ("openai", "openai_chat")):
        runtime = Runtime(provider=provider)
        runtime.ask("How full is it? " + "Word by word. " * 12_000)
        runtime.assemble()
        runtime.hear(json.dumps(json.loads(answer(provider, "Full.")) | {"usage": receipts[name]}))
        (row,) = runtime.requests
        assert row.usage["prompt_total"] == normalise(provider, receipts[name]).prompt_total
        factors[provider] = Calibration.objects.get(tenant_id=runtime.actor.tenant_id)
    # A full hit has no fresh token at all; read as the size of the prompt it would pull the factor to the floor.
    hit = factors["anthropic"]
    total = normalise("anthropic", receipts["full_hit"]).prompt_total
    assert hit.accepted_max == total
    assert hit.factor_millionths > 500_000
    assert {row.model for row in factors.values()} == {"claude-sonnet-4-6", "gpt-5.4"}


@pytest.mark.django_db
def test_20_a_compacting_answer_does_not_lower_the_factor(case: Case) -> None:
    runtime = Runtime()
    runtime.ask("Word by word. " * 2_000)
    runtime.assemble()
    usage = receipts_of(case)["server_compaction"]
    runtime.hear(json.dumps(json.loads(answer("anthropic", "Gone.")) | {"usage": usage}))
    assert not Calibration.objects.filter(tenant_id=runtime.actor.tenant_id).exists()
