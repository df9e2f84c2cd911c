"""What each provider's prompt cache does, as data with its date (providers.md 1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxengine.engine.wire.base import WireApi

RULES_DATE = "2026-11-29"


@dataclass(frozen=True, slots=True)
class CacheRules:
    """One model's cache, in tokens and seconds."""

    kind: str
    """`markers`: entries are written at markers. `prefix`: the longest prefix seen is served. `none`."""
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

    def stepped(self, tokens: int) -> int:
        """What is served of a prefix in common of that length: whole steps above the minimum, or nothing."""
        if tokens < self.minimum:
            return 0
        return self.minimum + (tokens - self.minimum) // self.step * self.step


_MINUTE, _HOUR = 60, 3600

_NONE = CacheRules("none", 0, None, 0, None)

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


def cache_rules(api: WireApi, provider: str, model: str) -> CacheRules:
    """The cache rules of a model; a provider whose cache nobody controls or knows has none."""
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
    if provider not in {"openai", "openai-responses"}:
        return _NONE
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
