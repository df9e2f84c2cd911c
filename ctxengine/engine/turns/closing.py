"""The close of a turn, without any model: its card, its event, and the terms it is found by (capacity spec 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.digest import CURRENT_DIGESTS
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.presentations.fences import without_shown
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.turns.card import (
    PresentationLine,
    ReadingKey,
    TurnCard,
    card_of,
    card_tokens,
    evidence_ends,
    short_form,
)
from ctxengine.engine.turns.index_text import index_terms
from ctxengine.engine.turns.own_words import OwnWords
from ctxengine.engine.turns.postings import TurnTerms
from ctxengine.engine.turns.presentation import PresentationRecord
from ctxengine.engine.turns.record import closed_record, repeats_in
from ctxengine.engine.turns.terms import found_by
from ctxengine.engine.turns.turn import Turn


class Closing(NamedTuple):
    """What the close of one turn records."""

    card: TurnCard
    draft: EventDraft
    """The `turn.closed` event with the card as its body."""
    terms: TurnTerms


def closing_of(
    turn: Turn,
    *,
    outcome: str,
    counter: TokenCounter,
    words: OwnWords,
    presentations: Sequence[PresentationRecord] = (),
    reading: ReadingKey | None = None,
    owner: str = "",
) -> Closing:
    """Close a turn.

    Args:
        outcome: how its run ended.
        words: what it said that was its own; see `own_words`.
        presentations: what the turn showed the user, in order.
        reading: how its directive was read.
        owner: principal whose erasure takes the card along.
    """
    narration, trust = _narration(turn, words, outcome)
    narration = without_shown(narration, {shown.payload_sha256 for shown in presentations})
    repeats = repeats_in(turn.units, presentations)
    full = sum(unit.tokens for unit in closed_record(turn.units, counter, repeats=repeats))
    card = card_of(
        turn,
        outcome=outcome,
        tokens_full=full,
        narration=narration,
        narration_trust=trust,
        arguments=words.arguments,
        trusts=words.trust,
        presentations=[_line(shown) for shown in presentations],
        reading=reading,
    )
    asked = "\n".join(text_of_item(item) for item in turn.directives)
    shown = [entry.index_text for entry in presentations]
    if reading is not None:
        # A runtime's own reading may name what no word of the directive does.
        shown.append(
            " ".join([*reading.domains, *reading.entities]) if reading.source == "runtime" else ""
        )
    terms = index_terms(turn, asked=asked, words=words, shown=shown)
    draft = _draft(turn, card, counter, owner, repeats=repeats)
    return Closing(card, draft, TurnTerms(turn.number, terms))


def bare_closing_of(turn: Turn, *, outcome: str, counter: TokenCounter, owner: str = "") -> Closing:
    """Close a turn of which no full card can be made: what was asked and how it ended, without a trace of its calls.

    It never fails on content, so that one odd turn bars no other; its event is marked `bare`. The figures are those of the turn
    as it stood open.

    Args:
        outcome: how its run ended.
        owner: principal whose erasure takes the card along.
    """
    try:
        asked = short_form("\n".join(text_of_item(item) for item in turn.directives))
        terms = Counter(found_by(asked))
    except Exception:
        asked, terms = "", Counter[str]()
    card = TurnCard(
        number=turn.number,
        first=turn.first,
        last=turn.last,
        asked=asked,
        asked_trust=lowest(item.trust for item in turn.directives)
        if turn.directives
        else Trust.MODEL,
        did=(),
        more_calls=len(turn.exchanges),
        more_evidence=evidence_ends(turn.exchanges),
        narration="",
        outcome=outcome,
        tokens_full=sum(unit.tokens for unit in turn.units),
    )
    draft = _draft(turn, card, counter, owner, bare=True)
    return Closing(card, draft, TurnTerms(turn.number, terms))


def _draft(
    turn: Turn,
    card: TurnCard,
    counter: TokenCounter,
    owner: str,
    *,
    bare: bool = False,
    repeats: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> EventDraft:
    return EventDraft(
        type=EventType.TURN_CLOSED,
        trust=card.trust,
        run=str(run) if (run := turn.units[0].items[0].run) is not None else None,
        payload={
            "number": card.number,
            "first": card.first,
            "last": card.last,
            "tokens_full": card.tokens_full,
            "tokens_open": sum(unit.tokens for unit in turn.units),
            "tokens_card": card_tokens(card, counter),
            "asked_tokens": sum(item.tokens for item in turn.directives),
            "counter": counter.label,
            "outcome": card.outcome,
            "trust": card.trust.value,
            "version": card.version,
            "digests": CURRENT_DIGESTS,
        }
        | ({"bare": True} if bare else {})
        | (
            {"repeats": {str(unit): [*known] for unit, known in repeats.items()}} if repeats else {}
        ),
        body=card.model_dump_json(),
        owner=owner,
    )


def _narration(turn: Turn, words: OwnWords, outcome: str) -> tuple[str, Trust]:
    """The answer; where the platform ended the turn with words of its own in place of it, those."""
    said = words.narration_of(turn)
    if turn.statement and (outcome == "degraded" or not said):
        return turn.statement, Trust.PLATFORM
    return said, words.narration_trust_of(turn)


def _line(shown: PresentationRecord) -> PresentationLine:
    return PresentationLine(
        id=shown.id,
        semantic_type=shown.semantic_type,
        title=shown.title or "",
        digest=shown.digest if shown.digest is not None else "[erased]",
        derived_from=shown.derived_from,
        trust=shown.trust,
    )
