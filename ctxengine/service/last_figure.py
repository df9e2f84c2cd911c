"""The last value that a conversation recorded for what is asked now: quoted, and never given as current (capacity spec 7)."""

from __future__ import annotations

import re
from datetime import UTC
from typing import NamedTuple

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.fresh import local_time
from ctxengine.engine.guards.topic import telling_words
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.truncation import truncate_text
from ctxengine.engine.turns.presentation import records_of
from ctxengine.service.left_out import LeftOut
from ctxengine.service.run_facts import RunFacts

_CARDS, _ANSWERS = 24, 24
"""Newest cards and answers that are looked through."""
_MAX_CHARS, _LEAD_CHARS = 400, 100
"""Of what is quoted at most, and of that before a figure that stands deep in a long text."""
_FIGURE = re.compile(r"\d")
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n")


class Figure(NamedTuple):
    """A value from an earlier turn, with when it was recorded."""

    text: str
    trust: Trust
    source: str
    event: int
    at: str
    """Local time of its recording, in words."""

    @property
    def note(self) -> str:
        """What the platform says of it."""
        return f" The last one recorded in this conversation is quoted below; it is from {self.at} (event {self.event})."


def last_figure(facts: RunFacts) -> Figure | None:
    """The newest earlier card or sentence with a figure that shares a word with the directive; None where there is none.

    Nothing of a turn is quoted of which an operator left something out.
    """
    asked = telling_words([facts.directive])
    if not asked:
        return None
    out = LeftOut(facts.log)
    searched = (_on_cards(facts, asked, out), _in_answers(facts, asked, out))
    found = [candidate for candidate in searched if candidate]
    return max(found, key=lambda figure: figure.event, default=None)


def _on_cards(facts: RunFacts, asked: frozenset[str], out: LeftOut) -> Figure | None:
    events = [
        event
        for event in facts.log.latest({EventType.PRESENTATION_EMITTED}, limit=_CARDS)
        if event.sequence < facts.seed
    ]
    times = {event.sequence: event for event in events}
    for card in records_of(facts.log, events):
        if out.bars(card):
            continue
        text = card.digest or ""
        if _FIGURE.search(text) and asked & telling_words([card.index_text]):
            event = times[card.sequence]
            source = f"card:{card.semantic_type}"
            return Figure(_quoted(text), card.trust, source, card.sequence, _when(event))
    return None


def _in_answers(facts: RunFacts, asked: frozenset[str], out: LeftOut) -> Figure | None:
    events = [
        event
        for event in facts.log.latest({EventType.RESPONSE_COMPLETED}, limit=_ANSWERS)
        if event.sequence < facts.seed and event.body is not None
    ]
    texts = facts.log.texts([event.body.id for event in events if event.body is not None])
    for event in events:
        raw = texts.get(event.body.id) if event.body is not None else None
        if raw is None or out.touches(event.sequence):
            continue
        items = decode_event(event.type, ContentFormat(event.payload["format"]), raw)
        said = "\n".join(
            text_of_item(item) for item in items if item.kind is ItemKind.ASSISTANT_MESSAGE
        )
        for sentence in _SENTENCES.split(said):
            if _FIGURE.search(sentence) and asked & telling_words([sentence]):
                # Prose may repeat what a result of its turn said, so it is quoted as what came from outside.
                text = _quoted(sentence.strip())
                return Figure(
                    text, Trust.EXTERNAL_UNTRUSTED, "answer", event.sequence, _when(event)
                )
    return None


def _quoted(text: str) -> str:
    """A text with a figure as it is quoted: a long one from its start, or from a little before the figure, with marks."""
    if len(text) <= _MAX_CHARS:
        return text
    figure = _FIGURE.search(text)
    at = figure.start() if figure is not None else 0
    before = len(truncate_text(text, at - _LEAD_CHARS)) if at > _MAX_CHARS - _LEAD_CHARS else 0
    part = truncate_text(text[before:], _MAX_CHARS)
    more = len(text) - before - len(part)
    opening = f"[... {before:,} characters before ...] " if before else ""
    return f"{opening}{part}" + (f" [... {more:,} more characters ...]" if more else "")


def _when(event: EventRecord) -> str:
    return local_time(event.recorded_at.astimezone(UTC))
