"""`recall`: reading back what a request does not show, under the trust it always had (design 6; capacity spec)."""

from __future__ import annotations

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.evidence.window import LineRange, parse_range, window
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item
from ctxengine.engine.lexeme import parse
from ctxengine.engine.standing import history_acts
from ctxengine.engine.trust.levels import lowest
from ctxengine.service.control.answers import ControlAnswer, ControlCall

MAX_CHARS = 16_000
"""Most characters one recall gives back; more is read by asking for further lines."""


def answer_recall(call: ControlCall) -> ControlAnswer:
    """Answer one recall. What it quotes keeps its trust; what cannot be found is said plainly."""
    arguments = parse(call.arguments)
    wanted = arguments.get("id")
    name = (wanted.text() if wanted is not None else None) or (wanted.raw if wanted else "")
    sequence, ordinal = _place(name)
    if sequence is None:
        return _refused("Give an item id such as 12.0 or an event number such as 12.")
    lines_given = arguments.get("lines")
    lines = parse_range(lines_given.text() or "") if lines_given is not None else None
    if lines_given is not None and lines is None:
        return _refused("Give lines as one number or as a range such as 1-200.")
    items = _items(call, sequence, ordinal)
    left_out = set(history_acts(call.log).marks.excluded) if items else set()
    if any(str(item.id) in left_out for item in items):
        return _refused("This was left out by an operator; go on without it.")
    if not items:
        return _refused("Nothing of this session has that id.")
    return _answer(items, lines)


def _place(name: str) -> tuple[int | None, int | None]:
    head, dot, tail = name.strip().partition(".")
    if not head.isdecimal() or (dot and not tail.isdecimal()) or len(name) > 20:
        return None, None
    return int(head), int(tail) if dot else None


def _items(call: ControlCall, sequence: int, ordinal: int | None) -> list[Item]:
    if not 1 <= sequence < call.response_sequence:
        return []
    unit = call.log.unit_of_item(EventSeq(sequence))
    if unit is None:
        return []
    return [
        item
        for item in unit.items
        if item.id.sequence == sequence and ordinal in {None, item.id.ordinal}
    ]


def _answer(items: list[Item], lines: LineRange | None) -> ControlAnswer:
    text = "\n".join(text_of_item(item) for item in items)
    part = window(text, lines, MAX_CHARS)
    note = ""
    if not part.whole:
        note = f"[lines {part.lines.first} to {part.lines.last} of {part.total_lines}]\n"
    first = items[0]
    return ControlAnswer(
        text=f"{note}{part.text}",
        trust=lowest(item.trust for item in items),
        source=f"recall:{first.source or first.kind.value}",
    )


def _refused(text: str) -> ControlAnswer:
    return ControlAnswer(text=text, is_error=True)
