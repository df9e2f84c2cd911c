"""Grading one sample of the ladder: called the tool, wrote the call as text, or did neither (capacity spec 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ctxengine.engine.capacity.filler import PROBE_TOOL, Instruction
from ctxengine.engine.capacity.profile import Grade

_MAX_TEXT_CHARS = 8_000
_DECODER = json.JSONDecoder()


def grade(calls: Sequence[tuple[str, str]], text: str, asked: Instruction) -> Grade:
    """Grade an answer.

    Args:
        calls: native tool calls as (name, arguments text).
        text: what the model wrote beside them.
    """
    if any(name == PROBE_TOOL and _matches(_read(raw), asked) for name, raw in calls):
        return Grade.STRICT
    # A call with arguments that are not quite right shows that the instruction was half read: no pass.
    if calls:
        return Grade.FAIL
    return Grade.LOOSE if _written(text[:_MAX_TEXT_CHARS], asked) else Grade.FAIL


def _read(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _matches(arguments: Any, asked: Instruction) -> bool:
    if not isinstance(arguments, dict):
        return False
    return str(arguments.get("code")) == asked.code and str(arguments.get("count")) == str(
        asked.amount
    )


def _written(text: str, asked: Instruction) -> bool:
    """Whether the text holds the call as JSON: the arguments with the tool's name before or around them."""
    if PROBE_TOOL not in text:
        return False
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            value, _ = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        candidates = [value, *(value.values() if isinstance(value, dict) else ())]
        if any(_matches(candidate, asked) for candidate in candidates):
            return True
    return False
