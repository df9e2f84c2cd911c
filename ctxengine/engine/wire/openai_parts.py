"""What the two OpenAI APIs share: explicit cache breakpoints, ids and names."""

from __future__ import annotations

import re

from ctxengine.engine.wire.encoding import refuse

BREAKPOINT = b',"prompt_cache_breakpoint":{"mode":"explicit"}}]}'
"""No life is named: the request's own (at least 30 minutes) covers both lives that a marker may ask
for.
"""

EXPLICIT = b',"prompt_cache_options":{"mode":"explicit"}'
"""Without it the automatic breakpoint would land behind the volatile rows (design 7.13)."""

_ID = re.compile(r"[a-zA-Z0-9_-]+")


def with_breakpoint(data: bytes, key: bytes, text_type: bytes) -> bytes:
    """Mark the end of a message whose last member `key` holds its content.

    A content that is one string becomes a list of one text part, the only form that can carry a
    breakpoint.
    """
    start = data.index(b'"%s":' % key) + len(key) + 3
    content = data[start:-1]
    if content.startswith(b'"'):
        return b"".join((data[:start], b'[{"type":"', text_type, b'","text":', content, BREAKPOINT))
    return data[: -len(b"}]}")] + BREAKPOINT


def check(call_id: str | None, name: str | None, *, id_limit: int, name_limit: int) -> None:
    """Refuse ids and names that the API would refuse.

    Raises:
        WireInvalid: one of them is too long or has a forbidden character.
    """
    for value, limit, what in ((call_id, id_limit, "call id"), (name, name_limit, "tool name")):
        if value is not None and (len(value) > limit or _ID.fullmatch(value) is None):
            refuse(f"The {what} {value!r} is not 1 to {limit} of a-z, A-Z, 0-9, _ and -; map it.")
