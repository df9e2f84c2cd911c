"""System text in every form in which bodies and spans hold it: a text, a part, parts, or messages of the system's."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.importers.members import first_given
from ctxengine.engine.lexeme import Node, NodeKind

_INNER = ("parts", "text", "content")
"""Members that hold what a part, a content or a message says."""
_SETTINGS = ("cachePoint", "cache_control")
_ROLES = frozenset(("system", "developer"))


class SystemText(NamedTuple):
    """What the system says."""

    text: str
    unread: tuple[Node, ...] = ()
    """Values in it that are no text."""


def system_text(value: Node | None) -> SystemText:
    """Read system text; its pieces stand on lines of their own."""
    texts: list[str] = []
    unread: list[Node] = []
    left = [] if value is None else [value]
    while left:
        node = left.pop()
        if node.kind is NodeKind.STRING:
            texts.append(node.text() or "")
        elif node.kind is NodeKind.ARRAY:
            left += reversed(list(node))
        elif node.kind is NodeKind.OBJECT:
            inner = _inner(node)
            if inner is not None:
                left.append(inner)
            elif first_given(node, *_SETTINGS) is None:
                unread.append(node)
        elif node.kind is not NodeKind.NULL:
            unread.append(node)
    return SystemText("\n".join(text for text in texts if text), tuple(unread))


def _inner(node: Node) -> Node | None:
    """What an object says; None where it says nothing, or is a message of somebody else (Google's contents name any role)."""
    role, parts = first_given(node, "role"), first_given(node, "parts")
    if parts is None and role is not None and role.text() not in _ROLES:
        return None
    return first_given(node, *_INNER)
