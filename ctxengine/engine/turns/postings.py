"""The index over closed turns, in memory; the ledger's passes the same tests (capacity spec 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class TurnTerms(NamedTuple):
    """What one closed turn is found by."""

    number: int
    counts: Mapping[str, int]
    """How often it holds each term."""
    embedding: bytes = b""
    """Packed vector of its card; empty where no embedder was asked."""
    embedder: str = ""
    """Version of the embedder that made it."""

    @property
    def length(self) -> int:
        """Terms it holds, counted as often as they occur."""
        return sum(self.counts.values())


class MemoryPostings:
    """Implements `relevance.Postings`."""

    def __init__(self, turns: Iterable[TurnTerms] = ()) -> None:
        """Index these turns."""
        self._lengths: dict[int, int] = {}
        self._held: dict[str, dict[int, int]] = {}
        for turn in turns:
            self.add(turn)

    def add(self, turn: TurnTerms) -> None:
        """Index one more turn; one that is known already stays as it is."""
        if turn.number in self._lengths:
            return
        self._lengths[turn.number] = turn.length
        for term, count in turn.counts.items():
            self._held.setdefault(term, {})[turn.number] = count

    @property
    def turns(self) -> int:
        """Closed turns indexed."""
        return len(self._lengths)

    @property
    def mean_length(self) -> float:
        """Terms of an average turn."""
        return sum(self._lengths.values()) / len(self._lengths) if self._lengths else 0.0

    def holding(self, terms: Sequence[str]) -> Mapping[str, Mapping[int, int]]:
        """For each known term: turn number to how often that turn holds it."""
        return {term: self._held[term] for term in terms if term in self._held}

    def lengths(self, turns: Sequence[int]) -> Mapping[int, int]:
        """Terms of each of these turns."""
        return {turn: self._lengths[turn] for turn in turns if turn in self._lengths}
