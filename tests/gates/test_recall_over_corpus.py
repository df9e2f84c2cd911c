"""A new directive finds the old turn of a real session that it is about: nine of ten at least (capacity spec 4).

The questions are made from the turns' own facts, as `bench.recall_set` says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.recall import TARGET, Asked, Tally, asked_of
from bench.survival import transcripts

FORMATS = ("codex_rollout", "pi_session")
"""Their transcripts hold conversations of many turns; `python -m bench.recall` asks every file there is."""
MOST_TURNS = 40
"""Of each: the more there are, the longer it takes to index them."""
LEAST_QUESTIONS = 100


@pytest.fixture(scope="module")
def sessions(corpus_folder: Path) -> list[Asked]:
    logs = [log for format in FORMATS for _, log in transcripts(corpus_folder / format, 400)]
    return [asked for log in logs if (asked := asked_of(log, most_turns=MOST_TURNS)).questions]


def tally_of(sessions: list[Asked]) -> Tally:
    tally = Tally()
    for asked in sessions:
        tally.ask(asked)
    return tally


def test_nine_of_ten_questions_find_their_turn(sessions: list[Asked]) -> None:
    tally = tally_of(sessions)
    assert tally.total >= LEAST_QUESTIONS
    assert tally.share >= TARGET, f"{tally.share:.1%} of {tally.total}: {tally.found}"
    assert tally.found["back"] >= TARGET * tally.asked["back"]


def test_an_index_that_names_the_wrong_turns_fails(sessions: list[Asked]) -> None:
    broken = [
        asked._replace(
            terms=[
                turn._replace(counts=other.counts)
                for turn, other in zip(asked.terms, [*asked.terms[1:], asked.terms[0]], strict=True)
            ]
        )
        for asked in sessions
    ]
    assert tally_of(broken).share < TARGET / 2
