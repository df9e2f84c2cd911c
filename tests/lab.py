"""The engine as a library: sessions in memory, requests built without a database, sessions drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from hypothesis import strategies as st

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.step import (
    Memory,
    Prepared,
    SessionFacts,
    StepInputs,
    build_step,
    fixed_frame,
    floors_of,
    prepare,
)
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.wire.registry import renderer_for
from tests.cast import AT, Call, PricedCounter, Scribe, memory_log, sized

NONCE_KEY = bytes(range(32))
READ = PinnedTool(
    name="read",
    wire_name="",
    description="Reads.",
    input_schema='{"type":"object"}',
    required_scopes=("b", "a"),
    server="files",
)


def a_plan(
    *,
    provider: str = "anthropic",
    window: int = 8_000,
    policy: BudgetPolicy = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50),
    tools: Sequence[PinnedTool] = (READ,),
    counter: TokenCounter | None = None,
    epoch: int = 1,
    **fields: object,
) -> Plan:
    """A resolved plan; tokens are priced unless another counter is given."""
    request = PlanRequest(
        engine="suffix",
        provider=provider,
        model="m",
        window=window,
        max_output=2_000,
        instructions="Answer.",
        tools=tools,
        policy=policy,
        epoch=epoch,
        **fields,  # type: ignore[arg-type]
    )
    return resolve_plan(
        request,
        counter=counter or PricedCounter(),
        renderer=renderer_for(provider),
        nonce_key=NONCE_KEY,
    )


class Step(NamedTuple):
    """One built request and the decision behind it."""

    prepared: Prepared
    built: ModelRequest

    @property
    def carried(self) -> list[tuple[int | None, str]]:
        """Everything but the fresh rows: (unit, digest of its bytes), in wire order."""
        return [
            (unit, digest)
            for stretch in self.built.stretches
            if stretch.row in {9, 10, 15}
            for unit, digest in zip_longest(
                (unit.sequence for unit in stretch.units), stretch.digests
            )
        ]

    @property
    def shown_tokens(self) -> int:
        """What the units cost in the forms they are shown in."""
        return sum(
            stretch.totals.pointer_tokens if stretch.form == "pointer" else stretch.totals.tokens
            for stretch in self.built.stretches
        )


@dataclass
class Lab:
    """One session in memory."""

    plan: Plan
    log: MemoryLog = field(default_factory=memory_log)
    seed: EventSeq = EventSeq(1)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Nothing is written yet."""
        self.counter = PricedCounter()
        self.scribe = Scribe(self.log)
        self.facts = SessionFacts(self.plan, NONCE_KEY, "session-" + "0" * 32)
        self._calls = 0

    def ask(self, tokens: int) -> None:
        """Open a run with a message of that size."""
        self.seed = self.scribe.user(f"{tokens}|asked")

    def act(self, *sizes: int, order: Sequence[int] | None = None) -> None:
        """A step that calls tools whose results have these sizes; `order` is that of arrival."""
        ids = [f"c{self._calls + n}" for n in range(len(sizes))]
        self._calls += len(sizes)
        self.scribe.step(*(Call(name, "read") for name in ids))
        for place in order if order is not None else range(len(sizes)):
            self.scribe.result(ids[place], sized(sizes[place]))

    def reply(self, tokens: int) -> None:
        """The run's answer."""
        self.scribe.answers(f"{tokens}|said")

    def build(self, memory: Memory | None = None, factor: int = 1_000_000) -> Step:
        """Prepare, write the floors that rise, build; as the loop does it."""
        memory = memory or Memory()
        head = self.log.head()
        wanted = StepInputs(
            head=head.sequence,
            content_head=head.content_sequence,
            boundary=self.seed,
            epoch=self.plan.epoch,
            engine="suffix",
            builder=self.plan.builder,
            renderer=self.plan.renderer,
            counter=self.plan.counter,
            policy=self.plan.policy.label,
            framing=self.plan.framing_version,
            factor_millionths=factor,
            now="2026-03-28T12:00:00+01:00",
        )
        total = fixed_frame(self.plan, factor).total
        prepared = prepare(
            self.log,
            self.facts,
            wanted,
            memory=memory,
            floors=floors_of(self.log.newest_yields(), total),
            counter=self.counter,
        )
        for raised in prepared.allocation.raises:
            payload = {
                "class": raised.budget_class.value,
                "floor_sequence": raised.floor,
                "plan_total": total,
            }
            draft = EventDraft(EventType.YIELD_APPLIED, Trust.PLATFORM, payload)
            self.log.append([draft], expected=None, at=AT)
        built = build_step(
            prepared.run, self.facts, opaque={}, renderer=renderer_for(self.plan.provider)
        )
        step = Step(prepared, built)
        self.steps.append(step)
        return step

    def units(self) -> Sequence[Unit]:
        """All units so far."""
        return self.log.units(EventSeq(0), EventSeq(self.log.head().sequence + 1))


class Turn(NamedTuple):
    """A drawn run: message size, result sizes of each step, answer size."""

    message: int
    steps: tuple[tuple[int, ...], ...]
    reply: int


def turns(*, largest: int = 400, most: int = 8) -> st.SearchStrategy[list[Turn]]:
    """Sessions as lists of runs; sizes up to `largest` tokens."""
    size = st.integers(1, largest)
    batch = st.lists(size, min_size=1, max_size=3).map(tuple)
    turn = st.builds(Turn, size, st.lists(batch, max_size=3).map(tuple), size)
    return st.lists(turn, min_size=1, max_size=most)


def played(lab: Lab, session: Sequence[Turn], *, build: bool = True) -> Lab:
    """Live a drawn session; with `build`, every step's request is built on the way."""
    for turn in session:
        lab.ask(turn.message)
        if build:
            lab.build()
        for sizes in turn.steps:
            lab.act(*sizes)
            if build:
                lab.build()
        lab.reply(turn.reply)
    return lab
