"""What an import writes of a request that is rebuilt later: its inputs and its budget, from sums alone (design 7.17).

A step is a matter of arithmetic: where history starts, what the open run takes, what is left, and which floors have to rise
where nothing is. None of that reads content. The floors that rise are events of the log and are written at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from ctxengine.engine.budget.demand import Demand, Floors
from ctxengine.engine.budget.yields import Allocation, allocate
from ctxengine.engine.events import EventDraft
from ctxengine.engine.fresh import OPENING_TEXT, Runtime, omission_text, runtime_text
from ctxengine.engine.history.suffix import suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.manifest import Budget, YieldStep
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan
from ctxengine.engine.ports import TokenCounter, UnitSums
from ctxengine.engine.step import SessionFacts, StepInputs, fixed_frame
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.compactors import MadeFor
from ctxengine.service.imports.import_log import ImportLog
from ctxengine.service.request_rows import pressure_draft, yield_drafts

_NO_YIELDS = '{"yields": []}'
_EPOCH = 1
"""An imported session has one plan."""
_OPENS_WITH_A_MESSAGE = frozenset({ItemKind.USER_MESSAGE, ItemKind.SUMMARY})


class StepPlace(NamedTuple):
    """Where in a log a step stands."""

    head: int
    content_head: int
    boundary: int
    now: str | None


class Outline(NamedTuple):
    """A request before it is rebuilt."""

    place: StepPlace
    inputs: str
    """JSON text, as of the budget."""
    budget: str
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
    inputs: str
    """JSON text, as of the budget and the manifest."""
    budget: str
    prefix_sha256: str
    wire_prefix_sha256: str
    total_tokens: int
    usage: dict[str, Any]
    created_at: datetime
    manifest: str
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
        self, log: ImportLog, facts: SessionFacts, wanted: StepInputs, counter: TokenCounter
    ) -> None:
        """Work out what all steps of the session share.

        Args:
            wanted: inputs of any step, as far as they are the session's.
        """
        plan = facts.plan
        self._log, self._counter, self._policy = log, counter, plan.policy
        self._fixed = fixed_frame(plan, wanted.factor_millionths)
        self._inputs = _members(wanted.model_dump(mode="json"), _OF_THE_STEP)
        budget = Budget(
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
        self._budget = _members(budget, _OF_THE_REQUEST)
        self._stretch: tuple[tuple[int, ...], _Stretch] | None = None
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

    def took_in(self, first: ItemKind, last: ItemKind, unit: EventSeq) -> None:
        """The items of one event were appended, of these kinds at both ends."""
        if self._opening is None:
            self._opening = first
        if unit >= self._last_unit:
            self._last_unit, self._last_kind = unit, last

    @property
    def can_outline(self) -> bool:
        """Whether a step's request is a matter of sums, its yields included."""
        return self._last_kind is not None and not self._keeps_blocks

    def allocation(self, wanted: StepPlace, floors: Floors) -> Allocation:
        """How a step that does not fit under these floors gets what it needs.

        Raises:
            BudgetExceeded: what never yields does not fit.
        """
        log, boundary = self._log, EventSeq(wanted.boundary)
        head = EventSeq(wanted.content_head + 1)
        spoken = log.said_last(boundary)
        return allocate(
            fixed=self._fixed,
            policy=self._policy,
            demand=Demand(
                active=log.at(head).tokens - log.at(boundary).tokens - spoken,
                user_input=spoken,
                runtime=self._runtime_tokens(wanted.now),
                omission=self._omission,
                newest=log.newest_results if log.newest_results >= boundary else EventSeq(0),
            ),
            floors=floors,
            index=log,
            boundary=boundary,
            head=head,
        )

    def outline(self, wanted: StepPlace, floors: Floors) -> Outline | None:
        """The request of a step; None where it has to be rebuilt to be known.

        Args:
            floors: those in force.
        """
        if not self.can_outline:
            return None
        fixed, boundary = self._fixed, EventSeq(wanted.boundary)
        stretch = self._before_the_run(floors, boundary)
        head = self._log.at(EventSeq(wanted.content_head + 1))
        within = stretch.start
        if floors.pointer > boundary:
            within = self._log.at(min(floors.pointer, EventSeq(wanted.content_head + 1)))
        never_yield = (
            head.tokens
            - stretch.start.tokens
            + self._runtime_tokens(wanted.now)
            - (within.saved_tokens - stretch.start.saved_tokens)
        )
        room = fixed.body - never_yield - (self._omission if floors.cut else 0)
        if stretch.history > room:
            return None
        request = self._prefix_rows + stretch.row_nine + never_yield + stretch.history
        results = stretch.results + _pointed(stretch.start, within) + _whole(within, head)
        active = floors.pointer if floors.pointer > boundary else 0
        now = "null" if wanted.now is None else json.dumps(wanted.now)
        inputs = (
            f'{self._inputs}"head":{wanted.head:d},"content_head":{wanted.content_head:d},"boundary":{boundary:d},"now":{now}'
            f',"cut":{floors.cut:d},"pointer":{floors.pointer:d},"active_pointer":{active:d}}}'
        )
        budget = (
            f'{self._budget}"never_yield":{never_yield},"history_room":{max(0, room)},"history":{stretch.history}'
            f',"tool_results":{results},"free":{max(0, fixed.usable - request)},"request":{request}}}'
        )
        return Outline(wanted, inputs, budget, request)

    def _before_the_run(self, floors: Floors, boundary: EventSeq) -> _Stretch:
        """What stands before the open run, which is the same for all of its steps."""
        log = self._log
        key = (floors.cut, floors.pointer, boundary, log.shifts)
        if self._stretch is None or self._stretch[0] != key:
            start = log.at(boundary)
            first = log.at(min(floors.cut, boundary))
            split = log.at(max(floors.cut, min(floors.pointer, boundary)))
            history = suffix_tokens(
                log, cut=floors.cut, boundary=boundary, pointer_floor=floors.pointer
            )
            results = _pointed(first, split) + _whole(split, start)
            row_nine = self._row_nine_tokens(floors.cut, boundary)
            self._stretch = (key, _Stretch(start, history, results, row_nine))
        return self._stretch[1]

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


class _Stretch(NamedTuple):
    """What stands before the open run."""

    start: UnitSums
    """Sums where the run begins."""
    history: int
    """Tokens of what is shown of it."""
    results: int
    """What tool results take of that."""
    row_nine: int


_OF_THE_STEP = (
    "head", "content_head", "boundary", "now", "cut", "pointer", "active_pointer",
)  # fmt: skip
_OF_THE_REQUEST = ("never_yield", "history_room", "history", "tool_results", "free", "request")


def _members(value: Mapping[str, Any], without: tuple[str, ...]) -> str:
    """The beginning of an object's JSON text, with the members that stay the same and a comma behind each."""
    rest = {name: member for name, member in value.items() if name not in without}
    return json.dumps(rest)[:-1] + ","


def shared_inputs(plan: Plan) -> StepInputs:
    """What the inputs of all requests of an imported session share."""
    return StepInputs(
        head=0,
        content_head=0,
        boundary=0,
        epoch=_EPOCH,
        engine=plan.engine,
        builder=BUILDER_VERSION,
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
    yields: Sequence[YieldStep] = (),
) -> OutlinedRow:
    """The row of an outlined request, the next of its session and its run."""
    shown = [step.model_dump(mode="json") for step in yields]
    return OutlinedRow(
        tenant_id=session.tenant_id,
        id=request_id,
        session_id=session.id,
        run_id=run.id,
        number=session.requests + 1,
        run_number=run.number,
        step=run.steps,
        content_sequence=outline.place.content_head,
        act_sequence=session.act_sequence,
        epoch=_EPOCH,
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
        manifest=json.dumps({"yields": shown}) if shown else _NO_YIELDS,
    )


def outlined_yields(allocation: Allocation, made_for: MadeFor, *, run: str) -> list[EventDraft]:
    """The events of what yields before an outlined request; imported results are never excerpts."""
    drafts = yield_drafts(allocation.raises, made_for, run=run)
    if allocation.under_pressure:
        request = made_for.forced_by
        drafts.append(pressure_draft(allocation.yields, run=run, legacy=0, request=request))
    return drafts


def outlined_payload(row: OutlinedRow) -> dict[str, Any]:
    """What the event of an outlined request carries: no hash, since none is known yet."""
    return {
        "request": str(row.id),
        "step": row.step,
        "epoch": row.epoch,
        "prefix_sha256": row.prefix_sha256,
        "tokens": row.total_tokens,
        "reconstructed": True,
    }


def _whole(since: UnitSums, until: UnitSums) -> int:
    return until.result_tokens - since.result_tokens


def _pointed(since: UnitSums, until: UnitSums) -> int:
    return max(0, _whole(since, until) - (until.saved_tokens - since.saved_tokens))
