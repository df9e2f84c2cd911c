"""A provider's own compaction window on the wire: each item as it came, in its order (providers.md 4).

No marker stands on such an item: it goes back byte for byte, without an added member.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.wire.base import Fragment, WireApi
from ctxengine.engine.wire.encoding import refuse, utf8

_ROLE = {WireApi.ANTHROPIC: "assistant", WireApi.OPENAI_RESPONSES: ""}
"""Role of the message that holds the items; none where each is whole by itself."""


def window_fragments(api: WireApi, items: Sequence[str]) -> tuple[Fragment, ...]:
    """The items as fragments.

    Raises:
        WireInvalid: this API has no native windows.
    """
    if not items:
        return ()
    if api not in _ROLE:
        refuse(f"The {api.value} API takes no native compaction window; make a note instead.")
    return tuple(
        Fragment(_ROLE[api], utf8(item, "A window's item"), markable=False) for item in items
    )
