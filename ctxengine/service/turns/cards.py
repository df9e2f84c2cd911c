"""`GET sessions/{id}/cards`: the cards of a session's closed turns, as recorded or, for other engines, made on demand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.turns.card import TurnCard
from ctxengine.engine.turns.closed import ClosedTurns, cards_of, closed_turns
from ctxengine.engine.turns.turn import Turn
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.ledger.queries.turns import TurnSpan, turn_spans
from ctxengine.service.access import session_of
from ctxengine.service.specs import Actor
from ctxengine.service.turns.close_turns import closings_of, open_runs
from ctxengine.service.wiring import log_of


@dataclass(frozen=True, slots=True)
class CardView:
    """One closed turn with its card."""

    number: int
    run: UUID | None
    first: int
    """Event that opens it."""
    last: int
    recorded: int | None
    """The `turn.closed` event that holds the card; None for a card made on demand."""
    erased: bool
    outcome: str
    tokens_full: int
    tokens_card: int
    card: TurnCard | None
    """None where it was erased."""


@dataclass(frozen=True, slots=True)
class CardPage:
    """Some of a session's closed turns, oldest first."""

    cards: tuple[CardView, ...]
    after: int | None
    """Number of the last one shown, where there are more."""
    turns: int
    """Closed turns in all."""


def cards_page(*, actor: Actor, session_id: UUID, after: int = 0, size: int = 50) -> CardPage:
    """The cards of the turns behind number `after`.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    spans = turn_spans(session.tenant_id, session.id)
    busy = {UUID(run) for run in open_runs(session)}
    closed = [span for span in spans if span.run not in busy]
    shown = [span for span in closed if span.number > after][:size]
    more = bool(shown) and shown[-1].number < closed[-1].number
    recorded = closed_turns(log)
    wanted = [span for span in shown if recorded.event(span.number) is None]
    behind = spans[wanted[-1].number :] if wanted else ()
    below = behind[0].first if behind else log.head().sequence + 1
    views = _recorded(shown, log, recorded) + _on_demand(session, log, wanted, EventSeq(below))
    return CardPage(tuple(views), shown[-1].number if more else None, len(closed))


def _recorded(spans: Sequence[TurnSpan], log: PostgresLog, closed: ClosedTurns) -> list[CardView]:
    known = [span for span in spans if closed.event(span.number) is not None]
    cards = cards_of(log, [span.number for span in known], closed=closed)
    views = []
    for span, card in zip(known, cards, strict=True):
        event = closed.event(span.number)
        if event is None:
            continue
        told = event.payload
        views.append(
            CardView(
                number=span.number,
                run=span.run,
                first=told["first"],
                last=told["last"],
                recorded=event.sequence,
                erased=card is None,
                outcome=told["outcome"],
                tokens_full=told["tokens_full"],
                tokens_card=told["tokens_card"],
                card=card,
            )
        )
    return views


def _on_demand(
    session: SessionRow, log: PostgresLog, wanted: Sequence[TurnSpan], below: EventSeq
) -> list[CardView]:
    """Cards of consecutive turns that no event holds; `below` is where the turn behind them begins."""
    if not wanted:
        return []
    units = log.units(EventSeq(wanted[0].first), EventSeq(wanted[-1].last + 1))
    at = [unit.sequence for unit in units]
    turns = [
        Turn(span.number, tuple(units[bisect_left(at, span.first) : bisect_right(at, span.last)]))
        for span in wanted
    ]
    return [
        CardView(
            number=span.number,
            run=span.run,
            first=span.first,
            last=span.last,
            recorded=None,
            erased=False,
            outcome=closing.card.outcome,
            tokens_full=closing.card.tokens_full,
            tokens_card=closing.draft.payload["tokens_card"],
            card=closing.card,
        )
        for span, closing in zip(wanted, closings_of(session, log, turns, below=below), strict=True)
    ]
