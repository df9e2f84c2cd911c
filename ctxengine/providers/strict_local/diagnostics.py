"""Why a request could not reuse the prefix of an earlier one: the provider's own reason (providers.md 1.2, 1.3)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.providers.strict_local.segments import Chain

_REMEMBERED = 5_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a request."""

    facets: tuple[tuple[str, str], ...]
    """Named facts outside the messages, in the order in which a difference is reported."""
    settings: tuple[tuple[str, str], ...]
    """Facts that decide about a match without a reason of their own."""
    messages: tuple[str, ...]
    totals: tuple[int, ...]
    """Tokens up to the end of each message segment."""
    tokens: int


class Difference(NamedTuple):
    """The first thing that changed, and what that cost."""

    facet: str
    missed_tokens: int


class Fingerprints:
    """Requests by the id of their answer; the oldest are forgotten."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: OrderedDict[str, Fingerprint] = OrderedDict()

    def remember(self, answer_id: str, fingerprint: Fingerprint) -> None:
        """Keep one."""
        self._known[answer_id] = fingerprint
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def get(self, answer_id: str) -> Fingerprint | None:
        """One by the id of its answer."""
        return self._known.get(answer_id)


def fingerprint_of(chain: Chain, facets: tuple[tuple[str, str], ...]) -> Fingerprint:
    """The fingerprint of a request."""
    own = [i for i, segment in enumerate(chain.segments) if segment.section == "messages"]
    return Fingerprint(
        facets,
        chain.seeds,
        tuple(chain.segments[i].data for i in own),
        tuple(chain.totals[i] for i in own),
        chain.tokens,
    )


def first_difference(before: Fingerprint, after: Fingerprint) -> Difference | None:
    """The first facet or message that differs; None when messages were only appended."""
    known = dict(before.facets)
    for name, value in after.facets:
        if known.get(name) != value:
            return Difference(name, before.tokens)
    for index, data in enumerate(before.messages):
        if index >= len(after.messages) or after.messages[index] != data:
            kept = before.totals[index - 1] if index else 0
            return Difference("messages", before.tokens - kept)
    return None
