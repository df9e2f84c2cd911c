"""Calls of tools that the provider runs itself, and that are still running when the client's own results go back.

Anthropic takes nothing but results behind such an answer (providers 2.1 A), so a step says nothing new there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.items import ForeignPart, Unit
from ctxengine.engine.lexeme import LexemeError, Node, is_json_object, parse

_CALL = "server_tool_use"
_RESULT = "_tool_result"


def server_call_open(active: Sequence[Unit]) -> bool:
    """Whether the newest unit calls a tool of the provider whose result the same answer does not hold."""
    if not active:
        return False
    asked: set[str] = set()
    answered: set[str] = set()
    for item in active[-1].items:
        for part in item.parts:
            if not isinstance(part, ForeignPart):
                continue
            if part.kind == _CALL:
                asked.add(_member(part.raw, "id"))
            elif part.kind.endswith(_RESULT):
                answered.add(_member(part.raw, "tool_use_id"))
    return not asked <= answered


def _member(raw: str, name: str) -> str:
    node: Node | None
    try:
        node = parse(raw).get(name) if is_json_object(raw) else None
    except LexemeError:
        return ""
    return (node.text() or "") if node is not None else ""
