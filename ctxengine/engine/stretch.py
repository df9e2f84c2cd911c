"""Neighbouring units of one form as they stand in a request: fragments, digests and sums (design 4 and 12).

Sums are kept as running totals, so that a figure over any run of units is one subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ctxengine.engine.items import ImagePart, Unit
from ctxengine.engine.wire.base import Fragment

Part = Literal["block", "history", "kept", "pinned", "active", "sent", "input"]
"""`block`: platform or memory text that is no unit; `history`: carried units; `kept`: fresh rows of earlier runs that
stay among them; `pinned`: earlier units kept whole by hand;
`active`: completed exchanges of the open run; `sent`: fresh rows that stay where an earlier step of the run put them;
`input`: user input nobody has answered yet."""


class Totals(NamedTuple):
    """Running totals over units; all token figures are raw counts."""

    fragments: int = 0
    bytes: int = 0
    """Wire bytes of the fragments, separators not counted."""
    units: int = 0
    items: int = 0
    tokens: int = 0
    pointer_tokens: int = 0
    result_tokens: int = 0
    user_tokens: int = 0
    images: int = 0
    """Pictures in the items' content."""

    def after(self, unit: Unit, fragments: Sequence[Fragment]) -> Totals:
        """The totals one unit later."""
        return Totals(
            self.fragments + len(fragments),
            self.bytes + sum([len(fragment.data) for fragment in fragments]),
            self.units + 1,
            self.items + len(unit.items),
            self.tokens + unit.tokens,
            self.pointer_tokens + unit.pointer_tokens,
            self.result_tokens + unit.result_tokens,
            self.user_tokens + unit.user_tokens,
            self.images
            + sum([isinstance(part, ImagePart) for item in unit.items for part in item.parts]),
        )

    def since(self, earlier: Totals) -> Totals:
        """What came on top of `earlier`."""
        return Totals(
            self.fragments - earlier.fragments,
            self.bytes - earlier.bytes,
            self.units - earlier.units,
            self.items - earlier.items,
            self.tokens - earlier.tokens,
            self.pointer_tokens - earlier.pointer_tokens,
            self.result_tokens - earlier.result_tokens,
            self.user_tokens - earlier.user_tokens,
            self.images - earlier.images,
        )


def together(totals: Sequence[Totals]) -> Totals:
    """The sum of totals over separate runs of units."""
    if len(totals) == 1:
        return totals[0]
    return Totals(*map(sum, zip(Totals(), *totals, strict=True)))


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run of neighbouring units in one form, or one block of rows 9 to 14."""

    row: int
    part: Part
    form: str
    """`whole` or `pointer`."""
    units: Sequence[Unit]
    """Empty for a block."""
    fragments: Sequence[Fragment] = field(repr=False)
    digests: Sequence[str] = field(repr=False)
    """Segment digests: one per unit, or the block's own."""
    bounds: Sequence[Totals] = field(repr=False)
    """Running totals before the first unit and after each."""

    @property
    def totals(self) -> Totals:
        """Totals over the stretch."""
        return self.bounds[-1].since(self.bounds[0])
