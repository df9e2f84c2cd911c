"""The versioned prompts of side calls, as files (design 7.14): a changed text is a new version, which every summary names."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

SUMMARY = "summary@1"
"""Tells a part of a conversation."""
CONDENSE = "condense@1"
"""Tells several summaries as one."""
PACKET = "packet@1"
"""Goes on from the notes of a stored packet with the turns behind it."""
BOUNDARY_NOTE = "boundary_note@2"
"""Writes the continuation note of the `boundary` engine."""

_TOKENS_PER_WORD = 1.6
"""On the safe side for most languages: the allowance is in tokens, a model counts words."""


@lru_cache(maxsize=8)
def _text(version: str) -> str:
    return (files("ctxengine.service.summaries") / "prompts" / f"{version}.md").read_text("utf-8")


def system_prompt(version: str, budget_tokens: int) -> str:
    """The prompt of that version for an answer of at most so many tokens."""
    words = max(20, int(budget_tokens / _TOKENS_PER_WORD))
    return _text(version).replace("{words}", str(words))
