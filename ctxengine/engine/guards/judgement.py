"""What a guard says, and the words the platform says for it (capacity spec 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

Verdict = Literal["passed", "accepted", "withheld", "repair", "closed"]
"""`accepted`: an explicit admission; `withheld`: a card is not shown, and nothing can be said of it while calls of its response
wait or the user has said more; `repair`: one more try; `closed`: the turn ends with the platform's own statement."""


class Guard(StrEnum):
    """The guards, by the tag that opens what they say."""

    EMPTY_STEP = "empty-step"
    FRESHNESS = "freshness-check"
    TOPIC = "topic-mismatch"
    STEERING = "steering-drift"
    REPEATS = "repeated-card"


MEANINGS: Mapping[Guard, str] = {
    Guard.EMPTY_STEP: "The response held neither text nor a call.",
    Guard.FRESHNESS: "A current value was asked for and nothing was looked up in the run.",
    Guard.TOPIC: "A card shares no word with the directive and with what the run retrieved.",
    Guard.STEERING: "The answer repeats that of an earlier turn word for word.",
    Guard.REPEATS: "Every card of several batches in a row was shown before.",
}
"""For people."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One guard's verdict on one response, with the figures it rests on and never any text."""

    guard: Guard
    verdict: Verdict
    strike: int = 0
    """Which offence of the run this is, from 1; 0 where it passed."""
    evidence: Mapping[str, int | str | bool] = field(default_factory=dict)

    @property
    def speaks(self) -> bool:
        """Whether something must be said to the model or the user."""
        return self.verdict in {"repair", "closed"}

    @property
    def stops(self) -> bool:
        """Whether what was judged may not be shown."""
        return self.speaks or self.verdict == "withheld"

    def unspoken(self) -> Judgement:
        """The same where nothing can be said: whoever was not told has had no try, so it is no strike."""
        return replace(self, verdict="withheld", strike=0) if self.speaks else self


_NUDGES: Mapping[Guard, str] = {
    Guard.EMPTY_STEP: "[empty-step] The last response held neither text nor a tool call, so nothing was carried out. Make the "
    "call you were planning, or give the answer.",
    Guard.FRESHNESS: "[freshness-check] The user wants a value as it stands now, and nothing in this turn has looked it up. "
    "Look it up with a tool first and answer from its result, or say plainly that no live data is available. Do not give a "
    "figure from earlier in the conversation as current.",
    Guard.TOPIC: "[topic-mismatch] The card was not shown: none of its words occur in what the user asks or in what this turn "
    "retrieved. Make it from this turn's results.",
    Guard.STEERING: "[steering-drift] That is word for word the answer to an earlier, different message. Answer the user's "
    "latest message, the one that opened this turn.",
}
_STATEMENTS: Mapping[Guard, str] = {
    Guard.FRESHNESS: "[freshness-check] No current value was retrieved in this turn, so none is given.",
    Guard.TOPIC: "[topic-mismatch] The card that was made does not fit what was asked or found, so it was not shown.",
    Guard.STEERING: "[steering-drift] The answers of this turn only repeated an earlier one, so the turn was ended without an "
    "answer.",
}


def nudge_of(guard: Guard, *, turn: int | None = None) -> str:
    """What the model is told, so that it repairs its answer.

    Args:
        turn: number of the open turn. The steering nudge names it; the message itself is never said again.
    """
    said = _NUDGES[guard]
    if guard is Guard.STEERING and turn is not None:
        return f"{said.removesuffix('.')}, turn {turn}."
    return said


def statement_of(guard: Guard) -> str:
    """What ends a turn in place of an answer."""
    return _STATEMENTS[guard]
