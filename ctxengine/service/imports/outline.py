"""What an import writes of a request that is rebuilt later: its inputs and its budget, from sums alone (design 7.17).

A step that needs no yield is a matter of arithmetic: where history starts, what the open run takes, what is left. None of that
reads content. A step that does need one raises floors, which are events of the log; it is rebuilt whole at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from ctxengine.engine.budget.demand import Floors
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.fresh import OPENING_TEXT, Runtime, omission_text, runtime_text
from ctxengine.engine.history.suffix import suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.log.records import ItemRecord
from ctxengine.engine.manifest import Budget
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import TokenCounter, UnitSums
from ctxengine.engine.step import SessionFacts, StepInputs, fixed_frame
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow, SessionRow

_OPENS_WITH_A_MESSAGE = frozenset({ItemKind.USER_MESSAGE, ItemKind.SUMMARY})


class Outline(NamedTuple):
    """A request before it is rebuilt."""

    inputs: dict[str, Any]
    budget: dict[str, Any]
    total_tokens: int


@dataclass(slots=True)
class OutlinedRow:
    """The row of a request that is rebuilt later: no hash, no manifest but for its yields, no markers."""

    tenant_id: UUID
    id: UUID
    session_id: UUID
    run_id: UUID
    number: int
    run_number: int
    step: int
    content_sequence: int
    act_sequence: int
    epoch: int
    engine: str
    provider: str
    model: str
    inputs: dict[str, Any]
    budget: dict[str, Any]
    prefix_sha256: str
    wire_prefix_sha256: str
    total_tokens: int
    usage: dict[str, Any]
    created_at: datetime
    manifest: dict[str, Any] = field(default_factory=lambda: {"yields": []})
    cache: dict[str, Any] = field(default_factory=dict)
    request_sha256: str = ""
    body_bytes: int = 0
    body_chars: int = 0
    status: str = "answered"
    verdict: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    reconstructed: bool = True
    build_ms: float = 0
    answered_at: datetime | None = None


class Outlines:
    """Follows a session's log as it grows and outlines the request of each step."""

    def __init__(
        self, log: MemoryLog, facts: SessionFacts, wanted: StepInputs, counter: TokenCounter
    ) -> None:
        """Work out what all steps of the session share.

        Args:
            wanted: inputs of any step, as far as they are the session's.
        """
        plan = facts.plan
        self._log, self._counter = log, counter
        self._fixed = fixed_frame(plan, wanted.factor_millionths)
        self._inputs = wanted.model_dump(mode="json")
        self._budget = Budget(
            window=self._fixed.window,
            policy_cap=self._fixed.policy_cap,
            total=self._fixed.total,
            factor=self._fixed.factor,
            reserve=self._fixed.reserve,
            margin=self._fixed.margin,
            usable=self._fixed.usable,
            prefix=self._fixed.prefix,
            body=self._fixed.body,
            never_yield=0,
            fresh=0,
            history_room=0,
            history=0,
            tool_results=0,
            tool_results_cap=self._fixed.tool_results_cap,
            free=0,
            request=0,
        ).model_dump(mode="json")
        self._prefix_rows = sum(tokens for tokens, _ in plan.row_counts.values())
        # The most that the line for left-out history costs, as a step reckons with it.
        most = omission_text(turns=99_999, units=99_999, through=99_999_999)
        self._omission = counter.text(most)
        self._keeps_blocks = plan.fresh_rows == "appended"
        self._opening: ItemKind | None = None
        """What the conversation opens with."""
        self._last_unit = EventSeq(0)
        self._last_kind: ItemKind | None = None
        """What the open run ends with; None while nothing stands in it."""
        self._runtime: tuple[tuple[str | None, bool], int] = ((None, False), 0)
        self._row_nine: tuple[EventSeq, int] = (EventSeq(-1), 0)

    def run_opened(self) -> None:
        """The next event opens a run."""
        self._last_kind = None

    def took_in(self, items: Sequence[ItemRecord]) -> None:
        """The items of one event were appended."""
        unit, last = items[-1].unit, items[-1].facts.kind
        if self._opening is None:
            self._opening = items[0].facts.kind
        if unit >= self._last_unit:
            self._last_unit, self._last_kind = unit, last

    def outline(self, wanted: StepInputs, floors: Floors) -> Outline | None:
        """The request of a step; None where it has to be rebuilt to be known.

        Args:
            wanted: the step's inputs but for what is decided here.
            floors: those in force.
        """
        if self._last_kind is None or self._keeps_blocks:
            return None
        log, fixed = self._log, self._fixed
        boundary, below = EventSeq(wanted.boundary), EventSeq(wanted.content_head + 1)
        start, end = log.at(boundary), log.at(below)
        inside = log.at(min(max(floors.pointer, boundary), below))
        runtime = self._runtime_tokens(wanted.now)
        never_yield = (
            end.tokens - start.tokens + runtime - (inside.saved_tokens - start.saved_tokens)
        )
        history = suffix_tokens(
            log, cut=floors.cut, boundary=boundary, pointer_floor=floors.pointer
        )
        told = self._omission if floors.cut else 0
        room = fixed.body - never_yield - told
        if history > room:
            return None
        request = (
            self._prefix_rows + self._row_nine_tokens(floors.cut, boundary) + never_yield + history
        )
        inputs = self._inputs | {
            "head": wanted.head,
            "content_head": wanted.content_head,
            "boundary": boundary,
            "now": wanted.now,
            "cut": floors.cut,
            "pointer": floors.pointer,
            "active_pointer": floors.pointer if floors.pointer > boundary else 0,
        }
        budget = self._budget | {
            "never_yield": never_yield,
            "history_room": max(0, room),
            "history": history,
            "tool_results": self._results(floors, boundary, start, end),
            "free": max(0, fixed.usable - request),
            "request": request,
        }
        return Outline(inputs, budget, request)

    def _runtime_tokens(self, now: str | None) -> int:
        key = (now, self._last_kind is ItemKind.ASSISTANT_MESSAGE)
        if self._runtime[0] != key:
            moment = datetime.fromisoformat(now) if now else None
            text = runtime_text(Runtime(now=moment, continues=key[1]))
            self._runtime = (key, self._counter.text(text))
        return self._runtime[1]

    def _row_nine_tokens(self, cut: EventSeq, boundary: EventSeq) -> int:
        """What the line takes that tells of left-out history, or opens a conversation that the assistant began."""
        at = min(cut, boundary)
        if self._row_nine[0] != at:
            self._row_nine = (at, self._counter.text(self._line(at)))
        return self._row_nine[1]

    def _line(self, cut: EventSeq) -> str:
        left_out = self._log.at(cut) if cut > 0 else None
        if left_out is not None and left_out.index:
            return omission_text(turns=left_out.turns, units=left_out.index, through=cut - 1)
        return "" if self._opening in _OPENS_WITH_A_MESSAGE else OPENING_TEXT

    def _results(self, floors: Floors, boundary: EventSeq, start: UnitSums, end: UnitSums) -> int:
        """What tool results take, in the form in which each stretch shows them."""
        first = self._log.at(min(floors.cut, boundary))
        split = self._log.at(max(floors.cut, min(floors.pointer, boundary)))
        shown = _pointed(first, split) + _whole(split, start)
        within = self._log.at(floors.pointer) if floors.pointer > boundary else start
        return shown + _pointed(start, within) + _whole(within, end)


def shared_inputs(plan: Plan) -> StepInputs:
    """What the inputs of all requests of an imported session share."""
    return StepInputs(
        head=0,
        content_head=0,
        boundary=0,
        epoch=1,
        engine=plan.engine,
        builder=plan.builder,
        renderer=plan.renderer,
        counter=plan.counter,
        policy=plan.policy.label,
        framing=plan.framing_version,
    )


def outlined_row(
    outline: Outline,
    plan: Plan,
    session: SessionRow,
    run: RunRow,
    *,
    request_id: UUID,
    usage: dict[str, Any],
    at: datetime,
) -> OutlinedRow:
    """The row of an outlined request, the next of its session and its run."""
    return OutlinedRow(
        tenant_id=session.tenant_id,
        id=request_id,
        session_id=session.id,
        run_id=run.id,
        number=session.requests + 1,
        run_number=run.number,
        step=run.steps,
        content_sequence=outline.inputs["content_head"],
        act_sequence=session.act_sequence,
        epoch=outline.inputs["epoch"],
        engine=session.engine,
        provider=plan.provider,
        model=plan.model,
        inputs=outline.inputs,
        budget=outline.budget,
        prefix_sha256=plan.prefix_sha256,
        wire_prefix_sha256=plan.wire_prefix_sha256,
        total_tokens=outline.total_tokens,
        usage=usage,
        created_at=at,
    )


def outlined_draft(row: OutlinedRow) -> EventDraft:
    """The event of an outlined request: it names no hash, since none is known yet."""
    return EventDraft(
        type=EventType.REQUEST_STARTED,
        trust=Trust.PLATFORM,
        run=str(row.run_id),
        payload={
            "request": str(row.id),
            "step": row.step,
            "epoch": row.epoch,
            "prefix_sha256": row.prefix_sha256,
            "tokens": row.total_tokens,
            "reconstructed": True,
        },
    )


def _whole(since: UnitSums, until: UnitSums) -> int:
    return until.result_tokens - since.result_tokens


def _pointed(since: UnitSums, until: UnitSums) -> int:
    return max(0, _whole(since, until) - (until.saved_tokens - since.saved_tokens))
