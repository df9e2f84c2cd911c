"""What a call of `recall` asks for: one thing of the session, and which part of it (capacity spec 3 and 10)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.inline import INLINE_MAXIMUM
from ctxengine.engine.evidence.window import LineRange, parse_range
from ctxengine.engine.lexeme import Node, NodeKind, parse
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.truncation import truncate_text

MAX_CHARS = INLINE_MAXIMUM
"""Most characters one recall gives back, its notes not counted. More than that stands as a window, as a result of that length
does, and its notes name what was recalled: by that same id any further lines or characters are read. The answer's own event
holds no more than the answer, so its id leads to nothing further."""

LEAST_CHARS = 2_000
"""So much is given where a request has hardly any room."""

_LINES_NAMES = ("lines", "range")
"""What a call may name its lines by; the tool's description tells the first."""


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
    most: int = MAX_CHARS
    """Characters that the answer may hold; no word of the caller's."""

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
    lines = _lines(given)
    chars = _range(given.get("chars"), "Give chars as a range such as 1-8000.")
    return RecallWish(what, name, lines, chars)


class Room(NamedTuple):
    """What a request has for one answer."""

    counter: TokenCounter
    tokens: int


def room_for(frame: Frame, counter: TokenCounter) -> Room:
    """Half of what a request has for its body: an answer that takes more would soon stand as no more than its pointer.

    Nothing where the prefix alone is over the budget, as it may be once a model has turned out to bill more than was counted.
    """
    return Room(counter, max(0, frame.body // 2))


_SHARES = (100, 95, 80, 50, 0)
"""Of what would fit if the text were as dense as the last answer measured (percent), try by try. Its ends may be denser than
what they leave out; the last try is the least that is given."""


def within(room: Room, text: str, wish: RecallWish) -> str:
    """What of a text a wish gets in a room: as `part_of` has it, shortened until it fits or is down to `LEAST_CHARS`."""
    tokens_free = max(0, room.tokens)
    first = given = part_of(text, wish)
    for share in _SHARES:
        tokens = room.counter.text(given)
        if tokens <= tokens_free or len(given) <= LEAST_CHARS:
            return given
        if wish.most <= LEAST_CHARS:
            break
        fitting = min(wish.most, len(given)) * tokens_free * share // (tokens * 100)
        wish = wish._replace(most=max(LEAST_CHARS, fitting))
        given = part_of(text, wish)
    # Notes can take more than what they stand for, where hardly anything is left out.
    return min(first, given, key=len)


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
    return both_ends(text, wish.most, reference=wish.reference, first_line=first_line).text


def _characters(text: str, wish: RecallWish) -> str:
    wanted = wish.chars or LineRange(1, len(text))
    if wanted.first > len(text):
        return f"[there are only {len(text):,} characters]"
    start = len(truncate_text(text, wanted.first - 1))
    end = min(wanted.last, len(text))
    shown = truncate_text(text[start:], min(end - start, wish.most))
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


def _lines(given: Node) -> LineRange | None:
    fault = "Give lines as one number or as a range such as 1-200."
    found = {name: _range(given.get(name), fault) for name in _LINES_NAMES}
    asked = {wanted for wanted in found.values() if wanted is not None}
    if len(asked) > 1:
        msg = "Give lines or range, not two that differ."
        raise WishFault(msg)
    return next(iter(asked), None)


def _range(node: Node | None, fault: str) -> LineRange | None:
    if node is None or node.kind is NodeKind.NULL:
        return None
    found = parse_range(_text(node))
    if found is None:
        raise WishFault(fault)
    return found
