"""Reading a provider's refusal: what kind it is, and the numbers in it (providers.md 3)."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple


class Failure(NamedTuple):
    """What a reported error means for the run."""

    code: str
    """`over_length`, `rate_limited`, `transient`, `auth`, `invalid_request` or `too_large`."""
    next: Literal["reassemble", "fail"]
    actual: int | None = None
    """Tokens the provider counted, where it says so."""
    maximum: int | None = None
    """Tokens the provider allows, where it says so."""


class _Wording(NamedTuple):
    pattern: re.Pattern[str]
    actual: int | None
    maximum: int | None


_NUMBERED = (
    _Wording(re.compile(r"(\d+) tokens > (\d+) maximum"), 1, 2),
    _Wording(re.compile(r"exceed context limit: (\d+) \+ \d+ > (\d+)"), 1, 2),
    _Wording(
        re.compile(r"maximum context length is (\d+) tokens\D{0,80}?resulted in (\d+) tokens"), 2, 1
    ),
    # Servers that count output in say how much of it is prompt; only the prompt can be made shorter.
    *(
        _Wording(re.compile(rf"maximum context length is (\d+) tokens.{{0,200}}?{prompt}"), 2, 1)
        for prompt in (
            r"contains (?:at least )?(\d+) input tokens",
            r"\((\d+) (?:in the messages|of text input)",
            r"(?:requested|contains)\D{0,40}(\d+)",
        )
    ),
    _Wording(
        re.compile(r"input \((\d+) tokens\) is longer than the model's context length \((\d+)"),
        1,
        2,
    ),
    _Wording(re.compile(r"\((\d+)\) exceeds the maximum number of tokens allowed \((\d+)\)"), 1, 2),
    _Wording(
        re.compile(r"request \((\d+) tokens\) exceeds the available context size \((\d+)"), 1, 2
    ),
    _Wording(re.compile(r"maximum prompt length is (\d+) but the request contains (\d+)"), 2, 1),
    _Wording(re.compile(r"prompt token count of (\d+) exceeds the limit of (\d+)"), 1, 2),
    _Wording(re.compile(r"exceeded model token limit: (\d+) \(requested: (\d+)\)"), 2, 1),
    _Wording(re.compile(r"Prompt contains (\d+) tokens.{0,120}?with (\d+) maximum"), 1, 2),
)

_UNNUMBERED = re.compile(
    r"context_length_exceeded|exceed_context_size_error|exceeds the context window|prompt is too long"
    r"|input is too long|(?:longer|greater) than the (?:model's )?context length|maximum context length"
    r"|reduce the length of the messages|context window exceeds limit",
    re.IGNORECASE,
)

_RATE = re.compile(r"tokens per (?:minute|day|hour)|too many tokens, please wait", re.IGNORECASE)
"""Limits on how often, which some providers word like limits on length and give other statuses."""

_MAX_TEXT_CHARS = 20_000
_MOST_TOKENS, _MOST_DIGITS = 2**31 - 1, 10
"""A larger figure is no count of a prompt, and nothing could keep it."""


def read_failure(status: int, body: str) -> Failure:
    """Classify a provider's error by status and wording."""
    text = body[:_MAX_TEXT_CHARS]
    if status == 429 or (status in {400, 413} and _RATE.search(text)):
        return Failure("rate_limited", "reassemble")
    if status in {401, 403}:
        return Failure("auth", "fail")
    if status >= 500 or status == 408:
        return Failure("transient", "reassemble")
    for wording in _NUMBERED:
        match = wording.pattern.search(text)
        if match:
            return Failure(
                "over_length",
                "reassemble",
                _tokens(match, wording.actual),
                _tokens(match, wording.maximum),
            )
    if _UNNUMBERED.search(text):
        return Failure("over_length", "reassemble")
    if status == 413:
        return Failure("too_large", "fail")
    return Failure("invalid_request", "fail")


def _tokens(match: re.Match[str], group: int | None) -> int | None:
    """The figure in a group; None where there is none, or none that can be a number of tokens."""
    if group is None or len(match[group]) > _MOST_DIGITS:
        return None
    tokens = int(match[group])
    return tokens if 1 <= tokens <= _MOST_TOKENS else None
