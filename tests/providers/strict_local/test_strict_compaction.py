"""Native compaction of both vendors: on demand, at a threshold, in band; and what becomes of the blocks."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from tests.providers.strict_local.bodies import (
    GPT,
    LONG,
    OPUS,
    Json,
    assistant,
    call_item,
    item,
    message,
    output_item,
    plain,
    response,
    result,
    says,
    tool,
    use,
    user,
)

ON_DEMAND = "compact-2026-09-04"
AT_THRESHOLD = "compact-2026-01-12"
SUMMARIZE: Json = {"type": "summarize"}
PAST = [user(says(LONG)), assistant(says("Noted.")), user(says("And now?")), assistant(says("Ok."))]


def create(claude: anthropic.Anthropic, beta: str = ON_DEMAND, **change: Any) -> Any:
    arguments = message(model=OPUS, tools=[tool()], system="Be brief.") | change
    return claude.beta.messages.create(**arguments, betas=[beta])


def block(claude: anthropic.Anthropic, messages: list[Json] | None = None) -> Json:
    answer = create(claude, messages=messages or PAST, compaction=SUMMARIZE)
    made: Json = plain(answer.content[0])
    return made


def test_on_demand_gives_one_signed_block_and_bills_it_apart(claude: anthropic.Anthropic) -> None:
    answer = create(claude, messages=PAST, compaction=SUMMARIZE)
    assert answer.stop_reason == "compaction"
    assert [one.type for one in answer.content] == ["compaction"]
    assert answer.content[0].signature and answer.content[0].tool_changes == []
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens) == (0, 0)
    assert usage.iterations[0].type == "compaction"
    assert usage.iterations[0].input_tokens > 1_000


def test_a_block_stands_for_what_it_summarizes(claude: anthropic.Anthropic) -> None:
    whole = create(claude, messages=[*PAST, user(says("Go on."))])
    after = [{"role": "assistant", "content": [block(claude)]}, user(says("Go on."))]
    short = create(claude, messages=after)
    assert short.usage.input_tokens < whole.usage.input_tokens - 1_000


def test_thinking_behind_a_compacted_range_stays_good(claude: anthropic.Anthropic) -> None:
    first = create(claude, messages=[*PAST, user(says("call look"))])
    call_id = first.content[-1].id
    said = {"role": "assistant", "content": [plain(one) for one in first.content]}
    tail = [user(says("call look")), said, user(result(call_id))]
    assert create(claude, messages=[*PAST, *tail]).stop_reason == "end_turn"
    front = {"role": "assistant", "content": [block(claude)]}
    assert create(claude, messages=[front, *tail]).stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        create(claude, messages=[front, *tail], system="Be verbose.")


def test_a_summary_by_script(claude: anthropic.Anthropic, provider: StrictProvider) -> None:
    provider.script.add([Reply(text="They met."), Reply(refuse=True), Reply(status=529)])
    assert block(claude)["content"] == "[scripted] They met."
    empty = create(claude, messages=PAST, compaction=SUMMARIZE)
    assert (empty.content, empty.stop_reason) == ([], "refusal")
    with pytest.raises(anthropic.types.CompactionUnavailableError):
        create(claude, messages=PAST, compaction=SUMMARIZE)


REFUSED: dict[str, tuple[Any, Any]] = {
    "two blocks": (
        anthropic.types.CompactionBlockAmbiguousError,
        lambda b: [assistant(b), user(), assistant(b), user()],
    ),
    "behind another message": (
        anthropic.types.CompactionBlockMisplacedError,
        lambda b: [user(), assistant(b), user()],
    ),
    "another signature": (
        anthropic.types.CompactionSignatureInvalidError,
        lambda b: [assistant(b | {"signature": "forged"}), user()],
    ),
    "another text": (
        anthropic.types.CompactionContentMismatchError,
        lambda b: [assistant(b | {"content": "They fought."}), user()],
    ),
    "other tool changes": (
        anthropic.types.CompactionToolChangesMismatchError,
        lambda b: [assistant(b | {"tool_changes": None}), user()],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_block_that_is_not_as_it_was_given_is_refused_by_type(
    claude: anthropic.Anthropic, name: str
) -> None:
    error, spoil = REFUSED[name]
    with pytest.raises(error):
        create(claude, messages=spoil(block(claude)))


def test_a_block_needs_its_header_on_later_requests(claude: anthropic.Anthropic) -> None:
    messages = [assistant(block(claude)), user()]
    with pytest.raises(anthropic.BadRequestError, match="Input tag 'compaction' found"):
        create(claude, beta="context-1m-2025-08-07", messages=messages)


def test_an_added_field_is_refused(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="note: Extra inputs are not permitted"):
        create(claude, messages=[assistant(block(claude) | {"note": "ours"}), user()])


def test_an_open_call_and_an_empty_window_cannot_be_compacted(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.types.CompactionIncompleteTurnError):
        create(claude, messages=[user(), assistant(use("a"))], compaction=SUMMARIZE)
    with pytest.raises(anthropic.types.CompactionNothingToSummarizeError):
        create(claude, messages=[assistant(block(claude))], compaction=SUMMARIZE)


@pytest.mark.parametrize(
    "change",
    [
        {"stop_sequences": ["x"]},
        {"tool_choice": {"type": "tool", "name": "look"}},
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        {"compaction": SUMMARIZE | {"instructions": "x" * 16_385}},
    ],
    ids=["stop sequences", "forced choice", "format", "long instructions"],
)
def test_what_compaction_excludes(claude: anthropic.Anthropic, change: Json) -> None:
    with pytest.raises(anthropic.BadRequestError, match="compaction"):
        create(claude, messages=PAST, **({"compaction": SUMMARIZE} | change))


# --- at a threshold ---------------------------------------------------------------------------------------------------

LONGER = [user(says(LONG * 18)), assistant(says("Noted.")), user(says("reply with: here"))]


def edits(**change: Any) -> Json:
    trigger = {"type": "input_tokens", "value": 50_000}
    return {"edits": [{"type": "compact_20260112", "trigger": trigger} | change]}


def test_at_a_threshold_the_answer_begins_with_a_block(claude: anthropic.Anthropic) -> None:
    answer = create(claude, AT_THRESHOLD, messages=LONGER, context_management=edits())
    assert [one.type for one in answer.content] == ["compaction", "thinking", "text"]
    assert [one.type for one in answer.usage.iterations] == ["compaction", "message"]
    assert answer.usage.iterations[0].input_tokens > 50_000
    assert answer.usage.input_tokens == answer.usage.iterations[1].input_tokens < 1_000
    said = {"role": "assistant", "content": [plain(one) for one in answer.content]}
    kept = [*LONGER, said, user(says("Go on."))]
    for messages in (kept, kept[3:]):
        later = create(claude, AT_THRESHOLD, messages=messages, context_management=edits())
        assert later.usage.input_tokens < 1_000
        assert later.content[0].type == "thinking"


def test_a_pause_stops_after_the_block(claude: anthropic.Anthropic) -> None:
    change = edits(pause_after_compaction=True)
    answer = create(claude, AT_THRESHOLD, messages=LONGER, context_management=change)
    assert answer.stop_reason == "compaction"
    assert [one.type for one in answer.content] == ["compaction"]


def test_below_the_threshold_nothing_happens(claude: anthropic.Anthropic) -> None:
    answer = create(claude, AT_THRESHOLD, messages=[user()], context_management=edits())
    assert answer.usage.iterations is None


def test_a_streamed_block_arrives_whole(claude: anthropic.Anthropic) -> None:
    arguments = message(model=OPUS, messages=LONGER, context_management=edits())
    with claude.beta.messages.stream(**arguments, betas=[AT_THRESHOLD]) as stream:
        first = stream.get_final_message().content[0]
    assert first.type == "compaction"
    assert first.content and first.encrypted_content


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        (edits(trigger={"type": "input_tokens", "value": 10}), "greater than or equal to 50000"),
        ({"edits": [{"type": "clear_tool_uses_20250919"}]}, "this stand-in performs"),
    ],
)
def test_edits_that_are_refused(claude: anthropic.Anthropic, change: Json, wording: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=wording):
        create(claude, AT_THRESHOLD, messages=[user()], context_management=change)


def test_an_empty_block_is_refused_and_a_failed_one_is_nothing(claude: anthropic.Anthropic) -> None:
    failed = [user(), assistant({"type": "compaction", "content": None}, says("Yes.")), user()]
    assert create(claude, AT_THRESHOLD, messages=failed).stop_reason == "end_turn"
    failed[1]["content"][0]["content"] = ""
    with pytest.raises(anthropic.BadRequestError, match="at least 1 character"):
        create(claude, AT_THRESHOLD, messages=failed)


# --- OpenAI -----------------------------------------------------------------------------------------------------------

HISTORY = [
    item("developer", "Be brief."), item("user", LONG), call_item("a"), output_item("a", LONG),
    item("assistant", "Noted."),
]  # fmt: skip


def test_a_compacted_window_keeps_users_and_one_item(gpt: openai.OpenAI) -> None:
    made = gpt.responses.compact(model=GPT, input=HISTORY)
    assert made.object == "response.compaction"
    assert [one.type for one in made.output] == ["message", "compaction"]
    assert made.usage.input_tokens > 4_000
    window = [plain(one) for one in made.output]
    answer = gpt.responses.create(**response(*window, item("user", "reply with: yes")))
    assert answer.output_text == "yes"
    assert answer.usage is not None and answer.usage.input_tokens < 2_500


def test_compaction_in_band_begins_the_output(gpt: openai.OpenAI) -> None:
    limit = [{"type": "compaction", "compact_threshold": 3_000}]
    asked = item("user", "reply with: yes")
    answer = gpt.responses.create(**response(*HISTORY, asked, context_management=limit))
    assert [one.type for one in answer.output] == ["compaction", "reasoning", "message"]
    output = [plain(one) for one in answer.output]
    later = item("user", "reply with: and yes")
    for window in ([*HISTORY, asked, *output, later], [*output, later]):
        again = gpt.responses.create(**response(*window))
        assert again.output_text == "and yes"
        assert again.input_transformations is not None


def test_a_trigger_at_the_end_compacts_and_says_nothing_else(gpt: openai.OpenAI) -> None:
    answer = gpt.responses.create(**response(*HISTORY, {"type": "compaction_trigger"}))
    assert [one.type for one in answer.output] == ["compaction"]


def test_a_compaction_item_that_was_changed_is_refused(gpt: openai.OpenAI) -> None:
    forged = {"type": "compaction", "id": "cmp_1", "encrypted_content": "AAAA"}
    with pytest.raises(openai.BadRequestError) as caught:
        gpt.responses.create(**response(forged, item("user", "Go on.")))
    assert caught.value.code == "invalid_encrypted_content"


def test_reasoning_behind_a_changed_prefix_is_withheld_and_reported(gpt: openai.OpenAI) -> None:
    first = gpt.responses.create(**response(item("user", "One?")))
    said = [plain(one) for one in first.output]
    for head, model, reason in (
        ("One!", GPT, "prefix_mismatch"), ("One?", "gpt-6.1-sol", "model_mismatch"),
    ):  # fmt: skip
        window = [item("user", head), *said, item("user", "Two?")]
        answer = gpt.responses.create(**response(*window, model=model))
        assert answer.input_transformations is not None
        assert [one.reason for one in answer.input_transformations] == [reason]
    same = [item("user", "One?"), *said, item("user", "Two?")]
    assert gpt.responses.create(**response(*same)).input_transformations == []
    turn = gpt.responses.create(**response(*same, reasoning={"context": "current_turn"}))
    assert turn.input_transformations is not None
    assert turn.input_transformations[0].reason == "turn_boundary"
