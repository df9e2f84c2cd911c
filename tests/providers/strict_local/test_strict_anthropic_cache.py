"""Anthropic's cache: writes, reads, misses, lives, look-back, minimums, and the provider's own reasons."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from ctxengine.providers.strict_local.clock import AdvancingClock
from tests.providers.strict_local.bodies import (
    LONG,
    LONG_LIFE,
    OPUS,
    SHORT_LIFE,
    SONNET,
    Json,
    assistant,
    message,
    picture,
    plain,
    result,
    says,
    tool,
    use,
    user,
)

MINUTE = 60.0


def system(text: str = LONG, life: Json = SHORT_LIFE) -> list[Json]:
    return [says(text, cache_control=life)]


def send(claude: anthropic.Anthropic, **change: Any) -> anthropic.types.Usage:
    return claude.messages.create(**message(**change)).usage


def figures(usage: anthropic.types.Usage) -> tuple[int, int, int]:
    """Read, written, fresh."""
    return (
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
        usage.input_tokens,
    )


def test_a_prefix_is_written_once_and_then_read(claude: anthropic.Anthropic) -> None:
    read, written, fresh = figures(send(claude, system=system()))
    assert (read, fresh) == (0, 5 + 2)
    assert written > 1_024
    assert figures(send(claude, system=system())) == (written, 0, fresh)


def test_the_buckets_add_up_to_the_count(claude: anthropic.Anthropic) -> None:
    counted = claude.messages.count_tokens(model=SONNET, system=system(), messages=[user()])
    for _ in range(2):
        assert sum(figures(send(claude, system=system()))) == counted.input_tokens


def test_one_changed_byte_is_a_miss(claude: anthropic.Anthropic) -> None:
    _, written, _ = figures(send(claude, system=system()))
    changed = "the" + LONG[3:]
    read, again, _ = figures(send(claude, system=system(changed)))
    assert read == 0
    assert again == pytest.approx(written, abs=5)


def test_another_model_is_a_miss(claude: anthropic.Anthropic) -> None:
    send(claude, system=system())
    assert figures(send(claude, model=OPUS, system=system()))[0] == 0


def test_moving_markers_and_the_output_limit_lose_nothing(claude: anthropic.Anthropic) -> None:
    _, written, _ = figures(send(claude, system=system()))
    later = user(says("Hello", cache_control=SHORT_LIFE))
    read, added, fresh = figures(send(claude, system=system(), max_tokens=77, messages=[later]))
    assert (read, fresh) == (written, 0)
    assert added == 7


def test_a_text_and_a_list_of_one_text_are_the_same_prompt(claude: anthropic.Anthropic) -> None:
    head: Any = {"role": "user", "content": LONG}
    tail = user(says("And?", cache_control=SHORT_LIFE))
    _, written, _ = figures(send(claude, messages=[head, tail]))
    assert figures(send(claude, messages=[user(says(LONG)), tail]))[0] == written


@pytest.mark.parametrize(
    ("pause", "alive"), [(4.9 * MINUTE, True), (5.1 * MINUTE, False)], ids=["within", "after"]
)
def test_a_life_ends_after_five_minutes(
    claude: anthropic.Anthropic, clock: AdvancingClock, pause: float, alive: bool
) -> None:
    _, written, _ = figures(send(claude, system=system()))
    clock.advance(pause)
    assert figures(send(claude, system=system()))[0] == (written if alive else 0)


def test_a_read_begins_a_new_life(claude: anthropic.Anthropic, clock: AdvancingClock) -> None:
    _, written, _ = figures(send(claude, system=system()))
    for _ in range(5):
        clock.advance(4 * MINUTE)
        assert figures(send(claude, system=system()))[0] == written


def test_an_hour_is_an_hour_and_is_counted_apart(
    claude: anthropic.Anthropic, clock: AdvancingClock
) -> None:
    mixed: Any = [user(says(LONG, cache_control=SHORT_LIFE))]
    usage = send(claude, system=system(life=LONG_LIFE), messages=mixed)
    assert usage.cache_creation is not None
    long, short = (
        usage.cache_creation.ephemeral_1h_input_tokens,
        usage.cache_creation.ephemeral_5m_input_tokens,
    )
    assert long > 1_024 and short > 1_024
    clock.advance(30 * MINUTE)
    assert figures(send(claude, system=system(life=LONG_LIFE), messages=mixed))[:2] == (long, short)


def test_a_prefix_below_the_minimum_is_silently_not_cached(claude: anthropic.Anthropic) -> None:
    brief = LONG[: len(LONG) // 4]
    for _ in range(2):
        read, written, fresh = figures(send(claude, system=system(brief)))
        assert (read, written) == (0, 0)
        assert fresh > 500


@pytest.mark.parametrize(
    ("model", "cached"),
    [(OPUS, True), ("claude-opus-4-8", True), ("claude-opus-4-7", False), (SONNET, True)],
)
def test_minimums_differ_by_model(claude: anthropic.Anthropic, model: str, cached: bool) -> None:
    text = LONG[: int(len(LONG) * 0.6)]
    assert (figures(send(claude, model=model, system=system(text)))[1] > 0) == cached


def turns(count: int) -> list[Json]:
    """A long text, then `count` short blocks, marked at the end."""
    said = [user(says(LONG))]
    for number in range(count):
        role = assistant if number % 2 == 0 else user
        said.append(role(says(f"Line {number}.")))
    return said


def marked(messages: list[Json]) -> list[Json]:
    last = messages[-1]
    content = [block | {"cache_control": SHORT_LIFE} for block in last["content"]]
    return [*messages[:-1], last | {"content": content}]


@pytest.mark.parametrize(("added", "found"), [(19, True), (20, False)], ids=["20th", "21st"])
def test_a_marker_sees_twenty_positions(
    claude: anthropic.Anthropic, added: int, found: bool
) -> None:
    _, written, _ = figures(send(claude, messages=marked(turns(2))))
    tail = turns(2 + added)
    if tail[-1]["role"] == "assistant":
        # The last message must be the user's; a second block of it would be one position more.
        tail[-1] = tail[-1] | {"role": "user"}
    read = figures(send(claude, messages=marked(tail)))[0]
    assert read == (written if found else 0)


def test_an_intermediate_marker_bridges_a_long_step(claude: anthropic.Anthropic) -> None:
    _, written, _ = figures(send(claude, messages=marked(turns(2))))
    messages = marked(turns(32))
    between = messages[18]
    messages[18] = between | {
        "content": [block | {"cache_control": SHORT_LIFE} for block in between["content"]]
    }
    read, added, _ = figures(send(claude, messages=messages))
    assert read == written
    assert added > 0


def test_a_run_of_calls_or_results_is_one_position(claude: anthropic.Anthropic) -> None:
    head = [user(says(LONG))]
    _, written, _ = figures(send(claude, messages=marked(head)))
    ids = [f"a{number}" for number in range(30)]
    batch = [
        *head, assistant(*[use(one) for one in ids]),
        user(*[result(one) for one in ids], says("And?", cache_control=SHORT_LIFE)),
    ]  # fmt: skip
    assert figures(send(claude, messages=batch))[0] == written


def test_the_automatic_marker_stands_on_the_last_block(claude: anthropic.Anthropic) -> None:
    messages = [user(says(LONG)), assistant(says("Yes.")), user(says("Go on."))]
    read, written, fresh = figures(send(claude, messages=messages, cache_control=SHORT_LIFE))
    assert (read, fresh) == (0, 0)
    longer = [*messages, assistant(says("Well.")), user(says("And?"))]
    assert figures(send(claude, messages=longer, cache_control=SHORT_LIFE))[0] == written


CHANGES: dict[str, Json] = {
    "tool choice": {"tool_choice": {"type": "none"}},
    "picture": {"messages": [user(says(LONG, cache_control=SHORT_LIFE)), user(picture(9, 9))]},
    "effort": {"output_config": {"effort": "low"}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_messages_keeps_tools_and_system(
    claude: anthropic.Anthropic, name: str
) -> None:
    base: Json = {
        "tools": [tool(cache_control=SHORT_LIFE)],
        "system": system(),
        "messages": [user(says(LONG, cache_control=SHORT_LIFE))],
    }
    whole = figures(send(claude, **base))[1]
    assert figures(send(claude, **base))[0] == whole
    read = figures(send(claude, **(base | CHANGES[name])))[0]
    assert 0 < read < whole


def test_the_order_inside_a_schema_is_part_of_the_prefix(claude: anthropic.Anthropic) -> None:
    one = tool(description=LONG, cache_control=SHORT_LIFE)
    written = figures(send(claude, tools=[one]))[1]
    assert figures(send(claude, tools=[dict(reversed(one.items()))]))[0] == written
    turned = dict(reversed(one["input_schema"].items()))
    assert figures(send(claude, tools=[one | {"input_schema": turned}]))[0] == 0


def test_prewarming_writes_and_says_nothing(claude: anthropic.Anthropic) -> None:
    warm = claude.messages.create(**message(max_tokens=0, system=system()))
    assert warm.content == []
    assert warm.usage.output_tokens == 0
    assert figures(send(claude, system=system()))[0] == warm.usage.cache_creation_input_tokens


# --- the provider's own reason ----------------------------------------------------------------------------------------

REASONS: dict[str, Json] = {
    "model_changed": {"model": OPUS},
    "tools_changed": {"tools": [tool(), tool("listen")]},
    "system_changed": {"system": system("B" + LONG)},
    "messages_changed": {"messages": [user(says("Hullo")), assistant(says("Yes.")), user()]},
    "unavailable": {"tool_choice": {"type": "none"}},
}


@pytest.mark.parametrize("reason", REASONS)
def test_the_first_change_is_named(claude: anthropic.Anthropic, reason: str) -> None:
    base = message(system=system(), tools=[tool()])
    first = claude.messages.create(**base)
    change = {"diagnostics": {"previous_message_id": first.id}} | REASONS[reason]
    second = claude.messages.create(**(base | change))
    assert second.diagnostics is not None and second.diagnostics.cache_miss_reason is not None
    found = second.diagnostics.cache_miss_reason
    assert found.type == reason
    if reason != "unavailable":
        assert plain(found)["cache_missed_input_tokens"] > 0


def test_appending_is_no_divergence_and_an_unknown_message_is_said_so(
    claude: anthropic.Anthropic,
) -> None:
    first = claude.messages.create(**message())
    longer = [user(), assistant(says("Yes.")), user(says("And?"))]
    known = claude.messages.create(
        **message(messages=longer, diagnostics={"previous_message_id": first.id})
    )
    assert known.diagnostics is None
    unknown = claude.messages.create(**message(diagnostics={"previous_message_id": "msg_x"}))
    assert unknown.diagnostics is not None and unknown.diagnostics.cache_miss_reason is not None
    assert unknown.diagnostics.cache_miss_reason.type == "previous_message_not_found"
