"""Which old turn a directive is about: rare words decide, common ones say nothing, and small words point one turn back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from ctxengine.engine.turns.index_text import terms_of
from ctxengine.engine.turns.relevance import refers_back, relevance_of, values_of


class Index:
    """Postings over plain texts, turn 1 first."""

    def __init__(self, *texts: str) -> None:
        self._terms = [Counter(terms_of(text)) for text in texts]

    @property
    def turns(self) -> int:
        return len(self._terms)

    @property
    def mean_length(self) -> float:
        return sum(terms.total() for terms in self._terms) / max(1, len(self._terms))

    def holding(self, terms: Sequence[str]) -> Mapping[str, Mapping[int, int]]:
        held = {
            term: {n: c[term] for n, c in enumerate(self._terms, start=1) if c[term]}
            for term in terms
        }
        return {term: turns for term, turns in held.items() if turns}

    def lengths(self, turns: Sequence[int]) -> Mapping[int, int]:
        return {turn: self._terms[turn - 1].total() for turn in turns}


CHAT = Index(
    "rename the column customer_id in orders.sql",
    "why does the login page flicker",
    "write a haiku about rain",
    "add retries to fetchInvoice in billing.py",
    "what is the weather",
)


def best(directive: str, index: Index = CHAT) -> int | None:
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


def test_a_word_that_most_turns_hold_finds_nothing() -> None:
    index = Index(*(f"please check item{n}" for n in range(20)))
    assert relevance_of("please check", index) == {}
    assert best("please check item7", index) == 8


def test_scripts_without_blanks_are_found_by_pairs_of_characters() -> None:
    index = Index("数据库迁移失败", "写一首关于雨的诗", "登录页面闪烁")
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
