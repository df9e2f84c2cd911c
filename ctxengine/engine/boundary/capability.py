"""Which models compact a conversation themselves, and by which contract (providers.md 4). Dated data, no control flow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ctxengine.engine.wire.base import WireApi

TABLE_DATE: Final = "2026-11-29"

ANTHROPIC_ON_DEMAND: Final = "compact-2026-09-04"
"""Named by the compacting request, and by every later request that holds its block."""
ANTHROPIC_THRESHOLD: Final = "compact-2026-01-12"
"""Named by a request that asks for compaction at a threshold, or that holds a block made at one."""

_CLAUDE: Final = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:-(\d{1,2})(?!\d))?")
_SINCE: Final[Mapping[str, tuple[int, int]]] = {
    "opus": (4, 6),
    "sonnet": (4, 6),
    "haiku": (5, 5),
    "fable": (5, 0),
    "mythos": (5, 0),
}
_COMPACTING_GPT: Final = re.compile(r"gpt-[5-9]|codex")

LEAST_THRESHOLD_TOKENS: Final[Mapping[WireApi, int]] = {
    WireApi.ANTHROPIC: 50_000,
    WireApi.OPENAI_RESPONSES: 1_000,
}
"""Smallest threshold that an in-band contract accepts (tokens)."""


def compacts_natively(provider: str, model: str) -> bool:
    """Whether the provider advertises native compaction for this model; other providers get a portable note."""
    name = model.lower().removeprefix("strict/")
    if provider == "openai-responses":
        return bool(_COMPACTING_GPT.search(name))
    if provider != "anthropic":
        return False
    match = _CLAUDE.search(name)
    if match is None:
        return False
    return (int(match[2]), int(match[3] or 0)) >= _SINCE[match[1]]


def window_keeps_user_messages(api: WireApi) -> bool:
    """Whether the provider's window holds every message of the user whole."""
    return api is WireApi.OPENAI_RESPONSES


def instructions_stand_aside(api: WireApi) -> bool:
    """Whether a compacting call leaves the instructions out of the body, since they follow the window again."""
    return api is WireApi.OPENAI_RESPONSES


def betas_for(api: WireApi, *, window: bool, inline: bool) -> tuple[str, ...]:
    """Beta names that a request must carry.

    Args:
        window: whether the request holds a block made on demand.
        inline: whether it asks for compaction at a threshold, or holds a block made at one.
    """
    if api is not WireApi.ANTHROPIC:
        return ()
    return (ANTHROPIC_ON_DEMAND,) * window + (ANTHROPIC_THRESHOLD,) * inline
