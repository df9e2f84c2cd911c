"""Where the texts of a long transcript lie until they are wanted again, so that memory need not hold all of them.

Whoever reads a file gives the shelf; the readers only say which texts may wait there. What remains is what an entry is known
by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ctxengine.engine.lexeme import Node, parse

Shelved = Callable[[], str]
"""Gives a text back, as often as it is asked."""

LONG_CHARS = 500
"""A text no longer than this takes no more than its place on a shelf does."""


class Shelf(Protocol):
    """Keeps texts for as long as a transcript is being taken in."""

    def put(self, text: str) -> Shelved:
        """Keep a text."""
        ...


def kept(text: str, shelf: Shelf | None) -> str | Shelved:
    """A text, or its place on the shelf if there is one and it is long."""
    return text if shelf is None or len(text) <= LONG_CHARS else shelf.put(text)


def taken(held: str | Shelved) -> str:
    """The text that `kept` was given."""
    return held if isinstance(held, str) else held()


class Value:
    """A line's value: read once and held, or read again whenever it is wanted."""

    __slots__ = ("_held",)

    def __init__(self, node: Node, shelf: Shelf | None = None) -> None:
        """Hold it, or have its text shelved."""
        self._held: Node | Shelved = node if shelf is None else shelf.put(node.raw)

    @property
    def node(self) -> Node:
        """The value; whoever needs more than one thing of it keeps it meanwhile."""
        held = self._held
        return held if isinstance(held, Node) else parse(held())
