"""Where cache markers stand (frozen-prefix spec, The history cache window; design 7.13 and 7.18).

Markers are annotations on the wire: they are outside both prefix hashes and change no byte the model reads.
"""

from __future__ import annotations

import re

from ctxengine.engine.cache.rules import CLAUDE_ELSEWHERE
from ctxengine.engine.wire.base import Marker, WireApi
from ctxengine.engine.wire.markers import MAX_MARKERS, Ttl

_GPT_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")


def takes_markers(api: WireApi, model: str) -> bool:
    """Whether explicit markers mean anything to this model (providers.md 1.1: GPT-5.6 and later, Anthropic's anywhere)."""
    if api in (WireApi.GOOGLE, WireApi.OLLAMA):
        return False
    if api is WireApi.ANTHROPIC or CLAUDE_ELSEWHERE.search(model):
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
    cards_fragments: int = 0,
    prefix_ttl: Ttl = "5m",
    history_ttl: Ttl = "5m",
) -> tuple[Marker, ...]:
    """Markers of one request in priority order, never more than the wire allows.

    Args:
        history_fragments: fragments up to the end of carried history (0: nothing is carried).
        completed_fragments: fragments up to the end of what the run's next step repeats, before any fresh row.
        cards_fragments: fragments up to the end of blocks of cards to which others are added (0: there are none). The marker
            there takes the place of `after_tools`: whatever is read behind the system holds the tools as well.
        prefix_ttl: life asked for the prefix, fixed with the plan.
        history_ttl: life asked for history, which an operator sets. No longer life may stand behind a shorter one, so the
            prefix gets at least this.
    """
    if not takes_markers(api, model):
        return ()
    prefix_ttl = "1h" if "1h" in (prefix_ttl, history_ttl) else prefix_ttl
    tools_apart = has_tools and api is WireApi.ANTHROPIC and not cards_fragments
    markers = [Marker("after_tools", ttl=prefix_ttl)] if tools_apart else []
    markers.append(Marker("after_system", ttl=prefix_ttl))
    if cards_fragments:
        markers.append(Marker("after_cards", cards_fragments - 1, ttl=history_ttl))
    if history_fragments > cards_fragments:
        markers.append(Marker("carried_history", history_fragments - 1, ttl=history_ttl))
    if completed_fragments > history_fragments:
        markers.append(Marker("run", completed_fragments - 1, ttl=history_ttl))
    return tuple(markers[:MAX_MARKERS])


__all__ = ["MAX_MARKERS", "place_markers", "takes_markers"]
