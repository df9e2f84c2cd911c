"""What compacting by hand came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.ledger.models import Job


@dataclass(frozen=True, slots=True)
class Compacted:
    """Answer of compact: `compacted`, `merged`, `unchanged`, `skipped`, `previewed` or `queued`."""

    outcome: str
    event: int | None = None
    """The event that installed the summary; for `unchanged`, the one that stands."""
    tokens_before: int = 0
    tokens_after: int | None = 0
    """None where only the provider's answer will tell."""
    replaced_through: int = 0
    depth: int = 0
    verdict: NetCost | None = None
    reason: str = ""
    """Why it was skipped."""
    reasoning_dropped: int = 0
    """Blocks of the open run's reasoning that it makes invalid (design 7.12)."""
    tokens_read: int | None = None
    """What a model would read for it, where that is not all of `tokens_before`."""
    job: Job | None = None
    """For `queued`: what makes the summary."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "outcome": self.outcome,
            "event": self.event,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "replaced_through": self.replaced_through,
            "depth": self.depth,
            "verdict": self.verdict.model_dump() if self.verdict else None,
            "reason": self.reason,
            "reasoning_dropped": self.reasoning_dropped,
        }
