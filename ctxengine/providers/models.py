"""Facts about models: windows and output limits (providers.md 7).

Prices and most windows come from `genai-prices`; the dated table here holds what it lacks. A model nobody knows gets a
modest window, and the plan says that it was assumed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

TABLE_DATE = "2026-11-29"

ASSUMED_WINDOW = 128_000
ASSUMED_OUTPUT = 8_192
ASSUMED_LOCAL_WINDOW = 32_768
"""What a server of one's own is told to hold unless somebody says more: every token of it takes memory there."""
_CLAUDE_POINT = re.compile(r"(claude-[a-z]+-\d)\.(\d)")
"""Routers write `4.6` where the vendor writes `4-6`."""


class ModelFacts(NamedTuple):
    """What is known about one model, in tokens."""

    window: int
    max_output: int
    source: str
    """`table`, `genai-prices` or `assumed`."""


class _Line(NamedTuple):
    pattern: re.Pattern[str]
    window: int
    max_output: int


_TABLE: tuple[_Line, ...] = tuple(
    _Line(re.compile(pattern), window, output)
    for pattern, window, output in (
        (r"claude-(sonnet|opus|haiku)-4-5|claude-haiku-4-5", 200_000, 64_000),
        (r"claude-(opus|sonnet)-4-[678]", 1_000_000, 128_000),
        (r"claude-(fable|mythos|opus|sonnet|haiku)-5", 1_000_000, 128_000),
        (r"claude-(opus|sonnet)-4(?!-[5-9])", 200_000, 32_000),
        (r"claude-3", 200_000, 8_192),
        (r"gpt-6", 922_000, 128_000),
        (r"gpt-5\.4-mini", 272_000, 128_000),
        (r"gpt-5\.(4|5|6)", 922_000, 128_000),
        (r"gpt-5", 272_000, 128_000),
        (r"gpt-4\.1", 1_047_576, 32_768),
        (r"gpt-4o", 128_000, 16_384),
        (r"gpt-4-turbo", 128_000, 4_096),
        (r"gpt-4", 8_192, 4_096),
        (r"\bo[134](-|$)", 200_000, 100_000),
        (r"gpt-oss", 131_072, 32_768),
        (r"gemini", 1_048_576, 65_536),
        (r"deepseek-v4", 1_000_000, 384_000),
        (r"grok-4", 500_000, 64_000),
    )
)


@lru_cache(maxsize=512)
def model_facts(provider: str, name: str) -> ModelFacts:
    """Look a model up by provider and name."""
    if provider == "ollama":
        return ModelFacts(ASSUMED_LOCAL_WINDOW, ASSUMED_OUTPUT, "assumed")
    lowered = _CLAUDE_POINT.sub(r"\1-\2", name.lower())
    for line in _TABLE:
        if line.pattern.search(lowered):
            return ModelFacts(line.window, line.max_output, "table")
    window = _priced_window(provider, name)
    if window is not None:
        return ModelFacts(window, ASSUMED_OUTPUT, "genai-prices")
    stated = re.search(r"(\d{1,4})k\b", lowered)
    if stated:
        return ModelFacts(int(stated[1]) * 1000, ASSUMED_OUTPUT, "assumed")
    return ModelFacts(ASSUMED_WINDOW, ASSUMED_OUTPUT, "assumed")


def _priced_window(provider: str, name: str) -> int | None:
    # Imported here: reading the price table costs a tenth of a second that most processes never need.
    from genai_prices.data_snapshot import get_snapshot

    try:
        found = get_snapshot().find_provider_model(name, None, _PROVIDER_IDS.get(provider), None)
    except LookupError:
        return None
    return found[1].context_window


_PROVIDER_IDS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-responses": "openai",
    "google": "google",
    "openrouter": "openrouter",
    "openrouter-responses": "openrouter",
    "bedrock": "aws",
}
