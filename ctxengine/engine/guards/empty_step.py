"""Empty steps: a completion with neither text nor a call is no answer (capacity spec 6)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.guards.judgement import Guard, Judgement


class StepEvidence(NamedTuple):
    """What is known of the response and its run."""

    has_text: bool
    has_calls: bool
    cards_shown: int
    """Cards of the run: after one, a silent step is a complete answer."""
    strikes: int
    """Redos already asked for in the run."""


def judge_step(evidence: StepEvidence) -> Judgement | None:
    """One redo for an empty step; None where the guard has nothing to say."""
    if evidence.has_text or evidence.has_calls:
        return None
    found: dict[str, int | str | bool] = {"cards_shown": evidence.cards_shown}
    if evidence.cards_shown:
        return Judgement(Guard.EMPTY_STEP, "accepted", 0, found)
    if evidence.strikes:
        return Judgement(Guard.EMPTY_STEP, "passed", 0, found | {"redone": evidence.strikes})
    return Judgement(Guard.EMPTY_STEP, "repair", 1, found)
