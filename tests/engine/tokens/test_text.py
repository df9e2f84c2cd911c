"""Counting text: exact where the vocabulary is known, on the safe side elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.tokens.classes import ContentClass, content_class, profile
from ctxengine.engine.tokens.counters import PIECE_CHARS, count
from ctxengine.engine.tokens.families import (
    CL100K,
    CLAUDE_NEW,
    CLAUDE_OLD,
    FAMILIES,
    O200K,
    UNKNOWN,
    Family,
    family_of,
)
from ctxengine.engine.tokens.text import count_text

any_text = st.text(st.characters(codec=None))
asciis = st.text(alphabet='abcXYZ019 \n\t{}":,.;/+=_-')
families = st.sampled_from(list(FAMILIES.values()))
noise = b"".join(hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(400))


@pytest.mark.parametrize(
    ("encoding", "text", "tokens"),
    [
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "", 0),
        ("o200k_base", "<|endoftext|>", 7),
    ],
)
def test_known_texts_have_known_counts(encoding: str, text: str, tokens: int) -> None:
    assert count(text, encoding) == tokens


def test_half_an_emoji_is_counted_and_not_refused() -> None:
    assert count("left \ud83d right", "o200k_base") > 2


def test_an_unknown_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="p50k"):
        count("x", "p50k_base")


def test_long_texts_are_counted_in_pieces_without_losing_accuracy() -> None:
    line = "The quick brown fox jumps over the lazy dog.\n"
    lines = 3 * PIECE_CHARS // len(line)
    assert count(line * lines, "o200k_base") == lines * count(line, "o200k_base")


@pytest.mark.parametrize("text", [" " * 1_100_000, "a" * 300_000, "\t\n" * 100_000])
def test_texts_that_break_the_tokenizer_are_still_counted(text: str) -> None:
    assert 0 < count(text, "o200k_base") <= len(text)


@given(any_text, any_text)
def test_for_an_unknown_model_a_longer_text_never_costs_less(one: str, other: str) -> None:
    joined = count_text(one + other, UNKNOWN)
    assert joined >= max(count_text(one, UNKNOWN), count_text(other, UNKNOWN))


@given(asciis, asciis)
def test_the_same_holds_where_runs_of_letters_and_digits_join(one: str, other: str) -> None:
    joined = count_text(one + other, UNKNOWN)
    assert joined >= max(count_text(one, UNKNOWN), count_text(other, UNKNOWN))


@given(st.lists(st.sampled_from(["数据表格", "word ", "🚀", "x = f(y);\n", " " * 40]), max_size=30))
def test_for_a_known_family_mixing_classes_hides_at_most_a_few_tokens(parts: list[str]) -> None:
    for family in (CLAUDE_NEW, CLAUDE_OLD, O200K):
        whole = count_text("".join(parts), family)
        for cut in range(len(parts)):
            part = max(
                count_text("".join(parts[:cut]), family), count_text("".join(parts[cut:]), family)
            )
            assert whole >= 0.97 * part - 6


@given(any_text, families)
def test_the_same_text_gives_the_same_number(text: str, family: Family) -> None:
    first = count_text(text, family)
    assert first == count_text(text, family)
    assert (first == 0) == (text == "")


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("word " * 120, 120, 300),
        ("数据表格" * 150, 480, 1200),
        ("안녕하세요" * 120, 480, 1200),
        ("こんにちは" * 120, 480, 1200),
        ("🚀" * 100, 150, 600),
        ("QUJDREVGR0hJSktMTU5PUFFS" * 1667, 36_000, 60_000),
        (base64.b64encode(noise).decode(), 15_000, 25_000),
        (noise.hex(), 20_000, 30_000),
    ],
)
def test_an_unknown_model_is_charged_on_the_safe_side_and_not_blindly(
    text: str, least: int, most: int
) -> None:
    assert least <= count_text(text, family_of("somebody", "test-200k")) <= most


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "It was a bright cold day in April, and the clocks were striking thirteen. " * 9,
            "english",
        ),
        ("for (int i = 0; i < n; ++i) { total += items[i].value(); }\n" * 9, "code"),
        (json.dumps([{"id": n, "name": "ann", "ok": True} for n in range(9)]), "json"),
        ("数据表格是一个例子", "cjk"),
        ("Привет, как дела", "script"),
        ("1234 5678 9012 3456 7890", "digits"),
        (base64.b64encode(noise).decode(), "base64"),
        ("🚀🎉👍", "emoji"),
        ("    \n" * 50, "whitespace"),
        ("", "mixed"),
    ],
)
def test_kinds_of_content_are_told_apart(text: str, kind: str) -> None:
    assert content_class(text) is ContentClass(kind)


def test_newer_claude_models_are_charged_more_than_older_ones_and_both_more_than_the_count() -> (
    None
):
    text = "It was a bright cold day in April. " * 50
    bare = count_text(text, O200K)
    assert bare < count_text(text, CLAUDE_OLD) < count_text(text, CLAUDE_NEW) < 2 * bare


@given(st.text(max_size=300), families)
def test_a_prior_stays_within_its_table(text: str, family: Family) -> None:
    if family.priors is None or family.encoding is None:
        return
    bare = count(text, family.encoding)
    low, high = min(family.priors.values()), max(family.priors.values())
    assert low * bare <= 100 * count_text(text, family) < high * bare + 100


@given(any_text, any_text)
def test_no_mass_of_a_profile_shrinks_when_text_is_added(one: str, other: str) -> None:
    joined, alone = profile(one + other), profile(one)
    assert joined.total >= alone.total
    assert joined.cjk >= alone.cjk
    assert joined.emoji >= alone.emoji


@pytest.mark.parametrize(
    "run", ["a" * 200_000, "1" * 200_000, "a1" * 100_000, "é" * 100_000, "[" * 100_000]
)
def test_a_profile_of_one_endless_run_is_made_at_once(run: str) -> None:
    assert profile(run).total > 0


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o", "o200k"),
        ("openai/gpt-5.2", "o200k"),
        ("o3-mini", "o200k"),
        ("gpt-oss-120b", "o200k"),
        ("gpt-6-astra", "gpt-6"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-3.5-turbo-0125", "cl100k"),
        ("claude-3-5-sonnet-20241022", "claude-old"),
        ("claude-opus-4-20250514", "claude-old"),
        ("claude-sonnet-4-6", "claude-old"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-old"),
        ("claude-opus-4-7", "claude-new"),
        ("claude-opus-4.8", "claude-new"),
        ("claude-fable-5", "claude-new"),
        ("claude-next", "claude-new"),
        ("gemini-3-pro", "gemini"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
        ("qwen3-coder", "qwen"),
        ("deepseek-chat", "deepseek"),
        ("test-200k", "unknown"),
    ],
)
def test_models_find_their_family_by_name(model: str, family: str) -> None:
    assert family_of("", model).name == family


def test_a_nameless_anthropic_model_is_taken_for_the_dearer_family() -> None:
    assert family_of("anthropic", "prod-deployment") is CLAUDE_NEW
    assert CL100K.exact
    assert not UNKNOWN.exact
