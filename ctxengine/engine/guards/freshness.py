"""Stale data: a current value is asked for, and nothing in the run looked at the world (capacity spec 7)."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxengine.engine.guards.judgement import Guard, Judgement

_ADMITS = re.compile(
    r"(?i)\b(?:no|without|not have|don'?t have|lack|"
    r"(?:cannot|can'?t|could(?: not|n'?t)|unable to) (?:access|retrieve|get|look up|find))\b[^.!?\n]{0,60}"
    r"\b(?:live|current|real[- ]time|up[- ]to[- ]date|latest)\b"
    r"|\b(?:keine|ohne)\b[^.!?\n]{0,40}\b(?:aktuellen?|live|echtzeit)"
    r"|\b(?:pas (?:de|d')|sans)\b[^.!?\n]{0,40}\b(?:en direct|temps réel|actuelles?|à jour)"
    r"|\b(?:no tengo|sin)\b[^.!?\n]{0,40}\b(?:en vivo|tiempo real|actual(?:es|izad[oa]s?)?)"
    r"|(?:没有|無|无)[^。！？\n]{0,20}(?:实时|最新|当前)|(?:最新|リアルタイム|現在)[^。！？\n]{0,20}(?:ありません|取得できません)"
)


class FreshnessEvidence(NamedTuple):
    """What the verdict rests on."""

    live: bool
    """Whether the directive asks for a value as it stands now."""
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
    if admits_no_live_data(evidence.text):
        return Judgement(Guard.FRESHNESS, "accepted", 0, figures)
    if evidence.strikes and may_close:
        return Judgement(Guard.FRESHNESS, "closed", evidence.strikes + 1, figures)
    return Judgement(Guard.FRESHNESS, "repair", max(1, evidence.strikes), figures)


def admits_no_live_data(text: str) -> bool:
    """Whether an answer says plainly that it has no current data."""
    return _ADMITS.search(text) is not None
