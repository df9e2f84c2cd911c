"""Random ids as texts, many at a time: one object and one look at the system's randomness for each took a while (design 12)."""

from __future__ import annotations

import os
from collections.abc import Iterator

_AT_ONCE = 256
_VARIANT = str.maketrans("0123456789abcdef", "89ab" * 4)
"""Any digit as one that an id of this kind may have in that place."""


def id_texts() -> Iterator[str]:
    """Ids as `str(new_id())` gives them, without end."""
    while True:
        digits = os.urandom(16 * _AT_ONCE).hex()
        for at in range(0, len(digits), 32):
            one = digits[at : at + 32]
            yield (
                f"{one[:8]}-{one[8:12]}-4{one[13:16]}-{one[16].translate(_VARIANT)}{one[17:20]}-{one[20:]}"
            )
