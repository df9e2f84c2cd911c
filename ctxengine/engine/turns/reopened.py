"""A turn's full record as one text: what `recall` gives of it, and what a page shows (capacity spec 10)."""

from __future__ import annotations

from collections.abc import Collection

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.evidence.digest import Shape, digest_of
from ctxengine.engine.evidence.digest.make import reference_line
from ctxengine.engine.items import PLATFORM_SOURCE, Item, ItemKind, said_by_a_guard
from ctxengine.engine.turns.turn import Turn

LEFT_OUT = "[left out by an operator]"

_SPEAKERS = {
    ItemKind.USER_MESSAGE: "user",
    ItemKind.ASSISTANT_MESSAGE: "assistant",
    ItemKind.SUMMARY: "summary",
}


def record_text(turn: Turn, *, left_out: Collection[str] = ()) -> str:
    """Who said what and which calls gave what, in order; results as their digests with the ids that give them back whole.

    Args:
        left_out: item ids that an operator keeps from the model.
    """
    return "\n".join(
        [f"turn {turn.number}", *(_told(item, str(item.id) in left_out) for item in turn.items)]
    )


def _speaker(item: Item) -> str:
    if item.kind is ItemKind.USER_MESSAGE and said_by_a_guard(item):
        return "platform" if item.source == PLATFORM_SOURCE else "quoted"
    return _SPEAKERS[item.kind]


def _told(item: Item, left_out: bool) -> str:
    if item.kind is ItemKind.TOOL_CALL:
        shown = LEFT_OUT if left_out else item.arguments or "{}"
        return f"assistant called {item.name or '(unnamed)'}: {shown}"
    if item.kind is not ItemKind.TOOL_RESULT:
        said = LEFT_OUT if left_out else text_of_item(item)
        return f"{_speaker(item)} [{item.id}]: {said}"
    head = f"{'error' if item.is_error else 'result'} of {item.name or '(unnamed)'} [evidence:{item.id}]"
    if left_out:
        return f"{head}: {LEFT_OUT}"
    text = text_of_item(item)
    digest = digest_of(text, reference=str(item.id), is_error=item.is_error)
    if digest.shape is Shape.WHOLE and not text and item.bytes_len:
        return f"{head}:\n{reference_line(str(item.id), item.bytes_len)}"
    return f"{head}:\n{digest.text}"
