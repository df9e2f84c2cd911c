"""A new directive finds the old turn that it is about: generated sessions, asked by their own facts (capacity spec 4)."""

from __future__ import annotations

import json
from random import Random

import pytest

from bench.recall import TARGET, Tally, asked_of
from ctxengine.engine.memory import MemoryLog
from tests.cast import Call, Scribe, memory_log

TURNS = 30
_SYLLABLES = [a + b for a, b in zip("bcdfghjklmnprstvwxyz", "aeiouaioueioaeioaeou", strict=True)]
_TEXT = (
    "please check the failing build and report back when the service answers, then update the notes and "
    "compare both versions before the release goes out to the testers on the second server"
)
_SHARED = _TEXT.split()
_VERBS = ("measured", "replaced", "counted", "shifted", "blocked", "patched", "sorted", "loaded")


def _coined(random: Random, syllables: int = 3) -> str:
    return "".join(random.choice(_SYLLABLES) for _ in range(syllables))


def _prose(random: Random, words: int) -> str:
    return " ".join(random.choice(_SHARED) for _ in range(words))


def session(seed: int) -> MemoryLog:
    """A session whose turns share most of their words; each has a few names and numbers of its own."""
    random = Random(seed)
    log = memory_log(f"s{seed}")
    scribe = Scribe(log)
    for number in range(TURNS):
        run = f"00000000-0000-4000-8000-{number:012}"
        folder, name = _coined(random), f"{_coined(random)}_{_coined(random, 2)}"
        path = f"src/{folder}/{name}.py"
        scribe.user(f"{_prose(random, 12)}?", run=run)
        call = f"c{number}"
        scribe.step(Call(call, "read", json.dumps({"path": path})), run=run)
        scribe.result(call, f"{_prose(random, 200)}\n", run=run)
        thing = f"{_coined(random, 4)}s"
        scribe.answers(
            f"{_prose(random, 10)}. I {random.choice(_VERBS)} {random.randrange(10_000, 99_999)} of the {thing}. "
            f"{_prose(random, 6)}.",
            run=run,
        )
    return log


@pytest.mark.parametrize("seed", range(4))
def test_the_right_old_turn_is_among_the_first_three(seed: int) -> None:
    tally = Tally()
    tally.ask(asked_of(session(seed)))
    assert tally.asked["exact"] >= TURNS
    assert tally.asked["spoken"] >= TURNS / 2
    for kind, count in tally.asked.items():
        assert tally.found[kind] >= TARGET * count, (kind, tally.found[kind], count)
