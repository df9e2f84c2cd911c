"""Messages that a tracer wrote as Python shows an object: `role='user' content='...' tool_calls=[...]` (Agno in Langfuse).

What they say is read out of that text, so that a call is a call, a result answers it, and reasoning does not stay behind in it.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from ctxengine.engine.lexeme import LexemeError, Node, parse

_OPENING = re.compile(r"role='(\w+)' content=")
_TOLD = frozenset(
    (
        "role",
        "content",
        "name",
        "tool_call_id",
        "tool_calls",
        "tool_name",
        "thinking",
        "reasoning_content",
    )
)
"""Fields that say something; all others describe the object."""
_FIELD = re.compile(r"\s*(\w+)=")
_STRING = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL)
_BRACKETS_OR_STRING = re.compile(rf"{_STRING.pattern}|[\[({{\])}}]", re.DOTALL)
_WORD = re.compile(r"[^\s\[({<'\"]*")


def role_of_repr(text: str) -> str | None:
    """The role that such a text names; None for any other text."""
    found = _OPENING.match(text)
    return found[1] if found else None


def message_of_repr(text: str) -> Node | None:
    """The message as the JSON object it was made from; None where the text is no such message, or is cut off."""
    if _OPENING.match(text) is None:
        return None
    message: dict[str, Any] = {}
    at = 0
    try:
        while found := _FIELD.match(text, at):
            end = _end_of_value(text, found.end())
            if found[1] in _TOLD:
                value = ast.literal_eval(text[found.end() : end])
                if value is not None:
                    message[found[1]] = value
            at = end
        if text[at:].strip():
            return None
        return parse(json.dumps(message))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, LexemeError):
        return None


def _end_of_value(text: str, start: int) -> int:
    """Where a shown value ends: a string, or a word with whatever stands in brackets behind it."""
    string = _STRING.match(text, start)
    if string:
        return string.end()
    word = _WORD.match(text, start)
    end = word.end() if word else start
    if text[end : end + 1] == "<":
        return text.index(">", end) + 1
    if text[end : end + 1] not in tuple("[({"):
        return end
    depth = 0
    for token in _BRACKETS_OR_STRING.finditer(text, end):
        depth += {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ValueError("The value is cut off.")
