"""A prompt as the cache sees it: canonical pieces in reading order, each with a digest of all up to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ctxengine.providers.strict_local.signatures import digest


@dataclass(frozen=True, slots=True)
class Segment:
    """One block, part or item."""

    section: str
    """`tools`, `system` or `messages`."""
    data: str
    """Canonical JSON without cache markers, its role in front."""
    tokens: int
    path: str = ""
    """Where it stands in the request, as in error messages."""
    position: int = 0
    """Cache position; neighbouring segments may share one."""
    marker: str | None = None
    """Life asked for by a cache marker here."""
    ends_message: bool = False
    reasoning: bool = False
    """Signed reasoning, which is no part of what later reasoning is bound to."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Segments with, for each, the digest and the tokens of everything up to its end."""

    segments: tuple[Segment, ...]
    digests: tuple[str, ...]
    totals: tuple[int, ...]
    seeds: tuple[tuple[str, str], ...] = field(default=())
    """What enters the digest at the start of each section."""

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt."""
        return self.totals[-1] if self.totals else 0

    def marked(self) -> list[int]:
        """Indexes of the segments with a marker."""
        return [index for index, segment in enumerate(self.segments) if segment.marker]

    def of(self, section: str) -> tuple[str, ...]:
        """Data of a section's segments."""
        return tuple(s.data for s in self.segments if s.section == section)


def chain_of(segments: Iterable[Segment], seeds: Sequence[tuple[str, str]]) -> Chain:
    """Chain segments; a section's seed takes part from where the section would begin."""
    kept = tuple(segments)
    digests: list[str] = []
    totals: list[int] = []
    running, total, at = "", 0, 0
    names = [name for name, _ in seeds]
    for segment in kept:
        wanted = names.index(segment.section) + 1
        while at < wanted:
            running = digest(running, *seeds[at])
            at += 1
        running = digest(running, segment.data)
        total += segment.tokens
        digests.append(running)
        totals.append(total)
    return Chain(kept, tuple(digests), tuple(totals), tuple(seeds))
