"""The manifest: what a built request holds and why, span by span (design 4 and 6).

It is the only source of every explanation in REST and on pages. Its size follows the number of decisions, not the age of the
session: neighbours with the same row, form and reason are one span, and what was left out is one span per reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Form(StrEnum):
    """In which form content stands in a request."""

    WHOLE = "whole"
    EXCERPT = "excerpt"
    WINDOW = "window"
    DIGEST = "digest"
    CARD = "card"
    PACKET = "packet"
    POINTER = "pointer"
    OUT = "out"
    EMPTY = "empty"
    """The row rendered no bytes."""


class Reason(StrEnum):
    """Why a span has the form it has."""

    PINNED = "pinned"
    """Region A: part of the epoch's plan."""
    NOTHING_PINNED = "nothing_pinned"
    """Region A row without content in this plan."""
    NOTHING_THIS_STEP = "nothing_this_step"
    """Region B row without content in this step."""
    FITS = "fits"
    """Within the largest suffix that fits."""
    ACTIVE_RUN = "active_run"
    """Part of the open run: never cut."""
    SENT_EARLIER = "sent_earlier"
    """It stays as it was sent: fresh rows of earlier steps, and in a large working set whole turns."""
    NEVER_YIELDS = "never_yields"
    BELOW_CUT = "below_cut"
    """Before the history cut."""
    BELOW_POINTER_FLOOR = "below_pointer_floor"
    """A tool result older than the pointer floor."""
    ACTIVE_TOO_LARGE = "active_too_large"
    """A result of the open run shortened because the run alone does not fit."""
    OMISSION = "omission"
    """Says what the cut left out."""
    OVER_CAP = "over_cap"
    """Dropped or trimmed by its class cap."""
    YIELDED = "yielded"
    """Gave up its tokens under pressure."""
    SUMMARISED = "summarised"
    """Covered by a summary, or that summary itself."""
    PINNED_BY_HAND = "pinned_by_hand"
    """An operator wants it whole."""
    FOLDED_BY_HAND = "folded_by_hand"
    """An operator wants it short."""
    CLOSED_TURN = "closed_turn"
    """A closed turn within the working set: whole, its results as digests."""
    PROMOTED = "promoted"
    """Brought back whole behind history, because the directive is about it or an operator wants it."""
    AS_CARD = "as_card"
    """The turn's card stands for it."""
    IN_PACKET = "in_packet"
    """Covered by the packet, or the packet itself."""
    BEHIND_RESET = "behind_reset"
    """Before a reset with handoff; reached by recall alone."""
    AFTER_BOUNDARY = "after_boundary"
    """After the checkpoint's boundary: whole."""
    IN_NATIVE_WINDOW = "in_native_window"
    """Covered by the provider's own compaction, or that block itself."""
    IN_NOTE = "in_note"
    """Covered by the portable note, or that note itself."""
    RECOVERED = "recovered"
    """Selected from the archive for this working view."""
    LEFT_IN_ARCHIVE = "left_in_archive"
    """Stays in the archive: neither shown nor summarised in this working view."""
    RETAINED = "retained"
    """Marked to be retained: objective, reminder, hook context or active operation."""
    EXCLUDED_BY_HAND = "excluded_by_hand"
    """An operator left it out; a notice stands in its place."""


class Span(BaseModel):
    """A run of neighbouring content with one fate."""

    model_config = ConfigDict(frozen=True)

    row: int
    """Row number, 1 to 15."""
    from_item: str | None = None
    """First item id (`sequence.ordinal`), None for content that is not of the ledger."""
    to_item: str | None = None
    form: Form
    reason: Reason
    items: int
    units: int = 0
    tokens: int
    """Tokens in this form; for `out`, what the content would have cost."""
    trust: dict[str, int] = Field(default_factory=dict)
    """Tokens by trust level."""
    numbers: dict[str, int] = Field(default_factory=dict)
    """The figures the reason rests on, e.g. {"room": 76944, "suffix": 75100}."""


class RowTotal(BaseModel):
    """One of the fifteen rows as it stands in the request. All fifteen are listed, empty ones too."""

    model_config = ConfigDict(frozen=True)

    row: int
    tokens: int
    items: int
    cap_tokens: int | None = None
    source: str
    """`measured`, `counted` or `estimated`."""
    trust: dict[str, int] = Field(default_factory=dict)
    reason: Reason


class YieldStep(BaseModel):
    """One step of the yield ladder; all four are always listed."""

    model_config = ConfigDict(frozen=True)

    budget_class: str
    outcome: str
    """`ran`, `not_needed` or `nothing_to_give`."""
    tokens_before: int
    tokens_after: int
    items: int
    event_sequence: int | None = None


class Budget(BaseModel):
    """The arithmetic of design 6, all figures in tokens."""

    model_config = ConfigDict(frozen=True)

    window: int
    policy_cap: int | None
    total: int
    """min(window, policy_cap), in billed tokens; the calibration factor divides what is usable of it."""
    factor: float
    reserve: int
    margin: int
    usable: int
    prefix: int
    body: int
    never_yield: int
    fresh: int
    history_room: int
    history: int
    tool_results: int
    tool_results_cap: int
    free: int
    request: int
    """Prefix plus everything in the body."""


class Cut(BaseModel):
    """Where history starts and why."""

    model_config = ConfigDict(frozen=True)

    at_sequence: int
    """First retained unit; equals the run's seed when no history is retained."""
    floor_sequence: int
    """Cut floor in force (0: none)."""
    pointer_floor_sequence: int
    room: int
    suffix: int
    """Tokens of the retained suffix."""
    uncut: int
    """Tokens of all history above the summary floor, in normal form."""
    left_out_units: int
    left_out_turns: int
    left_out_tokens: int


class Manifest(BaseModel):
    """Everything a request page shows, decided at build time."""

    model_config = ConfigDict(frozen=True)

    version: int = 1
    rows: list[RowTotal]
    spans: list[Span]
    cut: Cut
    yields: list[YieldStep]
    warnings: list[str] = Field(default_factory=list)
    expired_at: str | None = None
    """When its spans passed the tenant's keeping time and were taken away; None while they are there."""

    def as_json(self) -> dict[str, Any]:
        """Plain data for jsonb and REST."""
        return self.model_dump(mode="json", exclude=None if self.expired_at else {"expired_at"})
