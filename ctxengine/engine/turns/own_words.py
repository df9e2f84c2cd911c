"""What a turn said that was its own: stretches that repeat untrusted content stand as pointers (design 7.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ctxengine.engine.compaction.parrot import Run, Said, repeated_runs, replace_runs
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.source import is_address, pointer_of
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Item, ItemKind
from ctxengine.engine.turns.turn import Turn


class OwnWords(NamedTuple):
    """One turn's prose and call arguments without what they repeat."""

    prose: Mapping[str, str]
    """Of each message of the assistant, by its item id."""
    arguments: Mapping[str, str]
    """Of each call, by its item id."""

    def narration_of(self, turn: Turn) -> str:
        """The turn's answer."""
        return "\n".join(self.prose.get(str(item.id), "") for item in turn.answer).strip()


def own_words(turns: Sequence[Turn], texts: SessionTexts) -> list[OwnWords]:
    """The own words of consecutive turns, held against the session's untrusted content in one pass.

    Args:
        texts: the session up to the end of the last turn, as far back as it is to be looked at.
    """
    if not turns:
        return []
    said = [Said(i.id.sequence, _text(i)) for turn in turns for i in _speaking(turn)]
    runs = iter(repeated_runs(said, texts.untrusted(EventSeq(turns[-1].last + 1)), texts.brought))
    return [_own(turn, runs) for turn in turns]


def _speaking(turn: Turn) -> list[Item]:
    spoken = {ItemKind.ASSISTANT_MESSAGE, ItemKind.TOOL_CALL}
    return [item for item in turn.items if item.kind in spoken]


def _text(item: Item) -> str:
    return (item.arguments or "") if item.kind is ItemKind.TOOL_CALL else text_of_item(item)


def _own(turn: Turn, runs: Iterator[list[Run]]) -> OwnWords:
    prose: dict[str, str] = {}
    arguments: dict[str, str] = {}
    for item in _speaking(turn):
        text, found = _text(item), next(runs)
        if item.kind is ItemKind.TOOL_CALL:
            found = [run for run in found if not is_address(text[run.start : run.end])]
            arguments[str(item.id)] = replace_runs(text, found, pointer_of)
        else:
            prose[str(item.id)] = replace_runs(text, found, pointer_of)
    return OwnWords(prose, arguments)
