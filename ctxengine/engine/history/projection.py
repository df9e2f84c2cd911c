"""What an engine other than `suffix` shows of everything before the open run (design 6).

`suffix` finds its cut by allocation. `working_set` and `boundary` decide beforehand and record the decision as an event; a
projection is that decision applied to the log, and the allocation then deals with the open run and the fresh rows alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

from ctxengine.engine.compaction.marks import PROMOTED_TEXT
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit
from ctxengine.engine.manifest import Form, Reason, Span

ShownForm = Literal["digest", "whole"]
"""How carried units are shown: closed turns hold digests of their results, or everything is whole."""

HISTORY_FORMS: Mapping[str, ShownForm] = {"working_set": "digest", "boundary": "whole"}
"""The one form in which each of these engines shows carried units."""


PROMOTED_TURNS_TEXT = (
    "[earlier turns] Whole again because what follows may be about them; they are over."
)
"""Opens turns of a working set that stand behind older ones (design 7.8)."""


@dataclass(frozen=True, slots=True)
class SentBlock:
    """Fresh rows as an earlier step of the run sent them (design 7.12)."""

    sequence: EventSeq
    """Event that keeps it."""
    before: EventSeq
    """It stands before the first unit of the run that starts here or later."""
    text: str | None = field(repr=False)
    """None once its content was erased."""
    digest: str
    """Digest of the block as rendered."""
    tokens: int
    rows: Mapping[str, str]
    """Digest of each part it holds, as it was offered; empty for a part that it takes back."""
    by_row: Mapping[str, int] = field(default_factory=dict)
    """Its tokens by row number."""
    by_trust: Mapping[str, int] = field(default_factory=dict)
    """Its tokens by trust level."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Everything before the open run, as one step shows it. A pure function of the log and the recorded decision."""

    cut: EventSeq = EventSeq(0)
    """Units that start before this place do not stand in history."""
    history: Sequence[Unit] = ()
    """Units from the cut on, in the form they are shown in, oldest first. What stands in front of them from before the cut is
    told by `spans`."""
    form: ShownForm = "whole"
    """How `history` and `promoted` are shown."""
    reason: Reason = Reason.FITS
    """Why the units of `history` stand there."""
    as_sent: Sequence[tuple[int, int]] = ()
    """Stretches of `history`, by first and last event, that stand as they were sent instead."""
    blocks: Sequence[SentBlock] = ()
    """Fresh rows that stand in those stretches where they were sent, oldest first."""
    kept: Sequence[tuple[EventSeq, Sequence[Unit]]] = ()
    """Units from before the cut that stand in those stretches, each group in front of the unit that starts at its place."""
    promoted: Sequence[Unit] = ()
    """Units from before the cut brought back behind history, oldest first."""
    promoted_line: str = PROMOTED_TEXT
    """The platform line in front of them."""
    native: tuple[str, ...] = field(default=(), repr=False)
    """A provider's own window, item by item as it came; it stands in front of `row_nine`."""
    betas: tuple[str, ...] = ()
    """Beta names that a request with this projection must carry."""
    compact_threshold: int = 0
    """Tokens from which on the provider is to compact by itself; 0: it is not asked to."""
    horizon: int = 0
    """Within so many tokens (raw count) the model was seen to follow instructions; 0: nothing is known of it."""
    row_nine: str = ""
    """What stands in row 9 for everything left out; empty when nothing is."""
    row_nine_parts: tuple[tuple[str, int], ...] = ()
    """The same in blocks of their own, each with its tokens (raw count), where one is added to those that stand; empty: it is
    one block."""
    row_nine_tokens: int = 0
    row_nine_erased: bool = False
    """Whether row 9 quotes content that was erased since; its recorded digest then stands in."""
    history_tokens: int = 0
    """Tokens of `history` with `blocks` and `kept` (raw count)."""
    promoted_tokens: int = 0
    """Tokens of `promoted`, the line in front of it included."""
    spans: tuple[Span, ...] = ()
    """What the manifest says of row 9 and of what was left out."""
    units_left_out: int = 0
    turns_left_out: int = 0
    tokens_left_out: int = 0

    @property
    def tokens(self) -> int:
        """What it takes of the body beside row 9 (tokens, raw count)."""
        return self.history_tokens + self.promoted_tokens

    @property
    def shows_windows(self) -> bool:
        """Whether a large result of the open run stands as a window of whole lines (capacity spec 3)."""
        return self.form == "digest"

    def sent_as_it_is(self, unit: Unit) -> bool:
        """Whether a unit of `history` stands as it was sent."""
        place = bisect_right(self.as_sent, unit.sequence, key=itemgetter(0))
        return bool(place) and unit.sequence <= self.as_sent[place - 1][1]

    def stands(self, unit: Unit) -> tuple[bool, bool]:
        """How a unit of `history` stands there: as it was sent or not, and whether it is from before the cut."""
        return self.sent_as_it_is(unit), unit.sequence < self.cut

    @property
    def manifest_form(self) -> Form:
        """`form` as the manifest names it."""
        return Form(self.form)
