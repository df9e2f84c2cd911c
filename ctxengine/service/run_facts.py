"""What a response is judged against: its run so far, read once and only where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import (
    PLATFORM_SOURCE,
    Item,
    ItemKind,
    Unit,
    said_by_a_guard,
    speaks_in_user_role,
)
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.reading import Reading, read_directive
from ctxengine.engine.turns.presentation import PresentationRecord, records_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow

_LOOKED_AT = 256
"""Newest events of a kind that are searched for those of the run."""


class Retrieved(NamedTuple):
    """One result of the run with the tool that gave it."""

    item: Item
    tool: PinnedTool | None
    """None for a tool that no plan pins."""


class RunFacts:
    """One open run as the log holds it."""

    def __init__(self, run: RunRow, log: PostgresLog, plan: Plan, *, owner: str = "") -> None:
        """Nothing is read before it is needed.

        Args:
            owner: principal with whose erasure goes what is written of the run.
        """
        self.owner = owner
        self.run = run
        self.log = log
        self.plan = plan

    @property
    def seed(self) -> EventSeq:
        """Event of the message that opened the run."""
        return EventSeq(self.run.seed_event_sequence or 1)

    @cached_property
    def units(self) -> Sequence[Unit]:
        """The run's units so far."""
        return self.log.units(self.seed, EventSeq(self.log.head().sequence + 1))

    @cached_property
    def results(self) -> tuple[Retrieved, ...]:
        """What tools gave in the run, in order; the platform's own answers are none of it."""
        found = []
        for unit in self.units:
            named = {
                i.wire_call_id: i.name or "" for i in unit.items if i.kind is ItemKind.TOOL_CALL
            }
            for item in unit.items:
                if item.kind is ItemKind.TOOL_RESULT and item.source != PLATFORM_SOURCE:
                    name = item.source.removeprefix("tool:") or named.get(item.wire_call_id, "")
                    found.append(Retrieved(item, self.plan.tool(name)))
        return tuple(found)

    @cached_property
    def cards(self) -> tuple[PresentationRecord, ...]:
        """Cards of the run, oldest first."""
        return records_of(self.log, self._mine(EventType.PRESENTATION_EMITTED))

    @cached_property
    def judgements(self) -> tuple[EventRecord, ...]:
        """What guards said of the run's earlier responses, oldest first."""
        return self._mine(EventType.GUARD_JUDGED)

    @cached_property
    def responses(self) -> tuple[EventSeq, ...]:
        """Events of the run's latest responses, oldest first."""
        return tuple(event.sequence for event in self._mine(EventType.RESPONSE_COMPLETED))

    @cached_property
    def said(self) -> tuple[str, ...]:
        """All that the user said in the run, oldest first."""
        return tuple(
            text_of_item(item)
            for unit in self.units
            for item in unit.items
            if item.kind is ItemKind.USER_MESSAGE
            and not said_by_a_guard(item)
            and speaks_in_user_role(item.kind, item.trust, item.source)
        )

    @property
    def directive(self) -> str:
        """The user's newest words in the run."""
        return self.said[-1] if self.said else ""

    @cached_property
    def reading(self) -> Reading:
        """The reading in force: the runtime's own, else that of the user's newest words."""
        taken = self._mine(EventType.READING_TAKEN)
        if taken and taken[-1].payload["source"] == "runtime" and taken[-1].body is not None:
            text = self.log.body(taken[-1].body.id)
            if text is not None:
                return Reading.model_validate_json(text)
        return read_directive(self.directive, served=served_by(self.plan))

    def _mine(self, type: EventType) -> tuple[EventRecord, ...]:
        newest = self.log.latest({type}, limit=_LOOKED_AT, after=self.seed)
        run = str(self.run.id)
        return tuple(event for event in reversed(newest) if event.run == run)


def served_by(plan: Plan) -> frozenset[str]:
    """What the plan's tools say they serve."""
    return frozenset(name for tool in plan.tools for name in tool.serves)
