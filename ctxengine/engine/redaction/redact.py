"""Masking secrets in a text (design 8): a match masks, it never blocks."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from ctxengine.engine.redaction.patterns import DETECTOR_VERSION, PATTERNS, SIGN_REACH

_SIGNS = tuple((frozenset(needles), sign) for _, needles, _, sign in PATTERNS)
_NEEDLES = tuple(dict.fromkeys(needle for _, needles, *_ in PATTERNS for needle in needles))


class Redacted(NamedTuple):
    """A text without the secrets that were recognised in it."""

    text: str
    hits: tuple[tuple[str, int], ...] = ()
    """How many secrets of each kind were masked, by kind."""
    detector: str = DETECTOR_VERSION

    @property
    def masked(self) -> int:
        """Secrets masked in all."""
        return sum(number for _, number in self.hits)


def begins_no_secret(text: str, end: int) -> bool:
    """Whether it is certain, without trying a pattern, that no secret of a text begins before `end` (characters)."""
    lowered = text[: end + SIGN_REACH].lower()
    found = [needle for needle in _NEEDLES if needle in lowered]
    return not found or not any(
        (sign is None or sign.search(lowered)) and not found_in.isdisjoint(found)
        for found_in, sign in _SIGNS
    )


def redact(text: str) -> Redacted:
    """Mask every recognised secret; masking a masked text changes nothing."""
    lowered = text.lower()
    if not any(map(lowered.__contains__, _NEEDLES)):
        return Redacted(text)
    hits: Counter[str] = Counter()
    for kind, needles, pattern, sign in PATTERNS:
        if not any(map(lowered.__contains__, needles)) or (sign and not sign.search(lowered)):
            continue

        def mask(found: re.Match[str], kind: str = kind) -> str:
            hits[kind] += 1
            whole = found[0]
            secret = found.groupdict().get("secret")
            if secret is None:
                return f"[secret:{kind}]"
            start, end = found.span("secret")
            return f"{whole[: start - found.start()]}[secret:{kind}]{whole[end - found.start() :]}"

        text = pattern.sub(mask, text)
    return Redacted(text, tuple(sorted(hits.items())))
