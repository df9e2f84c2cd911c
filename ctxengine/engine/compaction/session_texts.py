"""What a session has seen and said, read lazily and in pieces: the ground on which repetition is judged (design 7.2)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxengine.engine.compaction.evidence_texts import beside_unseen
from ctxengine.engine.compaction.parrot import Brought, Untrusted
from ctxengine.engine.compaction.source import argument_texts, untrusted_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, TextPart, Unit
from ctxengine.engine.ports import UnitSource
from ctxengine.engine.trust.levels import Trust

_SEQUENCES_AT_ONCE = 2_000


class SessionTexts:
    """One session's texts from `first` on."""

    def __init__(self, log: UnitSource, below: EventSeq, first: EventSeq = EventSeq(1)) -> None:
        """Name the range; nothing is read yet."""
        self._log = log
        self._first = first
        self._below = below
        self._user: str | None = None
        self._arguments: list[tuple[int, str]] = []

    def untrusted(self, below: EventSeq) -> Iterator[Untrusted]:
        """All untrusted texts before a sequence, oldest first."""
        yield from untrusted_of(self._units(below))

    @property
    def brought(self) -> Brought:
        """What makes a run somebody's own; read only when something was found."""
        return Brought(self._user_words, self._arguments_before)

    def _units(self, below: EventSeq) -> Iterator[Unit]:
        for start in range(self._first, below, _SEQUENCES_AT_ONCE):
            end = min(start + _SEQUENCES_AT_ONCE, below)
            yield from self._log.units(EventSeq(start), EventSeq(end))

    def _user_words(self) -> str:
        if self._user is None:
            words: list[str] = []
            for unit, unseen in beside_unseen(self._units(self._below)):
                self._sort(unit, words, unseen=unseen)
            self._user = "\n\0\n".join(words)
        return self._user

    def _sort(self, unit: Unit, words: list[str], *, unseen: bool) -> None:
        for item in unit.items:
            if item.kind is ItemKind.TOOL_CALL:
                if unseen:
                    # What is asked for knowing such findings may come from them.
                    continue
                texts = [
                    item.arguments or "",
                    *(text for _, text in argument_texts(item.arguments)),
                ]
                self._arguments.append((item.id.sequence, "\n".join(texts)))
            elif item.trust is Trust.USER:
                words += [part.text for part in item.parts if isinstance(part, TextPart)]

    def _arguments_before(self, sequence: EventSeq) -> str:
        self._user_words()
        return "\n\0\n".join(text for place, text in self._arguments if place < sequence)
