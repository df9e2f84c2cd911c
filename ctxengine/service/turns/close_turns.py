"""Closing turns: each one that is over gets its event, its card and its place in the index, once (capacity spec 10).

No model is asked, and nothing is locked while a card is made. What a crash left out is made up for at the next run's start.
A turn of which no card can be made gets a bare one: it must not bar the session.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence

from django.db import Error, transaction

from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.ports import StaleHead, SumColumn
from ctxengine.engine.turns.closed import turns_not_closed
from ctxengine.engine.turns.closing import Closing, bare_closing_of, closing_of
from ctxengine.engine.turns.own_words import OwnWords, own_words
from ctxengine.engine.turns.presentation import records_of
from ctxengine.engine.turns.reading_key import reading_key
from ctxengine.engine.turns.similarity import text_to_embed
from ctxengine.engine.turns.turn import Turn
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.ledger.postings import index_turn
from ctxengine.service.clock import utc_now
from ctxengine.service.readings import readings_of
from ctxengine.service.turns.embedder import configured_embedder, embedded
from ctxengine.service.wiring import counter_of

_log = logging.getLogger(__name__)

ENGINES_WITH_CARDS = frozenset({"working_set"})
"""Engines whose closed turns are recorded; those of others get cards on demand."""

_TRIES = 3
_PASSED_ON = (Error, MemoryError)
"""What says nothing of a turn, but of the machine or the database."""
EVIDENCE_TOKENS = 400_000
"""How far back an answer is held against the session's evidence (tokens): more than any window it was written in."""


def close_missing_turns(session: SessionRow, log: PostgresLog) -> int:
    """Record every turn that is over and has no event yet; gives how many were recorded.

    A race that is lost each time is no error: the winner may have recorded them, and the next run's start looks again.
    """
    if session.engine not in ENGINES_WITH_CARDS:
        return 0
    for _ in range(_TRIES):
        head = log.head()
        turns = turns_not_closed(
            log,
            log.newest(EventType.TURN_CLOSED),
            below=EventSeq(head.sequence + 1),
            open_runs=open_runs(session),
        )
        if not turns:
            return 0
        closings = closings_of(session, log, turns, below=EventSeq(head.sequence + 1))
        try:
            _record(session, log, _with_vectors(closings), head.sequence)
        except StaleHead:
            continue
        return len(closings)
    return 0


def closings_of(
    session: SessionRow, log: PostgresLog, turns: Sequence[Turn], *, below: EventSeq
) -> list[Closing]:
    """What the close of these turns records; reads the log and writes nothing. No content makes it fail.

    Args:
        turns: consecutive turns, at least one.
        below: where the turn behind them begins, or the log's end.
    """
    counter = counter_of(session.provider, session.model)
    outcomes = _outcomes(session, turns)
    before = max(0, log.at(turns[0].first).tokens - EVIDENCE_TOKENS)
    first = log.first(SumColumn.TOKENS, before, turns[0].first).sequence
    words = _words(turns, SessionTexts(log, below, first))
    readings = readings_of(log, turns)
    ends = [*(following.first for following in turns[1:]), below]
    emitted = log.latest({EventType.PRESENTATION_EMITTED}, after=EventSeq(turns[0].first - 1))[::-1]
    places = [event.sequence for event in emitted]
    made = []
    for turn, own, end in zip(turns, words, ends, strict=True):
        run = turn.units[0].items[0].run
        outcome = outcomes.get(str(run), "completed")
        try:
            closing = closing_of(
                turn,
                outcome=outcome,
                counter=counter,
                words=own or own_words([turn], SessionTexts(log, below, first))[0],
                presentations=records_of(
                    log, emitted[bisect_left(places, turn.first) : bisect_left(places, end)]
                ),
                reading=reading_key(turn, readings.get(turn.number)),
                owner=session.principal,
            )
        except _PASSED_ON:
            raise
        except Exception as error:
            # What an odd turn holds stays out of the log, and so does the message, which may quote it.
            _log.error(
                "Turn %d of session %s got a bare card: %s while it was closed.",
                turn.number,
                session.id,
                type(error).__name__,
            )
            closing = bare_closing_of(
                turn, outcome=outcome, counter=counter, owner=session.principal
            )
        made.append(closing)
    return made


def _words(turns: Sequence[Turn], texts: SessionTexts) -> Sequence[OwnWords | None]:
    """The own words of all turns in one pass; None for each where that fails, for then each is looked at alone."""
    try:
        return own_words(turns, texts)
    except _PASSED_ON:
        raise
    except Exception:
        return [None] * len(turns)


def _with_vectors(closings: Sequence[Closing]) -> Sequence[Closing]:
    """The same with the vectors of their cards, where an embedder is configured."""
    embedder = configured_embedder()
    if embedder is None:
        return closings
    vectors = embedded(embedder, [text_to_embed(closing.card) for closing in closings])
    return [
        closing._replace(terms=closing.terms._replace(embedding=vector, embedder=embedder.version))
        for closing, vector in zip(closings, vectors, strict=False)
    ] or closings


def _record(
    session: SessionRow, log: PostgresLog, closings: Sequence[Closing], expected: EventSeq
) -> None:
    with transaction.atomic():
        # The index comes first: the session's lock, which the append takes, is then held for a moment only.
        for closing in closings:
            index_turn(session.tenant_id, session.id, closing.terms)
        log.append([closing.draft for closing in closings], expected=expected, at=utc_now())


def open_runs(session: SessionRow) -> frozenset[str]:
    """Ids of the session's runs that have not ended."""
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    return frozenset(str(id) for id in rows.exclude(state="ended").values_list("id", flat=True))


def _outcomes(session: SessionRow, turns: Sequence[Turn]) -> dict[str, str]:
    runs = {str(item.run) for turn in turns for item in turn.items if item.run is not None}
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, id__in=runs)
    return {str(id): outcome for id, outcome in rows.values_list("id", "outcome") if outcome}
