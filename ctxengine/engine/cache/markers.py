"""Where cache markers stand (frozen-prefix spec, The history cache window; design 7.13 and 7.18).

Markers are annotations on the wire: they are outside both prefix hashes and change no byte the model reads.
"""

from __future__ import annotations

import re
from typing import Literal

from ctxengine.engine.wire.base import Marker, WireApi

MAX_MARKERS = 4
_GPT_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")


def takes_markers(api: WireApi, model: str) -> bool:
    """Whether explicit markers mean anything to this model (providers.md 1.1: GPT-5.6 and later, Anthropic)."""
    if api is WireApi.ANTHROPIC:
        return True
    match = _GPT_VERSION.search(model)
    if match is None:
        return False
    return (int(match[1]), int(match[2] or 0)) >= (5, 6)


def place_markers(
    *,
    api: WireApi,
    model: str,
    has_tools: bool,
    history_fragments: int,
    completed_fragments: int,
    prefix_ttl: Literal["5m", "1h"] = "5m",
) -> tuple[Marker, ...]:
    """Markers of one request in priority order, never more than the wire allows.

    Args:
        history_fragments: fragments up to the end of carried history (0: nothing is carried).
        completed_fragments: fragments up to the end of what the run's next step repeats, before any fresh row.
    """
    if not takes_markers(api, model):
        return ()
    markers = (
        [Marker("after_tools", ttl=prefix_ttl)] if has_tools and api is WireApi.ANTHROPIC else []
    )
    markers.append(Marker("after_system", ttl=prefix_ttl))
    if history_fragments:
        markers.append(Marker("carried_history", history_fragments - 1))
    if completed_fragments > history_fragments:
        markers.append(Marker("run", completed_fragments - 1))
    return tuple(markers[:MAX_MARKERS])
