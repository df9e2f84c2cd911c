"""Runs of letters and digits are weighed by their shape as they would be one by one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.tokens.classes import profile

RUN = re.compile(r"[A-Za-z0-9]+")
pieces = st.sampled_from(
    ["word", "42", "a1", "1a", "deadBEEF0099", "q" * 20, "q" * 21, "Z" * 40, "9" * 30, " ", "\t", "\n",
     "\v", "{", '"', "é", "中", "\x00", "-", "_"]
)  # fmt: skip


def dense_mass(text: str) -> tuple[int, int, int]:
    """Mass of dense runs, letters and digits beside them, run after run."""
    dense = letters = digits = 0
    for run in RUN.findall(text.encode("ascii", "ignore").decode()):
        of_letters = sum(character.isalpha() for character in run)
        of_digits = len(run) - of_letters
        if of_letters and of_digits:
            dense += 100 * len(run)
        elif of_letters > 20:
            dense += max(36 * len(run), 100 * len(run) - 1344)
        else:
            letters, digits = letters + of_letters, digits + of_digits
    return dense, letters, digits


@given(st.one_of(st.text(), st.lists(pieces).map("".join)))
def test_a_profile_weighs_every_run(text: str) -> None:
    found = profile(text)
    dense, letters, digits = dense_mass(text)
    assert (found.dense, found.words, found.digits) == (dense, 36 * letters, 90 * digits)
