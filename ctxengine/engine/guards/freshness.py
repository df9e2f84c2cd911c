"""Stale data: a current value is asked for, and nothing in the run looked at the world (capacity spec 7)."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxengine.engine.guards.admission_words import ADMISSION
from ctxengine.engine.guards.judgement import Guard, Judgement

_SENTENCES = re.compile(r"(?<=[.!?])\s+|[。！？\n]")
_NUMBER = re.compile(r"\d+(?:[.,'\u00a0\u202f]\d+)*")


class FreshnessEvidence(NamedTuple):
    """What the verdict rests on."""

    live: bool
    """Whether the answer would be out of date unless somebody looked in this run."""
    observable: bool
    """Whether the plan has any tool that could look it up."""
    observations: int
    """Successful calls of the run whose tools observe the world."""
    attempts: int
    """Such calls that failed."""
    strikes: int
    """Earlier offences of the run."""
    text: str = ""
    """What would stand as the answer; empty for a card."""
    asked: str = ""
    """The user's words: a number of theirs is none that the answer states."""


def judge_freshness(evidence: FreshnessEvidence, *, may_close: bool = True) -> Judgement | None:
    """One repair, then the turn closes without a value; None where the guard has nothing to say.

    Args:
        may_close: whether the turn may end here; not while other calls of the response wait for their results.
    """
    if not evidence.live or not evidence.observable:
        return None
    figures: dict[str, int | str | bool] = {
        "observations": evidence.observations,
        "attempts": evidence.attempts,
    }
    if evidence.observations:
        return Judgement(Guard.FRESHNESS, "passed", 0, figures)
    if admits_no_live_data(evidence.text, asked=evidence.asked):
        return Judgement(Guard.FRESHNESS, "accepted", 0, figures)
    if evidence.strikes and may_close:
        return Judgement(Guard.FRESHNESS, "closed", evidence.strikes + 1, figures)
    return Judgement(Guard.FRESHNESS, "repair", max(1, evidence.strikes), figures)


def admits_no_live_data(text: str, *, asked: str = "") -> bool:
    """Whether a sentence of an answer says plainly what current data it lacks, and gives no figure all the same.

    Args:
        asked: the user's words, whose numbers may be repeated ("no live data for the S&P 500").
    """
    known = set(_NUMBER.findall(asked))
    for sentence in _SENTENCES.split(text.replace("\u2019", "'")):
        plain = " ".join(sentence.split())
        if ADMISSION.search(plain) and not set(_NUMBER.findall(plain)) - known:
            return True
    return False
