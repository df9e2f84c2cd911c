"""What a call of `recall` asks for: one thing of the session, and which part of it (capacity spec 3 and 10)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.window import LineRange, parse_range
from ctxengine.engine.lexeme import Node, NodeKind, parse
from ctxengine.engine.trust.truncation import truncate_text

MAX_CHARS = 16_000
"""Most characters one recall gives back, its notes not counted; more is read by asking for further lines or characters."""


class Recallable(StrEnum):
    """What can be named; the member of the arguments that names it."""

    ID = "id"
    TURN = "turn"
    PRESENTATION = "presentation"


class RecallWish(NamedTuple):
    """A call of `recall` as it is meant."""

    what: Recallable
    name: str
    """As written."""
    lines: LineRange | None = None
    chars: LineRange | None = None
    """Characters from and to, both counted from 1 and both included; of the lines where both are given."""

    @property
    def reference(self) -> str:
        """The arguments that name it, as a note tells them."""
        return f'{self.what.value} "{self.name}"'


class WishFault(ValueError):
    """The arguments ask for nothing that can be read; the message says what to give instead."""


def read_recall(arguments: str) -> RecallWish:
    """Read the arguments of a call.

    Args:
        arguments: text of a JSON object.

    Raises:
        WishFault: they name nothing, several things, or no range.
    """
    given = parse(arguments)
    named = [(what, text) for what in Recallable if (text := _text(given.get(what.value)))]
    if not named:
        msg = "Give an id such as 12.0, an event number such as 12, a turn such as 3, or a presentation such as 40."
        raise WishFault(msg)
    if len(named) > 1:
        msg = f"Give one of {', '.join(what.value for what, _ in named)}, not several."
        raise WishFault(msg)
    ((what, name),) = named
    lines = _range(given.get("lines"), "Give lines as one number or as a range such as 1-200.")
    chars = _range(given.get("chars"), "Give chars as a range such as 1-8000.")
    return RecallWish(what, name, lines, chars)


def part_of(text: str, wish: RecallWish) -> str:
    """What of a text a wish gets: all that fits, else both ends in whole lines, with notes that say how to read the rest."""
    first = 1
    if wish.lines is not None:
        every = text.split("\n")
        if wish.lines.first > len(every):
            return f"[there are only {len(every):,} lines]"
        last = min(wish.lines.last, len(every))
        first = wish.lines.first
        text = "\n".join(every[first - 1 : last])
        if (first, last) != (1, len(every)) and wish.chars is None:
            note = f"[lines {first} to {last} of {len(every)}]"
            return f"{note}\n{_ends(text, wish, first)}"
    return _ends(text, wish, first) if wish.chars is None else _characters(text, wish)


def _ends(text: str, wish: RecallWish, first_line: int) -> str:
    return both_ends(text, MAX_CHARS, reference=wish.reference, first_line=first_line).text


def _characters(text: str, wish: RecallWish) -> str:
    wanted = wish.chars or LineRange(1, len(text))
    if wanted.first > len(text):
        return f"[there are only {len(text):,} characters]"
    start = len(truncate_text(text, wanted.first - 1))
    end = min(wanted.last, len(text))
    shown = truncate_text(text[start:], min(end - start, MAX_CHARS))
    last = start + len(shown)
    note = f"[characters {start + 1} to {last} of {len(text)}]"
    more = ""
    if last < end:
        of_lines = "" if wish.lines is None else f', lines "{_told(wish.lines)}"'
        more = f'\n[... recall {wish.reference}{of_lines} with chars "{last + 1}-{end}" for what follows ...]'
    return f"{note}\n{shown}{more}"


def _told(range: LineRange) -> str:
    return str(range.first) if range.first == range.last else f"{range.first}-{range.last}"


def _text(node: Node | None) -> str:
    if node is None or node.kind is NodeKind.NULL:
        return ""
    text = node.text() if node.kind is NodeKind.STRING else node.raw
    return (text or "").strip()[:_MAX_NAME_CHARS]


_MAX_NAME_CHARS = 40


def _range(node: Node | None, fault: str) -> LineRange | None:
    if node is None or node.kind is NodeKind.NULL:
        return None
    found = parse_range(_text(node))
    if found is None:
        raise WishFault(fault)
    return found
