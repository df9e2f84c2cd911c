"""`working_set` sessions in memory: turns close, plans are recorded, projections are built, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.capacity.profile import Horizon, metadata_profile
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.soundness import SummaryAnswer
from ctxengine.engine.compaction.source import SummarySource
from ctxengine.engine.compaction.summarise import Surroundings
from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_plan import Planned, Planning, Wish, plan_run
from ctxengine.engine.history.working_set_project import ClosedUnits, project_working_set
from ctxengine.engine.history.working_set_record import PlannedSet, PlanReason
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import SessionFacts, StepInputs
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.run_input import fixed_frame
from ctxengine.engine.standing import history_acts
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.closed import turns_not_closed
from ctxengine.engine.turns.closing import closing_of
from ctxengine.engine.turns.own_words import own_words
from ctxengine.engine.turns.postings import MemoryPostings
from ctxengine.engine.turns.relevance import values_of
from ctxengine.service.compactors import MadeFor, compaction_draft
from tests.cast import AT, Call, Scribe, memory_log
from tests.lab import NONCE_KEY, a_plan

MODEL = ("anthropic", "claude-sonnet-4-6")


class Exchange(NamedTuple):
    """A drawn turn: what is asked, the results of each step, the answer."""

    asked: str
    steps: tuple[tuple[str, ...], ...]
    said: str


class Teller:
    """A summariser that says what it is told to say, and keeps what it was given."""

    version = "teller@1"

    def __init__(self, text: str) -> None:
        """Say this each time."""
        self.text = text
        self.sources: list[SummarySource] = []

    def summarise(self, source: SummarySource, budget_tokens: int) -> SummaryAnswer:
        """The same text, as a model's."""
        self.sources.append(source)
        return SummaryAnswer(self.text, by_model=True)


@dataclass
class WorkingLab:
    """One session in memory with a real counter."""

    window: int = 200_000
    model: str = MODEL[1]
    """Whom plans are made for; it may change from run to run."""
    policy: BudgetPolicy = BudgetPolicy(reserve=500)
    log: MemoryLog = field(default_factory=memory_log)
    postings: MemoryPostings = field(default_factory=MemoryPostings)

    def __post_init__(self) -> None:
        """Nothing is written yet."""
        self.counter: TokenCounter = counter_for(*MODEL)
        self.scribe = Scribe(self.log, Derivation(self.counter))
        self.plan = a_plan(window=self.window, policy=self.policy, counter=self.counter)
        self.facts = SessionFacts(self.plan, NONCE_KEY, "session-" + "0" * 32)
        self._numbers = 0

    def live(self, turn: Exchange) -> None:
        """A whole turn, closed at its end."""
        self._turn(turn, self._next_run())
        self.close()

    def live_planned(
        self, turn: Exchange, horizon: int, *, dropped: bool = False, pressed: int | None = None
    ) -> None:
        """A whole run as the service writes one: its plan, its turn with a fresh block, its end.

        Args:
            dropped: whether reasoning left with the run, so that its turn takes the closed form at once.
            pressed: what its open turn left to closed ones (tokens), where it needed what they stand in.
        """
        run = self._next_run()
        self.planned(horizon, turn.asked, run=run)
        self._turn(turn, run, fresh=f"[runtime] It is noon of day {self._numbers}.")
        if pressed is not None:
            self.planned(horizon, turn.asked, run=run, reason=PlanReason.PRESSURE, most=pressed)
        ended = EventDraft(
            type=EventType.RUN_ENDED,
            trust=Trust.PLATFORM,
            run=run,
            payload={"outcome": "completed", "opaque_dropped": int(dropped)},
        )
        self.log.append([ended], expected=None, at=AT)
        self.close()

    def _next_run(self) -> str:
        self._numbers += 1
        return f"00000000-0000-4000-8000-{self._numbers:012d}"

    def _turn(self, turn: Exchange, run: str, *, fresh: str = "") -> None:
        asked = self.scribe.user(turn.asked, run=run)
        if fresh:
            self._block(fresh, asked, run)
        for place, results in enumerate(turn.steps):
            ids = [f"c{self._numbers}.{place}.{n}".replace(".", "_") for n in range(len(results))]
            calls = [Call(name, "read", f'{{"path":"{name}.txt"}}') for name in ids]
            self.scribe.step(*calls, run=run)
            for name, text in zip(ids, results, strict=True):
                self.scribe.result(name, text, run=run)
        self.scribe.answers(turn.said, run=run)

    def _block(self, text: str, before: EventSeq, run: str) -> None:
        """Fresh rows that stay in front of a message."""
        tokens = self.counter.text(text)
        block = EventDraft(
            type=EventType.FRESH_SENT,
            trust=Trust.PLATFORM,
            run=run,
            payload={
                "format": ContentFormat.TEXT.value,
                "before": int(before),
                "rows": {"runtime": sha256_hex(text.encode())},
                "tokens": tokens,
                "by_row": {"14": tokens},
                "by_trust": {Trust.PLATFORM.value: tokens},
                "digest": sha256_hex(text.encode()),
                "content_sequence": int(before),
            },
            body=text,
        )
        self.log.append([block], expected=None, at=AT)

    def close(self) -> None:
        """Close every turn that is over."""
        below = EventSeq(self.log.head().sequence + 1)
        turns = turns_not_closed(self.log, self.log.newest(EventType.TURN_CLOSED), below=below)
        words = own_words(turns, SessionTexts(self.log, below))
        for turn, own in zip(turns, words, strict=True):
            closing = closing_of(turn, outcome="completed", counter=self.counter, words=own)
            self.log.append([closing.draft], expected=None, at=AT)
            self.postings.add(closing.terms)

    def planning(self, horizon: int) -> Planning:
        """The ground of a plan for a model of that horizon."""
        profile = metadata_profile(
            provider=MODEL[0], model=self.model, declared_window=200_000, max_output=500
        )
        texts = SessionTexts(self.log, EventSeq(self.log.head().sequence + 1))
        acts = history_acts(self.log)
        return Planning(
            log=self.log,
            counter=self.counter,
            policy=self.policy,
            fixed=fixed_frame(self.plan, 1_000_000),
            profile=profile.model_copy(update={"horizon": Horizon(tokens=horizon, confidence=1.0)}),
            marks=acts.marks,
            undone=acts.undone,
            surroundings=Surroundings(untrusted=texts.untrusted, brought=texts.brought),
        )

    def planned(
        self, horizon: int, directive: str = "and now?", *, run: str = "run", **wish: object
    ) -> PlannedSet:
        """Plan for a run that would begin now, and record it."""
        planned = self.plan_only(horizon, directive, **wish)
        drafts: list[EventDraft] = []
        if planned.packet is not None:
            made_for = MadeFor(0, self.model, self.policy.label, "start")
            drafts.append(
                compaction_draft(
                    planned.packet,
                    came_with=(),
                    made_for=made_for,
                    run=None,
                    owner="",
                    reason="working_set",
                )
            )
        self.log.append([*drafts, planned.record.draft(run)], expected=None, at=AT)
        return planned.record

    def plan_only(self, horizon: int, directive: str = "and now?", **wish: object) -> Planned:
        """The plan, unrecorded."""
        head = self.log.head()
        newest = self.log.newest(EventType.TURN_CLOSED)
        values = values_of(
            directive,
            newest=newest.payload["number"] if newest else 0,
            postings=self.postings,
        )
        return plan_run(
            self.planning(horizon),
            Wish(
                **{"reason": PlanReason.START, **wish},  # type: ignore[arg-type]
                boundary=head.content_sequence + 1,
                values=values,
                next_sequence=head.sequence + 1,
            ),
        )

    def projected(self, known: ClosedUnits | None = None) -> Projection:
        """What the newest recorded plan shows."""
        newest = self.log.newest(EventType.WORKING_SET_PLANNED)
        assert newest is not None
        head = self.log.head()
        inputs = StepInputs(
            head=head.sequence,
            content_head=head.content_sequence,
            boundary=head.content_sequence + 1,
            epoch=1,
            engine="working_set",
            builder=self.plan.builder,
            renderer=self.plan.renderer,
            counter=self.plan.counter,
            policy=self.plan.policy.label,
            framing=self.plan.framing_version,
            projection=newest.sequence,
            excluded=history_acts(self.log).marks.excluded,
        )
        return project_working_set(self.log, self.facts, inputs, self.counter, known)

    def reset(self, text: str) -> None:
        """A reset behind everything closed so far."""
        newest = self.log.newest(EventType.TURN_CLOSED)
        draft = EventDraft(
            type=EventType.SESSION_RESET,
            trust=Trust.MODEL,
            payload={
                "turns": newest.payload["number"] if newest else 0,
                "through": int(self.log.head().content_sequence),
                "tokens": self.counter.text(text),
                "counter": self.counter.label,
                "note": "",
                "by": "runtime",
            },
            body=text,
        )
        self.log.append([draft], expected=None, at=AT)


_WORDS = st.sampled_from(
    ["copper", "depot", "lantern", "harvest", "meadow", "signal", "anchor", "ribbon", "garden"]
)
_PROSE = st.lists(_WORDS, min_size=2, max_size=40).map(" ".join)
_RESULT = st.builds(
    lambda words, lines: "\n".join(f"{words} line {n}" for n in range(lines)),
    _PROSE,
    st.integers(1, 80),
)
EXCHANGES = st.builds(
    Exchange,
    asked=_PROSE,
    steps=st.lists(st.lists(_RESULT, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple),
    said=_PROSE,
)
"""Turns with up to four results."""


def sessions(most: int = 20) -> st.SearchStrategy[Sequence[Exchange]]:
    """Sessions of closed turns."""
    return st.lists(EXCHANGES, min_size=1, max_size=most)


def lived(turns: Sequence[Exchange]) -> WorkingLab:
    """A session that went through these turns."""
    lab = WorkingLab()
    for turn in turns:
        lab.live(turn)
    return lab
