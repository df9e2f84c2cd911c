"""Who may say what: a message holds the user's words, an answer the model's words and calls, and neither holds results."""

from __future__ import annotations

from collections.abc import Iterable

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.items import ItemKind

_SPOKEN = {
    "message": frozenset({ItemKind.USER_MESSAGE}),
    "answer": frozenset({ItemKind.ASSISTANT_MESSAGE, ItemKind.TOOL_CALL}),
}
_WHAT = {
    ItemKind.TOOL_CALL: "a tool call, which only a model makes; leave it out",
    ItemKind.TOOL_RESULT: "a tool result; report it to tool-results, under the id of its call",
    ItemKind.USER_MESSAGE: "a message of another role than the assistant's; leave it out",
    ItemKind.ASSISTANT_MESSAGE: "what an assistant said; leave it out",
    ItemKind.SUMMARY: "a summary; leave it out",
}


def refuse_other_voices(kinds: Iterable[ItemKind], spoken: str) -> None:
    """Refuse content that nobody could answer, or that would put words into somebody's mouth.

    Args:
        kinds: of the items that the content holds.
        spoken: `message`, of the user; or `answer`, of the model.

    Raises:
        ContentError: names what does not belong there.
    """
    other = next((kind for kind in kinds if kind not in _SPOKEN[spoken]), None)
    if other is not None:
        raise ContentError(f"The {spoken} holds {_WHAT[other]}.")
