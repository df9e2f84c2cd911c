"""Figures made of sums: each ratio keeps its numerator and denominator, and what is unknown stays unknown (ui 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ctxengine.engine.events import EventType
from ctxengine.ledger.queries.metrics import Cell
from ctxengine.ledger.queries.metrics_events import EventCell
from ctxengine.ledger.queries.metrics_outcomes import Rate

_MILLION = 1_000_000
DEEP = 2
"""Depth from which a compaction counts as deep: a summary of summaries."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A part of a whole."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """The quotient; None where there is nothing to divide by."""
        return self.part / self.whole if self.whole else None

    def as_json(self, per: int = 1) -> dict[str, Any]:
        """Numerator, denominator and what they give, `per` so many of the whole."""
        value = self.value
        return {
            "numerator": self.part,
            "denominator": self.whole,
            "value": None if value is None else round(value * per, 6),
        }


def usd(microdollars: Decimal | int | None) -> str | None:
    """An amount as decimal text in US dollars; None where it is not known."""
    return None if microdollars is None else f"{Decimal(microdollars) / _MILLION:.6f}"


@dataclass(slots=True)
class Cost:
    """Microdollars by bucket, of requests whose model has a known price."""

    fresh: Decimal = Decimal(0)
    read: Decimal = Decimal(0)
    write: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    without_cache: Decimal = Decimal(0)
    """What the same input would have cost with no cache at all."""
    priced: int = 0
    unpriced: int = 0
    """Reported requests whose model has no known price; their cost is unknown, not nought."""

    @property
    def known(self) -> bool:
        """Whether any request has a price."""
        return self.priced > 0

    @property
    def prompt(self) -> Decimal:
        """All input."""
        return self.fresh + self.read + self.write

    @property
    def total(self) -> Decimal | None:
        """Input and output; None where no price is known."""
        return self.prompt + self.output if self.known else None

    @property
    def saved(self) -> Decimal | None:
        """What the cache saved; negative where writing cost more than reading gave back."""
        return self.without_cache - self.prompt if self.known else None

    def amount(self, bucket: str) -> Decimal | None:
        """Microdollars of `fresh`, `read`, `write` or `output`; None where no price is known."""
        amount: Decimal = getattr(self, bucket)
        return amount if self.known else None

    def add(self, cell: Cell, rate: Rate | None) -> None:
        """Count a cell's reported requests."""
        if rate is None:
            self.unpriced += cell.reported
            return
        self.priced += cell.reported
        # What a provider's own iterations read and wrote beside the prompt is charged as fresh input and output.
        self.fresh += (cell.fresh + cell.extra_input) * rate.fresh
        self.read += cell.read * rate.read
        self.write += cell.write_short * rate.write_short + cell.write_long * rate.write_long
        self.output += (cell.output + cell.extra_output) * rate.output
        prompt = cell.fresh + cell.read + cell.write_short + cell.write_long
        self.without_cache += (prompt + cell.extra_input) * rate.fresh

    def as_json(self) -> dict[str, Any]:
        """US dollars by bucket; null where no price is known."""
        buckets = {name: usd(self.amount(name)) for name in ("fresh", "read", "write", "output")}
        return {
            "usd": usd(self.total),
            **buckets,
            "without_cache": usd(self.without_cache) if self.known else None,
            "saved": usd(self.saved),
            "priced_requests": self.priced,
            "unpriced_requests": self.unpriced,
        }


@dataclass(slots=True)
class Figures:
    """Everything that adds up, over some requests and the events of their sessions."""

    requests: int = 0
    answered: int = 0
    failed: int = 0
    reported: int = 0
    cache_reported: int = 0
    """Of these, requests whose provider said what it read from its cache."""
    cache_prompt: int = 0
    """Prompts of these."""
    unusable: int = 0
    """Requests whose reported figures cannot be right; nothing else counts them as reported."""
    fresh: int = 0
    read: int = 0
    write: int = 0
    output: int = 0
    extra_input: int = 0
    """Input billed beside the prompts, read by server-side iterations such as a provider's own compaction."""
    extra_output: int = 0
    """Output of the same iterations."""
    follows: int = 0
    follows_read: int = 0
    preceding: int = 0
    prefix_read: int = 0
    prefix: int = 0
    estimated: int = 0
    sessions: int = 0
    rotations: int = 0
    recached: int = 0
    """Tokens that rotations wrote anew."""
    turns: int = 0
    compactions: int = 0
    deep: int = 0
    compacted_tokens: int = 0
    compactions_undone: int = 0
    compactions_refused: int = 0
    pressure: int = 0
    exceeded: int = 0
    cost: Cost = field(default_factory=Cost)

    @property
    def unreported(self) -> int:
        """Requests whose provider said nothing of what it billed."""
        return self.requests - self.reported - self.unusable

    @property
    def cache_unreported(self) -> int:
        """Requests with usage that says nothing of the cache: part of no ratio of it, their prompts stand under `fresh`."""
        return self.reported - self.cache_reported

    @property
    def waiting(self) -> int:
        """Requests built and neither answered nor failed so far."""
        return self.requests - self.answered - self.failed

    @property
    def prompt(self) -> int:
        """All tokens of the prompts that were sent."""
        return self.fresh + self.read + self.write

    @property
    def billed_input(self) -> int:
        """All input that was charged: the prompts, and what was read beside them."""
        return self.prompt + self.extra_input

    @property
    def billed_output(self) -> int:
        """All output that was charged."""
        return self.output + self.extra_output

    @property
    def cached_of_preceding(self) -> Ratio:
        """Cached input against the preceding call's whole input."""
        return Ratio(self.follows_read, self.preceding)

    @property
    def cached_prefix(self) -> Ratio:
        """Prefix tokens served from the cache after the first request of a session."""
        return Ratio(self.prefix_read, self.prefix)

    @property
    def cached_share(self) -> Ratio:
        """Cached tokens of all tokens of the prompts whose cache reads were reported."""
        return Ratio(self.read, self.cache_prompt)

    @property
    def epochs_per_session(self) -> Ratio:
        """Each session has one epoch, and one more for each rotation."""
        return Ratio(self.sessions + self.rotations if self.sessions else 0, self.sessions)

    @property
    def compactions_per_turn(self) -> Ratio:
        """Shown per 1,000 turns."""
        return Ratio(self.compactions, self.turns)

    @property
    def deep_share(self) -> Ratio:
        """Compactions that summarise summaries, of all compactions."""
        return Ratio(self.deep, self.compactions)

    @property
    def pressure_share(self) -> Ratio:
        """Requests before which something yielded, of all requests. Steps that did not fit are `exceeded` instead."""
        return Ratio(self.pressure, self.requests)

    @property
    def failed_share(self) -> Ratio:
        """Failed requests, of all requests."""
        return Ratio(self.failed, self.requests)

    @property
    def estimator_error(self) -> Ratio:
        """How far our counts of the prompts were off, of what was billed for them (spec, Tracked metrics).

        Negative when they were too low; by more than the safety margin, requests may be too long.
        """
        return Ratio(self.estimated - self.prompt, self.prompt)

    def add_cell(self, cell: Cell, rate: Rate | None) -> None:
        """Count a cell of requests."""
        for name in _FROM_CELL:
            setattr(self, name, getattr(self, name) + getattr(cell, name))
        self.write += cell.write_short + cell.write_long
        self.cost.add(cell, rate)

    def add_event(self, cell: EventCell) -> None:
        """Count a cell of events."""
        name = _FROM_EVENT[EventType(cell.type)]
        setattr(self, name, getattr(self, name) + cell.events)
        if cell.type == EventType.COMPACTED:
            self.compacted_tokens += cell.tokens
            if cell.detail.isdigit() and int(cell.detail) >= DEEP:
                self.deep += cell.events
        if cell.type == EventType.EPOCH_ROTATED:
            self.recached += cell.tokens

    def as_json(self) -> dict[str, Any]:
        """Plain data, each ratio with its parts."""
        return {
            "requests": {
                "total": self.requests,
                "answered": self.answered,
                "failed": self.failed,
                "waiting": self.waiting,
                "reported": self.reported,
                "unreported": self.unreported,
                "unusable": self.unusable,
                "cache_unreported": self.cache_unreported,
            },
            "tokens": {
                "fresh": self.fresh,
                "read": self.read,
                "write": self.write,
                "prompt": self.prompt,
                "output": self.output,
                "extra_input": self.extra_input,
                "extra_output": self.extra_output,
                "billed_input": self.billed_input,
                "billed_output": self.billed_output,
            },
            "cached_of_preceding": self.cached_of_preceding.as_json(),
            "cached_prefix": self.cached_prefix.as_json(),
            "cached_share": self.cached_share.as_json(),
            "estimator_error": self.estimator_error.as_json(),
            "epochs_per_session": self.epochs_per_session.as_json(),
            "rotations": {"count": self.rotations, "recached_tokens": self.recached},
            "turns": self.turns,
            "compactions_per_1000_turns": self.compactions_per_turn.as_json(1000),
            "deep_compactions": self.deep_share.as_json(),
            "compactions": {
                "tokens_given_up": self.compacted_tokens,
                "undone": self.compactions_undone,
                "refused": self.compactions_refused,
            },
            "pressure": self.pressure_share.as_json(),
            "exceeded": self.exceeded,
            "cost": self.cost.as_json(),
        }


_FROM_CELL = (
    "requests",
    "answered",
    "failed",
    "reported",
    "cache_reported",
    "cache_prompt",
    "unusable",
    "fresh",
    "read",
    "output",
    "extra_input",
    "extra_output",
    "follows",
    "follows_read",
    "preceding",
    "prefix_read",
    "prefix",
    "estimated",
)
_FROM_EVENT = {
    EventType.EPOCH_ROTATED: "rotations",
    EventType.USER_MESSAGE: "turns",
    EventType.COMPACTED: "compactions",
    EventType.COMPACTION_UNDONE: "compactions_undone",
    EventType.COMPACTION_REFUSED: "compactions_refused",
    EventType.BUDGET_PRESSURE: "pressure",
    EventType.BUDGET_EXCEEDED: "exceeded",
}
