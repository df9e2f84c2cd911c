"""Making the fresh rows fit: what lines of memory cost, how far one is cut, how many scopes are named (spec, budget table)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.derive import ENVELOPE_TOKENS
from ctxengine.engine.fresh import Runtime, runtime_text, windowed_line
from ctxengine.engine.ports import TokenCounter


def line_tokens(lines: Sequence[tuple[str, str]], counter: TokenCounter) -> tuple[int, ...]:
    """What each line of recall or knowledge costs, best first; the first pays for the envelope."""
    return tuple(
        _line(text, counter) + (0 if place else ENVELOPE_TOKENS)
        for place, (_, text) in enumerate(lines)
    )


def recall_window(lines: Sequence[tuple[str, str]], tokens: int, counter: TokenCounter) -> int:
    """Characters to cut the best line to, so that it costs at most `tokens`; 0 where it stays whole."""
    if not tokens or not lines:
        return 0
    (_, text), room = lines[0], tokens - ENVELOPE_TOKENS
    return max(
        1, _most(len(text), lambda chars: _line(windowed_line(text, chars), counter) <= room)
    )


def scopes_shown(runtime: Runtime, policy: BudgetPolicy, counter: TokenCounter) -> int | None:
    """How many scopes row 14 names within its class's cap; None where all of them fit."""
    cap = policy.cap(BudgetClass.RUNTIME).tokens
    if cap is None or not runtime.scopes or counter.text(runtime_text(runtime)) <= cap:
        return None
    return _most(
        len(runtime.scopes),
        lambda count: counter.text(runtime_text(replace(runtime, scopes_shown=count))) <= cap,
    )


def _line(text: str, counter: TokenCounter) -> int:
    return counter.text(f"- {text}\n")


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits, found by halving; 0 where none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
