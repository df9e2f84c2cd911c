"""A provider's usage figures in disjoint buckets that add up to what was billed.

Design 8 (provenance of numbers) and 7.4. Providers disagree on what "input" means: Anthropic's
excludes cached tokens, OpenAI's includes them. Two totals come out: `prompt_total`, the size of the
request that was sent, and `billed_input`, which also holds what server-side iterations read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_PLAUSIBLE_TOKENS = 2**31 - 1
"""A larger figure, or a larger sum of them, is no count of one call's tokens, and nothing could keep it."""
_MOST_SHOWN = 10**300
"""A whole number beyond what a float holds cannot be written short."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response as reported; fresh, read and written ones make up `prompt_total`."""

    fresh: int = 0
    """Prompt tokens that were neither read from nor written to a cache."""
    cache_read: int = 0
    cache_write_5m: int = 0
    """Written with the short life, or with a life the provider does not name."""
    cache_write_1h: int = 0
    output: int = 0
    prompt_total: int = 0
    """Size of the prompt that was sent; 0 when the figures do not tell it."""
    extra_input: int = 0
    """Input billed beside the prompt: what compaction and other server-side iterations read."""
    extra_output: int = 0
    """Output billed beside the answer, by the same iterations."""
    problems: tuple[str, ...] = ()
    """What in the figures cannot be right; empty for a sound receipt."""
    tells_reads: bool = True
    """Whether the report has a figure of cache reads: without one, nothing was said, which is not nought."""
    tells_writes: bool = True
    """Whether it has one of cache writes; many providers that tell reads have none."""
    source_raw: str = field(default="{}", repr=False)
    """The figures as received, as JSON text."""

    @property
    def billed_input(self) -> int:
        """All input tokens that were charged."""
        return self.prompt_total + self.extra_input

    @property
    def billed_output(self) -> int:
        """All output tokens that were charged."""
        return self.output + self.extra_output

    @property
    def calibrates(self) -> bool:
        """Whether `prompt_total` may teach the estimator.

        Not when it is unsound, empty, or stands beside a server-side compaction, which changed
        the prompt between what was sent and what was counted.
        """
        return self.prompt_total > 0 and not self.problems and self.extra_input == 0


def normalise(provider: str, usage: Mapping[str, Any], *, window: int | None = None) -> Usage:
    """Read the usage object of a response.

    The object's own fields decide its dialect; the provider settles what they leave open.

    Args:
        provider: a provider's name in REST.
        usage: the object as decoded.
        window: the model's context window; a prompt beyond it is flagged.
    """
    reader = _Figures()
    found = _dialect_of(provider, usage)(usage, reader)
    fresh, read, written_5m, written_1h, output, extra_input, extra_output = found
    total = fresh + read + written_5m + written_1h
    if max(total, extra_input, output + extra_output) > MAX_PLAUSIBLE_TOKENS:
        reader.problems.append("The figures add up to more than any call can take.")
    if window is not None and total > window:
        reader.problems.append(
            f"The prompt of {total:,} tokens is larger than the window of {window:,}."
        )
    return Usage(
        fresh=fresh,
        cache_read=read,
        cache_write_5m=written_5m,
        cache_write_1h=written_1h,
        output=output,
        prompt_total=total,
        extra_input=extra_input,
        extra_output=extra_output,
        problems=tuple(reader.problems),
        tells_reads=reader.tells_reads,
        tells_writes=reader.tells_writes,
        source_raw=json.dumps(usage, default=str, sort_keys=True),
    )


def output_of_message(lines: Sequence[int]) -> int:
    """Output of one message that a transcript repeats on several lines with a running count."""
    return max(lines, default=0)


_Buckets = tuple[int, int, int, int, int, int, int]


class _Figures:
    """Reads single figures and remembers what was wrong with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.tells_reads = False
        self.tells_writes = False

    def cache_read(self, holder: Any, *names: str) -> int:
        """A figure of cache reads; remembers whether there was one."""
        self.tells_reads |= _has(holder, names)
        return self.read(holder, *names)

    def cache_write(self, holder: Any, *names: str) -> int:
        """A figure of cache writes; remembers whether there was one."""
        self.tells_writes |= _has(holder, names)
        return self.read(holder, *names)

    def read(self, holder: Any, *names: str) -> int:
        """The first figure present under one of the names; 0 when absent or senseless."""
        if not isinstance(holder, Mapping):
            return 0
        for name in names:
            value = holder.get(name)
            if value is None:
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int):
                self.problems.append(f"{name} is not a whole number of tokens.")
            elif not 0 <= value <= MAX_PLAUSIBLE_TOKENS:
                shown = f"{value:.6g}" if abs(value) < _MOST_SHOWN else "a number beyond all sense"
                self.problems.append(f"{name} is {shown}, which is no count of tokens.")
            else:
                return value
            return 0
        return 0


def _has(holder: Any, names: tuple[str, ...]) -> bool:
    return isinstance(holder, Mapping) and any(holder.get(name) is not None for name in names)


def _dialect_of(
    provider: str, usage: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], _Figures], _Buckets]:
    for names, reads in _OWN_NAMES:
        if not names.isdisjoint(usage):
            return reads
    return _anthropic if _is_anthropic(provider, usage) else _openai


def _is_anthropic(provider: str, usage: Mapping[str, Any]) -> bool:
    if "prompt_tokens" in usage or "input_tokens_details" in usage:
        return False
    if any(name.startswith("cache_") for name in usage) or "iterations" in usage:
        return True
    return provider in ("anthropic", "bedrock")


def _anthropic(usage: Mapping[str, Any], reader: _Figures) -> _Buckets:
    iterations = usage.get("iterations")
    entries = iterations if isinstance(iterations, list) else []
    messages = [entry for entry in entries if _iteration_kind(entry) == "message"]
    if not messages:
        prompt = _anthropic_buckets(usage, reader)
        others = [entry for entry in entries if isinstance(entry, Mapping)]
    else:
        # Top-level figures leave some iterations out; the last message alone shows the context.
        prompt = _anthropic_buckets(messages[-1], reader)
        others = [e for e in entries if isinstance(e, Mapping) and e is not messages[-1]]
    beside = [_anthropic_buckets(entry, reader) for entry in others]
    extra_input = sum(sum(buckets[:4]) for buckets in beside)
    extra_output = sum(buckets[4] for buckets in beside)
    return (*prompt, extra_input, extra_output)


def _iteration_kind(entry: object) -> str:
    return str(entry.get("type", "message")) if isinstance(entry, Mapping) else ""


def _anthropic_buckets(
    usage: Mapping[str, Any], reader: _Figures
) -> tuple[int, int, int, int, int]:
    by_life = usage.get("cache_creation")
    written_1h = reader.cache_write(by_life, "ephemeral_1h_input_tokens")
    named = written_1h + reader.cache_write(by_life, "ephemeral_5m_input_tokens")
    written = reader.cache_write(usage, "cache_creation_input_tokens") or named
    if named > written:
        reader.problems.append(
            f"cache_creation adds up to {named:,} tokens, "
            f"cache_creation_input_tokens says {written:,}."
        )
        written_1h = min(written_1h, written)
    return (
        reader.read(usage, "input_tokens"),
        reader.cache_read(usage, "cache_read_input_tokens"),
        written - written_1h,
        written_1h,
        reader.read(usage, "output_tokens"),
    )


_READ_NAMES = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITE_NAMES = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")


def _openai(usage: Mapping[str, Any], reader: _Figures) -> _Buckets:
    total = reader.read(usage, "prompt_tokens", "input_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    # Kin of this API say it beside the prompt, under names of their own; the prompt holds it all the same.
    reads = details if _has(details, ("cached_tokens",)) else usage
    read = reader.cache_read(reads, *_READ_NAMES)
    writes = details if _has(details, _WRITE_NAMES) else usage
    written = reader.cache_write(writes, *_WRITE_NAMES)
    output = reader.read(usage, "completion_tokens", "output_tokens")
    if read + written > total:
        reader.problems.append(
            f"{read + written:,} cached tokens cannot be part of a prompt of {total:,}."
        )
        read = min(read, total)
        written = min(written, total - read)
    return (total - read - written, read, written, 0, output, 0, 0)


def _google(usage: Mapping[str, Any], reader: _Figures) -> _Buckets:
    """Gemini: the prompt includes what was cached; tool use is a prompt of its own, thoughts are output.

    Where nothing was read Gemini leaves that figure out: a report with a prompt tells it.
    """
    reader.tells_reads |= _has(usage, ("promptTokenCount", "prompt_token_count"))
    total = reader.read(usage, "promptTokenCount", "prompt_token_count")
    total += reader.read(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    read = reader.cache_read(usage, "cachedContentTokenCount", "cached_content_token_count")
    output = reader.read(usage, "candidatesTokenCount", "candidates_token_count")
    output += reader.read(usage, "thoughtsTokenCount", "thoughts_token_count")
    if read > total:
        reader.problems.append(f"{read:,} cached tokens cannot be part of a prompt of {total:,}.")
        read = total
    return (total - read, read, 0, 0, output, 0, 0)


def _bedrock(usage: Mapping[str, Any], reader: _Figures) -> _Buckets:
    """Bedrock Converse: disjoint already; lives are told by the details."""
    written = reader.cache_write(usage, "cacheWriteInputTokens")
    details = usage.get("cacheDetails")
    long_lived = sum(
        reader.read(entry, "inputTokens")
        for entry in (details if isinstance(details, list) else ())
        if isinstance(entry, Mapping) and entry.get("ttl") == "1h"
    )
    if long_lived > written:
        reader.problems.append(
            f"cacheDetails adds up to {long_lived:,} tokens, cacheWriteInputTokens says {written:,}."
        )
        long_lived = written
    return (
        reader.read(usage, "inputTokens"),
        reader.cache_read(usage, "cacheReadInputTokens"),
        written - long_lived,
        long_lived,
        reader.read(usage, "outputTokens"),
        0,
        0,
    )


def _ollama(usage: Mapping[str, Any], reader: _Figures) -> _Buckets:
    """Ollama: the whole prompt, whatever of it was still in its key-value cache."""
    fresh, output = reader.read(usage, "prompt_eval_count"), reader.read(usage, "eval_count")
    return (fresh, 0, 0, 0, output, 0, 0)


_OWN_NAMES: tuple[tuple[frozenset[str], Callable[[Mapping[str, Any], _Figures], _Buckets]], ...] = (
    (frozenset({"promptTokenCount", "prompt_token_count"}), _google),
    (frozenset({"inputTokens", "outputTokens"}), _bedrock),
    (frozenset({"prompt_eval_count", "eval_count"}), _ollama),
)
"""Names of figures that only one API uses."""
