"""Usage of foreign logs in disjoint buckets: fresh, read from cache, written to cache, output (tokens)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxengine.engine.importers.transcript import ForeignUsage
from ctxengine.engine.lexeme import Node

_TOO_MANY = 1 << 63


def anthropic_usage(node: Node | None) -> ForeignUsage | None:
    """Anthropic's buckets are disjoint already, but with `iterations` the top level is not the bill: their sum is."""
    usage = _object(node)
    if usage is None:
        return None
    parts = usage.get("iterations")
    rows = [row for row in parts if isinstance(row, dict)] if isinstance(parts, list) else []
    rows = rows or [usage]
    return ForeignUsage(
        fresh=_sum(rows, "input_tokens"),
        cache_read=_sum(rows, "cache_read_input_tokens"),
        cache_write=_sum(rows, "cache_creation_input_tokens"),
        output=_sum(rows, "output_tokens"),
        raw=node.raw if node else "",
    )


def openai_usage(node: Node | None) -> ForeignUsage | None:
    """OpenAI counts cached tokens inside the prompt, in both of its APIs and in Codex's own form."""
    usage = _object(node)
    if usage is None:
        return None
    prompt = _first(usage, "prompt_tokens", "input_tokens")
    details = _first_object(usage, "prompt_tokens_details", "input_tokens_details")
    read = _number(details.get("cached_tokens"))
    if read is None:
        read = _number(usage.get("cached_input_tokens"))
    write = _first(details, "cache_write_tokens", "cache_creation_tokens")
    if write is None:
        # A proxy in front of Anthropic names it as Anthropic does, and counts it inside the prompt.
        write = _number(usage.get("cache_creation_input_tokens"))
    fresh = None if prompt is None else max(0, prompt - (read or 0) - (write or 0))
    return ForeignUsage(
        fresh=fresh,
        cache_read=read,
        cache_write=write,
        output=_first(usage, "completion_tokens", "output_tokens"),
        raw=node.raw if node else "",
    )


def google_usage(node: Node | None) -> ForeignUsage | None:
    """Gemini counts cached tokens inside the prompt; thoughts beside the candidates, what its tools gave beside the prompt."""
    usage = _object(node)
    if usage is None:
        return None
    prompt = _first(usage, "promptTokenCount", "prompt_token_count")
    read = _first(usage, "cachedContentTokenCount", "cached_content_token_count")
    if read is None and prompt is not None:
        # Gemini leaves the figure out where nothing was read.
        read = 0
    said = _first(usage, "candidatesTokenCount", "candidates_token_count")
    thought = _first(usage, "thoughtsTokenCount", "thoughts_token_count")
    output = None if said is None and thought is None else (said or 0) + (thought or 0)
    beside = _first(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count") or 0
    fresh = None if prompt is None else max(0, prompt - (read or 0)) + beside
    return ForeignUsage(fresh, read, None, output, raw=node.raw if node else "")


def disjoint_usage(
    node: Node | None, *, fresh: str, cache_read: str, cache_write: str, output: str
) -> ForeignUsage | None:
    """Usage of a format whose buckets are disjoint already, by the names it gives them."""
    usage = _object(node)
    if usage is None:
        return None
    return ForeignUsage(
        _number(usage.get(fresh)),
        _number(usage.get(cache_read)),
        _number(usage.get(cache_write)),
        _number(usage.get(output)),
        raw=node.raw if node else "",
    )


def inclusive_usage(
    node: Node | None,
    *,
    prompt: str,
    cache_read: Sequence[str],
    output: Sequence[str],
    beside: str = "",
) -> ForeignUsage | None:
    """Usage of a format that counts cached tokens inside the prompt; several output figures add up.

    Args:
        beside: Name of the figure of what went in beside the prompt.
    """
    usage = _object(node)
    if usage is None:
        return None
    read = _first(usage, *cache_read)
    total = _number(usage.get(prompt))
    outputs = [n for key in output if (n := _number(usage.get(key))) is not None]
    return ForeignUsage(
        fresh=None
        if total is None
        else max(0, total - (read or 0)) + (_number(usage.get(beside)) or 0),
        cache_read=read,
        output=sum(outputs) if outputs else None,
        raw=node.raw if node else "",
    )


def summed_usage(
    node: Node | None,
    *,
    prompt: str,
    cache_read: Sequence[str],
    cache_write: Sequence[str],
    output: str,
    total: str,
    parts: Sequence[str] = (),
) -> ForeignUsage | None:
    """Usage of a format that takes its figures from several providers: the total tells what is inside what.

    A total that cached tokens add to means buckets of their own; any other, or none, means a prompt that includes them. So
    with the parts of an answer.

    Args:
        parts: Names of figures that may stand beside the output rather than inside it.
    """
    usage = _object(node)
    if usage is None:
        return None
    read, write = _first(usage, *cache_read), _first(usage, *cache_write)
    fresh, said = _number(usage.get(prompt)), _number(usage.get(output))
    cached = (read or 0) + (write or 0)
    more = sum(_number(usage.get(part)) or 0 for part in parts)
    whole, known = _number(usage.get(total)), (fresh or 0) + (said or 0)
    if more and whole in (known + more, known + more + cached):
        said, known = (said or 0) + more, known + more
    apart = whole == known + cached
    if fresh is not None and not (apart and cached):
        fresh = max(0, fresh - cached)
    return ForeignUsage(fresh, read, write, said, raw=node.raw if node else "")


def _object(node: Node | None) -> dict[str, Any] | None:
    value = None if node is None else node.value()
    return value if isinstance(value, dict) and value else None


def _sum(rows: list[dict[str, Any]], key: str) -> int | None:
    numbers = [number for row in rows if (number := _number(row.get(key))) is not None]
    return sum(numbers) if numbers else None


def _first(usage: dict[str, Any], *keys: str) -> int | None:
    return next((n for key in keys if (n := _number(usage.get(key))) is not None), None)


def _first_object(usage: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, dict):
            return value
    return {}


def _number(value: Any) -> int | None:
    """Counts are whole, not negative and no longer than a column; anything else is not reported."""
    return value if type(value) is int and 0 <= value < _TOO_MANY else None
