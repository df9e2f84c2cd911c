"""Masking secrets in a text (design 8): a match masks, it never blocks."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from ctxengine.engine.redaction.patterns import DETECTOR_VERSION, PATTERNS, SIGN_REACH

_SIGNS = tuple((frozenset(needles), sign) for _, needles, _, sign in PATTERNS)
_NEEDLES = tuple(dict.fromkeys(needle for _, needles, *_ in PATTERNS for needle in needles))
_RARE = "3zjx_-:."
"""Characters that most texts lack, the rarest first."""
_BY_RARE = tuple(
    (rare, tuple(needle for needle in _NEEDLES if rare == next(filter(needle.__contains__, _RARE), "")))
    for rare in (*_RARE, "")
)  # fmt: skip
"""Needles by the rarest character in them: without it, none of them is looked for. Every text holds the empty one."""
_UNSIGNED = frozenset[str]().union(*[needles for needles, sign in _SIGNS if sign is None])
_BEHIND_A_NAME = re.compile(r"(?:d|ord)?s?[\"']?\s{0,4}[:=]")
"""What every sign has behind its needle, in a text of ASCII characters: much faster than to look for the signs everywhere."""


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
    found = [
        needle
        for rare, needles in _BY_RARE
        if rare in lowered
        for needle in needles
        if needle in lowered
    ]
    if not found:
        return True
    if not _UNSIGNED.isdisjoint(found):
        return False
    if lowered.isascii():
        return not any(_is_signed(lowered, needle) for needle in found)
    return not any(
        sign.search(lowered) for signed, sign in _SIGNS if sign and not signed.isdisjoint(found)
    )


def _is_signed(lowered: str, needle: str) -> bool:
    """Whether what makes a word with a sign the name of a secret may stand behind one."""
    at = lowered.find(needle)
    while at >= 0:
        at += len(needle)
        if _BEHIND_A_NAME.match(lowered, at):
            return True
        at = lowered.find(needle, at)
    return False


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
