"""What happens when history is cut: the summaries before are merged once, and what the cut drops is summarised (design 6).

One pass, one range: the summary covers exactly the units between the old cut and the new one, so that the ranges tile the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.engine.compaction.packet import (
    FRAME_TOKENS,
    CompactionResult,
    Packet,
    packet_of,
)
from ctxengine.engine.compaction.soundness import Refusal
from ctxengine.engine.compaction.summarise import (
    Range,
    Surroundings,
    merge,
    read_source,
    summarise,
)
from ctxengine.engine.ports import Summariser, TokenCounter, UnitSource

UNMERGED = 2
"""So many summaries of depth 1 may stand side by side; the next pass merges them first."""

_LEAST_SUMMARY_TOKENS = 80


class Wanted(NamedTuple):
    """A summary that is to be made elsewhere, before the request can be built."""

    range: Range
    body_tokens: int
    verdict: NetCost | None


class Outcome(NamedTuple):
    """What one pass made of the summaries."""

    made: tuple[CompactionResult, ...] = ()
    """To be installed, in this order: a merge before the summary that made it necessary."""
    packets: tuple[Packet, ...] = ()
    """What stands in row 9 afterwards; new ones have no event yet."""
    refused: Refusal | None = None
    """Why the range has no summary."""
    wanted: Wanted | None = None
    """The summary that has to be made first, where a pass only says which one it needs."""


@dataclass(frozen=True, slots=True)
class Compactor:
    """Makes summaries for one session as it stands."""

    units: UnitSource
    summariser: Summariser
    counter: TokenCounter
    policy: BudgetPolicy
    surroundings: Surroundings
    excluded: frozenset[str] = frozenset()
    """Item ids that an operator left out."""
    defer: bool = False
    """Make nothing: say which summary is wanted. For passes that must not wait for a model."""
    retell: bool = False
    """Let the summariser tell merged summaries as one; else their sections are written down."""

    def allowance(self, body_tokens: int) -> int:
        """Tokens one summary may take of a body of this size; 0 where too few are left for one."""
        allowed = min(self.policy.summary_tokens, max(0, body_tokens) // 8)
        return allowed if allowed >= FRAME_TOKENS + _LEAST_SUMMARY_TOKENS else 0

    def limit(self, body_tokens: int) -> int:
        """Tokens all summaries together may take."""
        return int(max(0, body_tokens) * self.policy.summary_share)

    def compact(
        self,
        wanted: Range,
        packets: Sequence[Packet],
        results: Mapping[int, CompactionResult],
        body_tokens: int,
        verdict: NetCost | None = None,
    ) -> Outcome:
        """Summarise a range beside the packets that stand already.

        Args:
            packets: summaries in force, oldest first.
            results: what the events of these packets hold.
            body_tokens: size of the request's body, which bounds the summaries.
            verdict: outcome of the net-cost test, for the event.
        """
        allowance = self.allowance(body_tokens)
        if not allowance:
            return Outcome((), tuple(packets), Refusal.NO_PROGRESS)
        made: list[CompactionResult] = []
        standing = list(packets)
        fresh = [packet for packet in standing if packet.depth == 1]
        if self.defer:
            full = sum(packet.tokens for packet in standing) + allowance > self.limit(body_tokens)
            if full and len(fresh) < UNMERGED:
                return Outcome((), tuple(packets), Refusal.DEPTH_EXCEEDED)
            return Outcome((), tuple(packets), wanted=Wanted(wanted, body_tokens, verdict))
        if len(fresh) >= UNMERGED:
            joined = self.merge(fresh, results, body_tokens)
            if isinstance(joined, CompactionResult):
                made.append(joined)
                standing = [p for p in standing if p.depth > 1] + [packet_of(joined)]
        if sum(packet.tokens for packet in standing) + allowance > self.limit(body_tokens):
            return Outcome(tuple(made), _ordered(standing), Refusal.DEPTH_EXCEEDED)
        source = read_source(self.units, wanted, self.surroundings, excluded=self.excluded)
        result = summarise(
            source,
            self.surroundings,
            summariser=self.summariser,
            counter=self.counter,
            budget_tokens=allowance,
        )
        if isinstance(result, Refusal):
            return Outcome(tuple(made), _ordered(standing), result)
        result = result.model_copy(update={"verdict": verdict})
        return Outcome((*made, result), _ordered([*standing, packet_of(result)]))

    def merge(
        self,
        packets: Sequence[Packet],
        results: Mapping[int, CompactionResult],
        body_tokens: int,
    ) -> CompactionResult | Refusal:
        """Merge neighbouring summaries of depth 1 into one of depth 2.

        What is not next to each other, or was erased, stays as it is. Where a model cannot tell them as one, their sections are
        written down: that needs no model.
        """
        known = [packet for packet in packets if packet.sequence in results]
        if len(known) < len(packets) or not _adjacent(packets):
            return Refusal.NOTHING_TO_COMPACT
        parts = [(packet.sequence, results[packet.sequence]) for packet in packets]
        if self.retell:
            told = self._merged(parts, body_tokens, self.summariser)
            if isinstance(told, CompactionResult):
                return told
        return self._merged(parts, body_tokens, None)

    def _merged(
        self,
        parts: Sequence[tuple[int, CompactionResult]],
        body_tokens: int,
        summariser: Summariser | None,
    ) -> CompactionResult | Refusal:
        return merge(
            parts,
            self.surroundings,
            counter=self.counter,
            budget_tokens=self.allowance(body_tokens),
            summariser=summariser,
        )


def _adjacent(packets: Sequence[Packet]) -> bool:
    return all(before.through + 1 >= after.first for before, after in pairwise(packets))


def _ordered(packets: Sequence[Packet]) -> tuple[Packet, ...]:
    return tuple(sorted(packets, key=lambda packet: packet.first))
