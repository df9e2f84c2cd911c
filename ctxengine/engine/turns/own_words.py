"""What a turn said that was its own: stretches that repeat untrusted content stand as pointers (design 7.2).

What it said knowing findings that nobody here can read cannot be held against them. It stays, and is trusted as little as they.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ctxengine.engine.compaction.parrot import Run, Said, repeated_runs, replace_runs
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.source import is_address, noting_unseen, pointer_of
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import Item, ItemKind
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.turns.turn import Turn


class OwnWords(NamedTuple):
    """One turn's prose and call arguments without what they repeat."""

    prose: Mapping[str, str]
    """Of each message of the assistant, by its item id."""
    arguments: Mapping[str, str]
    """Of each call, by its item id."""
    trust: Mapping[str, Trust] = MappingProxyType({})
    """Of those items that are trusted less than their speaker."""

    def narration_of(self, turn: Turn) -> str:
        """The turn's answer."""
        return "\n".join(self.prose.get(str(item.id), "") for item in turn.answer).strip()

    def narration_trust_of(self, turn: Turn) -> Trust:
        """How far the turn's answer is trusted."""
        return lowest([Trust.MODEL, *(self.trust_of(item) for item in turn.answer)])

    def trust_of(self, item: Item) -> Trust:
        """How far an item's words are trusted."""
        return self.trust.get(str(item.id), Trust.MODEL)


def own_words(turns: Sequence[Turn], texts: SessionTexts) -> list[OwnWords]:
    """The own words of consecutive turns, held against the session's untrusted content in one pass.

    Args:
        texts: the session up to the end of the last turn, as far back as it is to be looked at.
    """
    if not turns:
        return []
    said = [Said(i.id.sequence, _text(i)) for turn in turns for i in _speaking(turn)]
    unseen: set[ItemId] = set()
    ground = noting_unseen(texts.untrusted(EventSeq(turns[-1].last + 1)), unseen)
    runs = iter(repeated_runs(said, ground, texts.brought))
    return [_own(turn, runs, unseen) for turn in turns]


def _speaking(turn: Turn) -> list[Item]:
    spoken = {ItemKind.ASSISTANT_MESSAGE, ItemKind.TOOL_CALL}
    return [item for item in turn.items if item.kind in spoken]


def _text(item: Item) -> str:
    return (item.arguments or "") if item.kind is ItemKind.TOOL_CALL else text_of_item(item)


def _own(turn: Turn, runs: Iterator[list[Run]], unseen: Collection[ItemId]) -> OwnWords:
    prose: dict[str, str] = {}
    arguments: dict[str, str] = {}
    trust: dict[str, Trust] = {}
    for item in _speaking(turn):
        text, found = _text(item), next(runs)
        if item.id in unseen:
            trust[str(item.id)] = Trust.EXTERNAL_UNTRUSTED
            found = [run for run in found if not run.source.unseen]
        if item.kind is ItemKind.TOOL_CALL:
            found = [run for run in found if not is_address(text[run.start : run.end])]
            arguments[str(item.id)] = replace_runs(text, found, pointer_of)
        else:
            prose[str(item.id)] = replace_runs(text, found, pointer_of)
    return OwnWords(prose, arguments, trust)
