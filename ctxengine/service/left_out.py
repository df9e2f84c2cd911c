"""What an operator left out of a session, for whatever quotes it beside the requests (design 8)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ctxengine.engine.history.left_out import any_within
from ctxengine.engine.standing import history_acts
from ctxengine.engine.turns.presentation import PresentationRecord
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.queries.turns import TurnSpan, turn_spans


class LeftOut:
    """Read once, and the session's turns only where something was left out at all."""

    def __init__(self, log: PostgresLog) -> None:
        """Nothing is read before it is needed."""
        self._log = log

    @cached_property
    def items(self) -> frozenset[str]:
        """Ids of the items that are left out now."""
        return frozenset(history_acts(self._log).marks.excluded)

    def any_of(self, items: Iterable[str]) -> bool:
        """Whether one of these items is left out."""
        return not self.items.isdisjoint(items)

    def touches(self, sequence: int) -> bool:
        """Whether something is left out of the turn in which an event stands: what was said there may repeat it."""
        if not self.items:
            return False
        turn = next((span for span in reversed(self._spans) if span.first <= sequence), None)
        return turn is not None and any_within(self.items, turn.first, max(turn.last, sequence))

    def bars(self, shown: PresentationRecord) -> bool:
        """Whether a card may repeat what is left out: by what it was made from, or by its turn."""
        if not self.items:
            return False
        return self.any_of((shown.source, *shown.derived_from)) or self.touches(shown.sequence)

    @cached_property
    def _spans(self) -> tuple[TurnSpan, ...]:
        return turn_spans(self._log.tenant, self._log.session)
