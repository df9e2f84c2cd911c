"""Which old turn a directive is about: rare words decide, common ones say nothing, and small words point one turn back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.turns.postings import MemoryPostings, TurnTerms
from ctxengine.engine.turns.relevance import refers_back, relevance_of, values_of
from ctxengine.engine.turns.terms import MAX_TERM_CHARS, asked_by, found_by, stem


def index_of(*texts: str) -> MemoryPostings:
    """Postings over plain texts, turn 1 first."""
    return MemoryPostings(
        TurnTerms(number, Counter(found_by(text))) for number, text in enumerate(texts, start=1)
    )


CHAT = index_of(
    "rename the column customer_id in orders.sql",
    "why does the login page flicker",
    "write a haiku about rain",
    "add retries to fetchInvoice in billing.py",
    "what is the weather",
)


def best(directive: str, index: MemoryPostings = CHAT) -> int | None:
    scores = relevance_of(directive, index)
    return max(scores, key=lambda turn: scores[turn]) if scores else None


@pytest.mark.parametrize(
    ("directive", "turn"),
    [
        ("is customer_id still used anywhere?", 1),
        ("the login flicker is back", 2),
        ("how many retries does fetch invoice make", 4),
        ("BILLING.PY fails now", 4),
        ("unrelated thing entirely", None),
        ("", None),
    ],
)
def test_the_turn_that_shares_the_rare_words_is_found(directive: str, turn: int | None) -> None:
    assert best(directive) == turn


def test_the_best_match_counts_one_and_all_others_less() -> None:
    scores = relevance_of("login page retries in billing", CHAT)
    assert max(scores.values()) == 1.0
    assert all(0 < score <= 1 for score in scores.values())


def test_a_turn_that_shares_little_of_what_is_asked_is_left_alone() -> None:
    assert best("the login page flicker") == 2
    assert best("the login page needs retries and a haiku and customer_id in billing.py") is None


@pytest.mark.parametrize(
    "directive",
    ["where did {} come from?", "who asked for {}?", "I think {} happened", "keep {} as it seems"],
)
def test_verbs_of_no_subject_take_nothing_from_what_is_asked(directive: str) -> None:
    # A single turn holds each of those verbs: rare, and still no subject.
    index = index_of(
        "the haiku came to nothing, they come and ask",
        "warnings in the log",
        "it happened, I think",
        "they seem to keep it",
        "warnings twice",
    )
    asked = directive.format("the warnings")
    assert set(relevance_of(asked, index)) == {2, 5}


def test_a_word_that_most_turns_hold_finds_nothing() -> None:
    index = index_of(*(f"please check item{n}" for n in range(20)))
    assert relevance_of("please check", index) == {}
    assert best("please check item7", index) == 8


def test_scripts_without_blanks_are_found_by_pairs_of_characters() -> None:
    index = index_of("数据库迁移失败", "写一首关于雨的诗", "登录页面闪烁")
    assert best("登录为什么闪烁", index) == 3


@pytest.mark.parametrize(
    "directive",
    [
        "do that again",
        "the second one please",
        "and what about it?",
        "same for the tests",
        "nochmal bitte",
        "encore",
    ],
)
def test_directives_that_lean_on_the_turn_before_are_known(directive: str) -> None:
    assert refers_back(directive)


@pytest.mark.parametrize(
    "directive",
    ["", "rename the column customer_id in orders.sql", "write a haiku about rain " * 6],
)
def test_directives_that_name_what_they_want_are_not(directive: str) -> None:
    assert not refers_back(directive)


def test_values_put_the_newest_first_the_referred_to_at_one_and_keep_all_three() -> None:
    values = values_of("do that again", newest=5, postings=CHAT)
    assert values[5].recency == 1.0 and values[5].anaphora == 1.0
    assert values[1].recency == pytest.approx(1 / 5)
    assert values[1].value == max(values[1])


NAMES = index_of(
    "open packages/ui/hooks/use-api-list.ts and packages/ui/index.ts",
    "the invoice total is 9,448 euros",
    "cycleThinkingLevel is called by VALID_THINKING_LEVELS",
    "packages/ui/hooks/use-theme.ts was stopped and updated",
)


@pytest.mark.parametrize(
    ("directive", "turn"),
    [
        ("What about packages/ui/hooks/use-api-list.ts?", 1),
        ("look at use-api-list.ts", 1),
        ("the use api list hook", 1),
        ("was it 9448", 2),
        ("was it 9,448", 2),
        ("cycle thinking level again", 3),
        ("valid_thinking_levels", 3),
        ("stopping the updates", 4),
    ],
)
def test_names_and_numbers_are_found_as_people_write_and_say_them(
    directive: str, turn: int
) -> None:
    assert best(directive, NAMES) == turn


@pytest.mark.parametrize(
    "forms",
    [
        ("stop", "stops", "stopped", "stopping"),
        ("update", "updates", "updated", "updating"),
        ("query", "queries", "queried"),
        ("process", "processes", "processing", "processed"),
        ("crane", "cranes"),
    ],
)
def test_forms_of_a_word_meet(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_words_of_no_subject_are_not_looked_for() -> None:
    assert (
        relevance_of("could you please check and look at it again", index_of("you at it", "again"))
        == {}
    )
    assert best("is it one way", index_of("please one thing", "one_way flights", "way to go")) == 2
    assert relevance_of("and what was it then?", CHAT) == {}


@given(st.text(max_size=300))
def test_any_text_has_terms_of_a_bounded_length(text: str) -> None:
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in [*found_by(text), *asked_by(text)])


@given(st.text(st.characters(categories=("Lu", "Ll", "Nd")), min_size=1, max_size=30))
def test_a_text_finds_itself(word: str) -> None:
    terms = set(found_by(word))
    assert word.casefold() == "" or set(asked_by(f"{word}.py")) & {*terms, *found_by(f"{word}.py")}
