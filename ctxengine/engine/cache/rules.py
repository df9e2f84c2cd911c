"""What each provider's prompt cache does, as data with its date (providers.md 1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from ctxengine.engine.capacity.profile import CacheBehaviour
from ctxengine.engine.wire.base import WireApi

RULES_DATE = "2026-11-29"


@dataclass(frozen=True, slots=True)
class CacheRules:
    """One model's cache, in tokens and seconds."""

    kind: Literal["markers", "prefix", "none", "unknown"]
    """`markers`: entries are written at markers. `prefix`: the longest prefix seen is served. `none`: nothing is cached.
    `unknown`: nobody knows, so nothing is predicted.
    """
    minimum: int
    """A shorter prefix is silently not cached."""
    lookback: int | None
    """Positions a marker looks back for an entry, itself included; None: no limit."""
    short_life: int
    """Seconds an entry lives by default, counted from its last use."""
    long_life: int | None
    """Seconds of the longer life, None where there is none."""
    step: int = 1
    """Reads come in steps of this many tokens above the minimum."""
    write_percent: int = 100
    """Price of writing, in percent of an uncached input token."""
    long_write_percent: int = 100
    read_percent: int = 10
    ends: int | None = None
    """Beside marked places, ends of the latest this many messages are looked at; None: only the look-back counts."""
    life_known: bool = True
    """Whether an entry surely lives so long and no longer; otherwise `short_life` is how long a loss of it is surprising."""
    coarse: int = 0
    """A read may end so many tokens early: how the provider aligns what it keeps is not known."""
    tells: bool = True
    """Whether a reported nought means that nothing was read; some models read much sooner the second time and report nought."""
    by: Literal["provider", "profile"] = "provider"
    """Whose word it is: the provider's documents, or what was seen of the model."""

    def stepped(self, tokens: int) -> int:
        """What is served of a prefix in common of that length: whole steps above the minimum, or nothing."""
        if tokens < self.minimum:
            return 0
        return self.minimum + (tokens - self.minimum) // self.step * self.step


_MINUTE, _HOUR = 60, 3600

_IMPLICIT_LIFE = 5 * _MINUTE
"""Where no life is stated: what the shortest-lived of the documented ones keep (an idle local runner, an idle prompt cache)."""
_IMPLICIT_COARSE = 256
"""The largest alignment seen of any provider that documents none (providers.md 1.1)."""
_UNKNOWN = CacheRules(
    "unknown", 0, None, _IMPLICIT_LIFE, None, life_known=False, coarse=_IMPLICIT_COARSE
)
_NOTHING = replace(_UNKNOWN, kind="none", by="profile")
_IMPLICIT = replace(_UNKNOWN, kind="prefix", by="profile")
_GEMINI = re.compile(r"gemini-(\d+)(?:\.(\d+))?")

_ANTHROPIC_MINIMUM: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"opus-4-[56]|haiku-4-5"), 4096),
    (re.compile(r"opus-4-7|mythos-preview|haiku-3|3-5-haiku"), 2048),
    (re.compile(r"(opus|fable|mythos)-5|(sonnet|haiku)-5-5"), 512),
)
_ANTHROPIC_READ: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"(opus|sonnet)-5-5"), 5),
    (re.compile(r"(fable|mythos)-5-[12]"), 3),
)
CLAUDE_ELSEWHERE = re.compile(r"\banthropic[./]claude-")
"""Claude behind Bedrock, or behind a router that translates markers; both write the vendor in front."""
_BEDROCK_MINIMUM = 1024
"""Where Anthropic's own table has less, Bedrock's has this."""
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")


def rules_in_force(
    api: WireApi, provider: str, model: str, seen: CacheBehaviour = CacheBehaviour.UNKNOWN
) -> CacheRules:
    """The cache rules of a model, with what was seen of its cache.

    A provider's own rules are a hint where a cache works by itself: a proxy may not pass it through, so that what was seen to
    be none is none. Markers are asked for, which no probe does. Where no rules are known, a cache that was seen keeps whatever
    one request repeats of the one before.

    Args:
        seen: by the cache rung, or in reported usage; `UNKNOWN` leaves the provider's rules alone.
    """
    known = cache_rules(api, provider, model)
    if known.kind == "markers" or seen is CacheBehaviour.UNKNOWN:
        return known
    if seen is CacheBehaviour.NONE:
        return _NOTHING
    if known.kind == "prefix":
        return known
    return replace(
        _IMPLICIT,
        minimum=_gemini_minimum(model) or 0,
        tells=seen is CacheBehaviour.REPORTED,
    )


def cache_rules(api: WireApi, provider: str, model: str) -> CacheRules:
    """The cache rules that a model's provider states; `unknown` where it states none."""
    lowered = model.lower()
    if api is WireApi.ANTHROPIC or CLAUDE_ELSEWHERE.search(lowered):
        lowered = lowered.replace(".", "-")
        minimum = next((n for pattern, n in _ANTHROPIC_MINIMUM if pattern.search(lowered)), 1024)
        if api is WireApi.BEDROCK:
            minimum = max(minimum, _BEDROCK_MINIMUM)
        read = next((n for pattern, n in _ANTHROPIC_READ if pattern.search(lowered)), 10)
        return CacheRules(
            "markers",
            minimum,
            20,
            5 * _MINUTE,
            _HOUR,
            write_percent=125,
            long_write_percent=200,
            read_percent=read,
        )
    if api is WireApi.GOOGLE:
        return _gemini(lowered)
    if provider not in {"openai", "openai-responses"}:
        return _UNKNOWN
    match = _GPT.search(lowered)
    version = (int(match[1]), int(match[2] or 0)) if match is not None else (0, 0)
    if version >= (5, 6):
        return CacheRules(
            "markers",
            1024,
            None,
            30 * _MINUTE,
            12 * _HOUR,
            write_percent=125,
            long_write_percent=250,
            # The smaller of the two depths that the vendor states (providers.md 1.3).
            ends=20,
        )
    half = "gpt-4o" in lowered
    return CacheRules(
        "prefix",
        1024,
        None,
        # Kept for a day by default, but for accounts without data retention; older lines live minutes.
        24 * _HOUR if version >= (4, 1) and not half else 10 * _MINUTE,
        None,
        step=2048 if version == (5, 5) else 128,
        read_percent=50 if half else 10,
    )


def _gemini_minimum(model: str) -> int | None:
    """Of Gemini's implicit caching; None for a model that has none, or is no Gemini."""
    lowered = model.lower()
    match = _GEMINI.search(lowered)
    if match is None:
        return 4096 if "gemini" in lowered else None
    version = (int(match[1]), int(match[2] or 0))
    if version < (2, 5):
        return None
    return 2048 if version < (3, 0) else 4096


def _gemini(model: str) -> CacheRules:
    """Implicit caching: on by default since 2.5, without a life that is stated or promised (providers.md 1.1)."""
    minimum = _gemini_minimum(model)
    if minimum is None:
        return _UNKNOWN
    return replace(
        _IMPLICIT,
        minimum=minimum,
        read_percent=5 if "gemini-4-argon" in model else 10,
        by="provider",
    )
