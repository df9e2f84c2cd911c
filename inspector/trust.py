"""How each trust level is drawn: glyph, word, line pattern, colour last (ui 4.1)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.trust.levels import Trust


class Mark(NamedTuple):
    """Looks of one level."""

    css: str
    """Class that carries colour and line pattern; also `f-<css>` as a fill."""
    glyph: str
    word: str


MARKS: dict[str, Mark] = {
    Trust.PLATFORM: Mark("platform", "P", "platform"),
    Trust.TRUSTED_CONFIGURATION: Mark("config", "C", "configuration"),
    Trust.USER: Mark("user", "U", "user"),
    Trust.MODEL: Mark("model", "M", "model"),
    Trust.MEMORY: Mark("memory", "R", "memory"),
    Trust.EXTERNAL_UNTRUSTED: Mark("external", "!", "external"),
}


def mark_of(level: str) -> Mark:
    """Looks of a level; `per entry` and the like are drawn as mixed."""
    return MARKS.get(level) or Mark("mixed", "±", level or "none")


def lowest_first(levels: dict[str, int]) -> list[tuple[str, int]]:
    """Levels with their tokens, from most to least trusted."""
    order = list(MARKS)
    known = [(level, tokens) for level, tokens in levels.items() if level in MARKS]
    return sorted(known, key=lambda pair: order.index(pair[0]))
