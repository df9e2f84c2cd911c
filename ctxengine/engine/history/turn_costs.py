"""What closed turns cost in each form they may stand in (capacity spec 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, overload


class TurnCost(NamedTuple):
    """What one closed turn costs in each form (tokens, raw count), and where it stands."""

    number: int
    first: int
    last: int
    full: int
    card: int
    open: int = 0
    """What it took while it was the open turn."""


class StandingCosts(Sequence[TurnCost]):
    """Turns, some of which take another number of tokens than their closed records."""

    def __init__(self, turns: Sequence[TurnCost], sent: Mapping[int, int]) -> None:
        """Take `sent` (tokens by number) for those turns, of which there is one at least."""
        self._turns = turns
        self._sent = sent

    def __len__(self) -> int:
        """How many turns there are."""
        return len(self._turns)

    @overload
    def __getitem__(self, place: int) -> TurnCost: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[TurnCost]: ...
    def __getitem__(self, place: int | slice) -> TurnCost | Sequence[TurnCost]:
        """One turn's, or those of several."""
        if isinstance(place, int):
            return self._one(self._turns[place])
        found = self._turns[place]
        # Only the newest stand as sent.
        if not found or found[-1].number < min(self._sent):
            return found
        return [self._one(turn) for turn in found]

    def _one(self, turn: TurnCost) -> TurnCost:
        tokens = self._sent.get(turn.number)
        return turn if tokens is None else turn._replace(full=tokens)
