"""How much of one result stands in a request, and in which unit that is measured (frozen-prefix spec; capacity spec 3)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

INLINE_MAXIMUM = 30_000
"""Up to here a result stands as it is, and so does what one recall gives (bytes or characters, by the policy's unit)."""

MIN_INLINE = 1_000
"""A smaller limit would leave little beside the note in the middle."""


class InlineUnit(StrEnum):
    """What a limit counts; it decides how what is over it is shown."""

    BYTES = "bytes"
    """UTF-8 bytes: both ends, or a window of the same share of the characters where the engine shows windows."""
    CHARACTERS = "characters"
    """Characters: a window of whole lines."""


class InlineLimit(NamedTuple):
    """A policy's limit. Its unit holds for the session's life: the limits kept with items are in it too."""

    most: int | None
    """None: the policy sets none."""
    unit: InlineUnit = InlineUnit.BYTES


NO_LIMIT = InlineLimit(None)
