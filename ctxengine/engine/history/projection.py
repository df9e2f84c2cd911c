"""What an engine other than `suffix` shows of everything before the open run (design 6).

`suffix` finds its cut by allocation. `working_set` and `boundary` decide beforehand and record the decision as an event; a
projection is that decision applied to the log, and the allocation then deals with the open run and the fresh rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctxengine.engine.compaction.marks import PROMOTED_TEXT
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit
from ctxengine.engine.manifest import Form, Reason, Span

ShownForm = Literal["digest", "whole"]
"""How carried units are shown: closed turns hold digests of their results, or everything is whole."""

HISTORY_FORMS: Mapping[str, ShownForm] = {"working_set": "digest", "boundary": "whole"}
"""The one form in which each of these engines shows carried units."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Everything before the open run, as one step shows it. A pure function of the log and the recorded decision."""

    cut: EventSeq = EventSeq(0)
    """Units that start before this place do not stand in history."""
    history: Sequence[Unit] = ()
    """Units from the cut on, in the form they are shown in, oldest first."""
    form: ShownForm = "whole"
    """How `history` and `promoted` are shown."""
    reason: Reason = Reason.FITS
    """Why the units of `history` stand there."""
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
    row_nine_tokens: int = 0
    row_nine_erased: bool = False
    """Whether row 9 quotes content that was erased since; its recorded digest then stands in."""
    history_tokens: int = 0
    """Tokens of `history` (raw count)."""
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

    @property
    def manifest_form(self) -> Form:
        """`form` as the manifest names it."""
        return Form(self.form)
