"""Facts that a session offers to memory formation when it ends: candidates, never beliefs (spec, Established facts)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctxengine.engine.working_state.state import Fact

AUTHORITY = "AFFIRMED"
"""Above what an extractor infers, below what a user states."""

CANDIDATE_CEILING = 20
"""Most facts one session offers."""


class Offer(NamedTuple):
    """What is offered and how many facts were not eligible."""

    facts: tuple[Fact, ...]
    withheld: int


def eligible_facts(
    facts: Sequence[Fact],
    is_own_user_message: Callable[[int], bool],
    ceiling: int = CANDIDATE_CEILING,
) -> Offer:
    """Facts whose every source is a message of the owning user; the newest ones, up to the ceiling.

    A fact without sources and a claim of somebody else are never offered.
    """
    good = [
        fact
        for fact in facts
        if not fact.is_claim
        and fact.source_event_ids
        and all(is_own_user_message(sequence) for sequence in fact.source_event_ids)
    ]
    kept = tuple(good[-ceiling:])
    return Offer(kept, len(facts) - len(kept))
