"""How many calls and tokens a climb of the ladder can take: the ladder itself, played against made-up models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ctxengine.engine.capacity.filler import MAX_OUTPUT_TOKENS
from ctxengine.engine.capacity.ladder import next_sample, rungs
from ctxengine.engine.capacity.profile import Grade, Observation

CACHE_CALLS = 2
"""Calls of the smallest rung's size that look at the cache at the end."""
_MOST_SAMPLES = 400
"""No climb comes near it; a ladder that never ended would be a defect."""


class ClimbBounds(NamedTuple):
    """What one climb takes, about: where a model stops between two places that were played, the edge may take a narrowing more.

    Calls that fail and are sent again are not among them.
    """

    rungs: tuple[int, ...]
    """Sizes that it doubles through (tokens); the edge between two of them is narrowed further."""
    least: tuple[int, ...]
    """Prompts of the climb that sends the fewest tokens, by size."""
    most: tuple[int, ...]
    """Prompts of the climb that sends the most tokens, by size."""
    most_calls: int
    """Calls of the longest climb, which need not be the one of most tokens."""

    @property
    def most_output_tokens(self) -> int:
        """Tokens that the answers may have together."""
        return self.most_calls * MAX_OUTPUT_TOKENS


def climb_bounds(declared_window: int, *, largest: int | None = None) -> ClimbBounds:
    """What the climb of a window takes at least, and about at most.

    Played are models that stop following at every place of the ladder, each once steadily and once with a first sample of
    every rung that goes the other way, so that the rung takes a third one.

    Args:
        declared_window: tokens.
        largest: highest prompt to try (tokens), where somebody limits it.
    """
    sizes = rungs(declared_window, largest=largest)
    beside = (sizes[0],) * CACHE_CALLS if sizes else ()
    climbs = [
        (*_played(declared_window, largest, follows, wavers), *beside)
        for follows in _ends(sizes)
        for wavers in (False, True)
    ]
    return ClimbBounds(
        rungs=sizes,
        least=min(climbs, key=sum),
        most=max(climbs, key=sum),
        most_calls=max(len(climb) for climb in climbs),
    )


def _ends(sizes: tuple[int, ...]) -> Iterator[int]:
    """Sizes up to which a made-up model follows: none, each rung, half-way to the next and just below it."""
    low = 0
    for size in sizes:
        yield from (low, (low + size) // 2, size - 1)
        low = size
    yield low


def _played(window: int, largest: int | None, follows: int, wavers: bool) -> list[int]:
    """Sizes of the prompts that a climb sends to a model that follows up to so many tokens."""
    seen: list[Observation] = []
    while len(seen) < _MOST_SAMPLES:
        sample = next_sample(seen, declared_window=window, largest=largest)
        if sample is None:
            break
        passes = (sample.tokens <= follows) is not (wavers and sample.number == 1)
        grade = Grade.STRICT if passes else Grade.FAIL
        seen.append(Observation(tokens=sample.tokens, actual_tokens=sample.tokens, grade=grade))
    return [observation.tokens for observation in seen]
