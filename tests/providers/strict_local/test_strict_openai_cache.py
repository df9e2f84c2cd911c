"""OpenAI's two caches: by breakpoints, implicit and explicit, and automatic in steps; and the reasons for misses."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from ctxengine.providers.strict_local.clock import AdvancingClock
from tests.providers.strict_local.bodies import (
    GPT,
    LONG,
    MARK,
    OLD_GPT,
    Json,
    call_item,
    chat,
    item,
    output_item,
    plain,
    response,
    response_tool,
)

EXPLICIT: Json = {"mode": "explicit"}
HOUR = 3_600.0


def part(text: str, *, marked: bool = False) -> Json:
    made = {"type": "input_text", "text": text}
    return made | {"prompt_cache_breakpoint": MARK} if marked else made


def rules(*, marked: bool = False, text: str = LONG) -> Json:
    return item("developer", [part(text, marked=marked)])


def send(gpt: openai.OpenAI, *items: Json, **change: Any) -> tuple[int, int, int]:
    """Read, written, total."""
    usage = gpt.responses.create(**response(*items, **change)).usage
    assert usage is not None
    details = usage.input_tokens_details
    return details.cached_tokens, details.cache_write_tokens, usage.input_tokens


def test_implicit_mode_writes_at_the_latest_message(gpt: openai.OpenAI) -> None:
    first = send(gpt, rules(), item("user", "One?"))
    assert first == (0, first[2], first[2])
    longer = [rules(), item("user", "One?"), item("assistant", "Yes."), item("user", "Two?")]
    read, written, total = send(gpt, *longer)
    assert (read, written) == (first[2], total - first[2])


def test_implicit_mode_caches_nothing_below_a_volatile_tail(gpt: openai.OpenAI) -> None:
    send(gpt, item("user", LONG + "It is 10:00."))
    assert send(gpt, item("user", LONG + "It is 10:01."))[0] == 0


def test_explicit_mode_reads_up_to_the_breakpoint(gpt: openai.OpenAI) -> None:
    change: Json = {"prompt_cache_options": EXPLICIT}
    _, written, total = send(gpt, rules(marked=True), item("user", "One?"), **change)
    assert 1_024 < written < total
    read, again, _ = send(gpt, rules(marked=True), item("user", "Two?"), **change)
    assert (read, again) == (written, 0)


def test_explicit_mode_without_breakpoints_caches_nothing(gpt: openai.OpenAI) -> None:
    for _ in range(2):
        assert send(gpt, rules(), prompt_cache_options=EXPLICIT)[:2] == (0, 0)


def test_a_breakpoint_that_moved_on_is_found_at_the_end_of_its_message(gpt: openai.OpenAI) -> None:
    change: Json = {"prompt_cache_options": EXPLICIT}
    asked = item("user", [part("call look", marked=True)])
    _, written, _ = send(gpt, rules(), asked, **change)
    later = output_item("a", [part("fine", marked=True)])
    head = [rules(), item("user", "call look"), call_item("a"), later]
    read, added, _ = send(gpt, *head, **change)
    assert read == written
    assert added > 0


def test_an_extended_message_has_lost_its_breakpoint(gpt: openai.OpenAI) -> None:
    send(gpt, item("user", [part(LONG)]))
    assert send(gpt, item("user", [part(LONG), part("And more.")]))[0] == 0


def test_only_the_newest_four_breakpoints_are_written(gpt: openai.OpenAI) -> None:
    texts = [part(f"{LONG} {number}", marked=True) for number in range(5)]
    change: Json = {"prompt_cache_options": EXPLICIT}
    send(gpt, *[item("user", [text]) for text in texts], **change)
    assert send(gpt, item("user", [texts[0]]), **change)[0] == 0
    two = [item("user", [text]) for text in texts[:2]]
    assert send(gpt, *two, **change)[0] > 0


def test_below_the_minimum_nothing_is_cached(gpt: openai.OpenAI) -> None:
    brief = LONG[: len(LONG) // 3]
    for _ in range(2):
        assert send(gpt, rules(text=brief))[:2] == (0, 0)


@pytest.mark.parametrize(
    ("ttl", "pause", "alive"),
    [("30m", 0.4, True), ("30m", 0.6, False), ("12h", 11.0, True), ("12h", 13.0, False)],
)
def test_lives_are_those_asked_for(
    gpt: openai.OpenAI, clock: AdvancingClock, ttl: str, pause: float, alive: bool
) -> None:
    change: Json = {"prompt_cache_options": {"ttl": ttl}}
    usage = gpt.responses.create(**response(rules(), **change)).usage
    assert usage is not None
    lives = usage.input_tokens_details.cache_write_tokens_details
    assert lives is not None
    assert (lives.ttl_12h_tokens > 0, lives.ttl_30m_tokens > 0) == (ttl == "12h", ttl == "30m")
    clock.advance(pause * HOUR)
    assert (send(gpt, rules(), **change)[0] > 0) == alive


def test_another_cache_key_is_another_cache(gpt: openai.OpenAI) -> None:
    send(gpt, rules(), prompt_cache_key="one")
    assert send(gpt, rules(), prompt_cache_key="two")[0] == 0
    assert send(gpt, rules(), prompt_cache_key="one")[0] > 0


def test_prewarming_writes_and_says_nothing(gpt: openai.OpenAI) -> None:
    warm = gpt.responses.create(**response(rules(), prompt_cache_options={"prewarm": True}))
    assert warm.output == []
    assert send(gpt, rules())[0] > 0


# --- automatic --------------------------------------------------------------------------------------------------------


def complete(gpt: openai.OpenAI, text: str, **change: Any) -> tuple[int, int]:
    """Cached and all prompt tokens."""
    answer = gpt.chat.completions.create(
        **chat(model=OLD_GPT, messages=[{"role": "user", "content": text}], **change)
    )
    assert answer.usage is not None and answer.usage.prompt_tokens_details is not None
    return answer.usage.prompt_tokens_details.cached_tokens or 0, answer.usage.prompt_tokens


def test_older_models_cache_by_themselves_in_steps(gpt: openai.OpenAI) -> None:
    assert complete(gpt, LONG)[0] == 0
    cached, total = complete(gpt, LONG + "And a question?")
    assert cached % 128 == 0
    assert total - 256 < cached < total


def test_older_models_forget_when_they_are_idle(gpt: openai.OpenAI, clock: AdvancingClock) -> None:
    kept: Json = {"prompt_cache_retention": "in_memory"}
    complete(gpt, LONG, **kept)
    clock.advance(500)
    assert complete(gpt, LONG, **kept)[0] > 0
    clock.advance(601)
    assert complete(gpt, LONG, **kept)[0] == 0


def test_older_models_need_1024_tokens(gpt: openai.OpenAI) -> None:
    for _ in range(2):
        assert complete(gpt, LONG[: len(LONG) // 3])[0] == 0


# --- the provider's own reason ----------------------------------------------------------------------------------------

REASONS: dict[str, Json] = {
    "model_changed": {"model": "gpt-6.1-sol"},
    "prompt_cache_key_changed": {"prompt_cache_key": "other"},
    "tools_changed": {"tools": [response_tool("listen")]},
    "text_format_changed": {"text": {"format": {"type": "json_object"}}},
    "reasoning_effort_changed": {"reasoning": {"effort": "low"}},
    "verbosity_changed": {"text": {"verbosity": "low"}},
    "service_tier_changed": {"service_tier": "priority"},
    "input_changed": {"input": [rules(text="B" + LONG)]},
}


@pytest.mark.parametrize("reason", REASONS)
def test_the_first_change_is_named(gpt: openai.OpenAI, reason: str) -> None:
    base = response(rules())
    first = gpt.responses.create(**base)
    options = {"prompt_cache_options": {"comparison_response_id": first.id}}
    second = gpt.responses.create(**(base | options | REASONS[reason]))
    assert second.prompt_cache_diagnostics is not None
    found = plain(second.prompt_cache_diagnostics)
    assert (found["type"], found["reason"]) == ("cache_miss", reason)
    assert found["cache_missed_tokens"] > 0


def test_a_hit_an_unknown_response_and_an_expired_prefix_are_told_apart(
    gpt: openai.OpenAI, clock: AdvancingClock
) -> None:
    first = gpt.responses.create(**response(rules()))

    def kind(response_id: str) -> str:
        options = {"comparison_response_id": response_id}
        answer = gpt.responses.create(**response(rules(), prompt_cache_options=options))
        assert answer.prompt_cache_diagnostics is not None
        return answer.prompt_cache_diagnostics.type

    assert kind(first.id) == "cache_hit"
    assert kind("resp_x") == "comparison_response_not_found"
    clock.advance(HOUR)
    assert kind(first.id) == "unavailable"


def test_compaction_is_named_as_the_reason(gpt: openai.OpenAI) -> None:
    first = gpt.responses.create(**response(rules(), item("user", "One?")))
    window = gpt.responses.compact(model=GPT, input=[rules(), item("user", "One?")])
    items = [plain(one) for one in window.output]
    options = {"comparison_response_id": first.id}
    second = gpt.responses.create(
        **response(*items, item("user", "Two?"), prompt_cache_options=options)
    )
    assert second.prompt_cache_diagnostics is not None
    assert plain(second.prompt_cache_diagnostics)["reason"] == "context_compacted"
