"""One session of the lab: the loop of `assemble` in memory, without a database, a provider or a clock of its own.

What a step leaves in the log is what the live path leaves there, event for event, so that a live session replayed as it was
gives the same places, nonces and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast
from uuid import UUID

from ctxengine.engine.build import BuildOptions, build, remarked
from ctxengine.engine.cache.cost import CostModel
from ctxengine.engine.cache.predict import Entry, Prediction, marked_places, predict
from ctxengine.engine.cache.reach import may_be_out_of_reach, within_reach
from ctxengine.engine.cache.rules import cache_rules
from ctxengine.engine.cache.trail import trail_of
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.derive import Derivation
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.history.project import project
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_project import ClosedUnits
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared, SessionFacts, StepInputs
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan
from ctxengine.engine.ports import OpenCall
from ctxengine.engine.request import CheckpointInput, ModelRequest
from ctxengine.engine.standing import NOTHING_STANDING, Standing, history_acts, standing_of
from ctxengine.engine.step import fixed_frame, floors_of, prepare
from ctxengine.engine.tail import Tail
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow
from ctxengine.service.compactors import compactor_of, packets_of
from ctxengine.service.drafts import content_draft
from ctxengine.service.fresh_blocks import sent_before, sent_draft
from ctxengine.service.memory_lines import memory_draft
from ctxengine.service.replay.drivers import EngineDriver
from ctxengine.service.replay.source import NO_MEMORY, Beat, Source
from ctxengine.service.request_rows import fresh_digest, step_drafts
from ctxengine.service.skills import loaded_skills
from ctxengine.service.snapshots import snapshot_draft
from ctxengine.service.tails import tail_of_run
from ctxengine.service.weigh import weighed, with_verdicts
from ctxengine.service.wiring import counter_of, renderer_of, unseal

_SALT = b"0" * 16
_WITHOUT_BODY = BuildOptions(validate=True, with_body=False)


@dataclass(frozen=True, slots=True)
class LabStep:
    """One built step."""

    prepared: Prepared
    built: ModelRequest
    expected: Prediction
    drafts: tuple[EventDraft, ...]
    """Events since the step before, this one's included."""
    request_id: UUID


class LabSession:
    """A session in memory."""

    def __init__(
        self,
        source: Source,
        plan: Plan,
        *,
        session_key: str,
        prices: CostModel | None,
        history_ttl: Literal["5m", "1h"] | None,
        driver: EngineDriver,
    ) -> None:
        """Open it under a plan; nothing is in its log yet.

        Args:
            history_ttl: what the operator asks for instead of the recorded setting.
        """
        self.source = source
        self.log = MemoryLog(source.tenant, source.session, salt=lambda: _SALT)
        self._key, self._prices, self._ttl = session_key, prices, history_ttl
        self.memo = BuildMemo()
        self._appended: list[EventDraft] = []
        self._mark = 0
        self.place_of: dict[int, int] = {}
        """Place in the transcript by sequence in this log."""
        self._sequence_of: dict[int, EventSeq] = {}
        self.boundary = EventSeq(1)
        """The message that opened the run."""
        self._run_steps = 0
        self._before: StepInputs | None = None
        """Inputs of the open run's latest step."""
        self._left: tuple[Entry, ...] = ()
        self._reach = ""
        self._requests = 0
        self._standing: tuple[int, int, Standing] | None = None
        self._driver = driver
        self._closed: ClosedUnits = {}
        self._projected: tuple[object, Projection | None] = ((), None)
        self.use(plan)

    def use(self, plan: Plan) -> None:
        """Go on under another plan."""
        self.plan = plan
        self.counter = counter_of(plan.provider, plan.model)
        self.renderer = renderer_of(plan.provider)
        self.facts = SessionFacts(plan, self.source.nonce_key, self._key, unseal=unseal)
        self.rules = cache_rules(self.renderer.api, plan.provider, plan.model)
        self._plain = Derivation(self.counter)

    def copy(self, beat: Beat) -> None:
        """Append an event as it was recorded."""
        if beat.type is None:
            return
        draft = EventDraft(
            type=beat.type,
            trust=beat.trust,
            payload=dict(beat.payload),
            run=beat.run or None,
            body=beat.raw if beat.has_body else None,
        )
        self.append([draft])

    def append(self, drafts: list[EventDraft]) -> None:
        """Append events at the end."""
        self._appended.extend(drafts)
        self.log.append(drafts, expected=None, at=_at(0.0))

    def hear(self, beat: Beat) -> None:
        """Append a message: derived and counted for this session's model."""
        if beat.type is None:
            return
        sequence = EventSeq(self.log.head().sequence + 1)
        call = self._call(beat)
        draft = content_draft(
            self.log,
            type=beat.type,
            format=beat.format,
            raw=beat.raw,
            trust=beat.trust,
            sequence=sequence,
            derivation=self._derivation(beat),
            run=beat.run or None,
            source=f"tool:{call.name}"
            if call is not None and beat.source == "tool:"
            else beat.source,
            payload=dict(beat.payload),
            answers=call,
            is_error=beat.is_error,
            ledger_name=self._ledger_name,
        )
        self.append([draft])
        self._sequence_of[beat.place] = sequence
        self.place_of[sequence] = beat.place
        if beat.opens_run:
            self.boundary, self._run_steps, self._before = sequence, 0, None

    def _ledger_name(self, name: str) -> str:
        return self.source.ledger_name(name)

    def _derivation(self, beat: Beat) -> Derivation:
        if beat.type is EventType.TOOL_RESULT and not beat.by_platform:
            windows = self.plan.engine in WINDOWED_ENGINES
            limit = self.plan.policy.inline
            return Derivation(self.counter, inline=limit, whole_lines=windows)
        if beat.type is EventType.RESPONSE_COMPLETED:
            return Derivation(self.counter, kept_aside=self.plan.aside_tokens)
        return self._plain

    def _call(self, beat: Beat) -> OpenCall | None:
        if beat.answers is None:
            return None
        place, ordinal = beat.answers
        sequence = self._sequence_of.get(place)
        return next(
            (c for c in self.log.open_calls() if (c.sequence, c.ordinal) == (sequence, ordinal)),
            None,
        )

    @property
    def waiting(self) -> bool:
        """Whether a call has no result yet: then no request can be built."""
        return bool(self.log.open_calls())

    def step(self, beat: Beat, now: float) -> LabStep:
        """Assemble the next request and leave its events behind.

        Args:
            now: the replay's clock, in seconds since the epoch.

        Raises:
            EngineError: the request cannot be built; nothing is left behind.
        """
        prepared, wanted, before = self.decide(beat, now)
        built = build(
            prepared.run,
            CheckpointInput(),
            self.plan,
            renderer=self.renderer,
            memo=self.memo,
            options=_WITHOUT_BODY,
        )
        built = self._within_reach(built, now)
        if prepared.allocation.raises:
            prepared = weighed(prepared, built, self._prices)
        self._requests += 1
        self._run_steps += 1
        request_id = UUID(int=self._requests)
        drafts, inputs = self._drafts(beat, prepared, built, wanted, request_id)
        self.append(drafts)
        self._mark = len(self._appended)
        self._before = inputs
        told = (*before, *drafts)
        return LabStep(prepared, built, self._expected(built, now), told, request_id)

    def decide(self, beat: Beat, now: float) -> tuple[Prepared, StepInputs, tuple[EventDraft, ...]]:
        """The decision, the inputs it was made from, and the events since the step before; the first half of `step`."""
        mark, self._mark = self._mark, len(self._appended)
        self._driver.before_step(self, beat.run, self._wanted(beat, now))
        while True:
            wanted = self._wanted(beat, now)
            wanted, projection = self._projection(beat, wanted)
            try:
                prepared = self._prepared(beat, wanted, projection)
            except BudgetExceeded as error:
                if not self._driver.relieve(self, beat.run, wanted, projection, error):
                    raise
            else:
                if not self._driver.relieve(self, beat.run, wanted, projection, prepared):
                    return prepared, wanted, tuple(self._appended[mark:])

    def _wanted(self, beat: Beat, now: float) -> StepInputs:
        head, plan, known = self.log.head(), self.plan, beat.inputs
        wanted = StepInputs(
            head=head.sequence,
            content_head=head.content_sequence,
            boundary=self.boundary,
            epoch=plan.epoch,
            engine=plan.engine,
            builder=BUILDER_VERSION,
            renderer=plan.renderer,
            counter=plan.counter,
            policy=plan.policy.label,
            framing=plan.framing_version,
            acts=head.act_sequence,
            now=_at(now).isoformat() if known is None else known.now,
            history_ttl=self._ttl or (known.history_ttl if known is not None else "5m"),
        )
        if known is None:
            return wanted
        # A factor was learnt for the model that was asked; another one begins without.
        factor = known.factor_millionths if known.counter == plan.counter else 1_000_000
        return wanted.model_copy(
            update={
                "factor_millionths": factor,
                "timezone": known.timezone,
                "principal": known.principal,
                "scopes": known.scopes,
                "surface": known.surface,
            }
        )

    def _projection(self, beat: Beat, wanted: StepInputs) -> tuple[StepInputs, Projection | None]:
        """What the engine shows of everything before the run; it stays as it is until something but talk comes in."""
        marks = history_acts(self.log).marks if wanted.acts else Marks()
        wanted = wanted.model_copy(
            update={
                "projection": self._driver.decision(self, beat.run),
                "pinned": marks.pinned,
                "folded": marks.folded,
                "excluded": marks.excluded,
            }
        )
        key = (wanted.projection, wanted.boundary, wanted.epoch, wanted.marks, wanted.acts)
        if self._projected[0] != key:
            counter = self.memo.counter(self.counter)
            made = project(self.log, self.facts, wanted, counter, self._closed)
            self._projected = (key, made)
        return wanted, self._projected[1]

    def _prepared(self, beat: Beat, wanted: StepInputs, projection: Projection | None) -> Prepared:
        plan_total = fixed_frame(self.plan, wanted.factor_millionths).total
        standing = self._standing_at(wanted.acts, plan_total)
        counter = self.memo.counter(self.counter)
        key = self.facts.nonce_key
        skills = (
            loaded_skills(self.log, until=wanted.head, counter=counter, nonce_key=key)
            if self.plan.skills
            else ()
        )
        earlier = self._before if self.plan.fresh_rows == "appended" else None
        if earlier is not None:
            wanted = wanted.model_copy(update={"fresh_place": earlier.content_head + 1})
        return prepare(
            self.log,
            self.facts,
            wanted,
            memory=beat.memory,
            floors=floors_of(self.log.newest_yields(), plan_total, standing.undone),
            counter=counter,
            skills=skills,
            standing=standing,
            compactor=compactor_of(self.log, self.plan, standing, below=wanted.content_head + 1),
            sent=sent_before(self.log, self.plan, earlier, excluded=standing.marks.excluded),
            projection=projection,
            tail=self._tail(beat, wanted, projection),
        )

    def _tail(self, beat: Beat, wanted: StepInputs, projection: Projection | None) -> Tail:
        """What the run's directive is read as, where the engine shows it."""
        run = RunRow(id=beat.run, seed_event_sequence=self.boundary)
        log = cast(PostgresLog, self.log)  # Only what both logs have is read.
        return tail_of_run(run, log, self.plan, wanted, projection, self.counter)

    def _standing_at(self, acts: int, plan_total: int) -> Standing:
        """What stands beside the messages; read again where another act stands in the log since."""
        if not acts:
            return NOTHING_STANDING
        if self._standing is None or self._standing[:2] != (acts, plan_total):
            self._standing = (acts, plan_total, standing_of(self.log, plan_total=plan_total))
        return self._standing[2]

    def _drafts(
        self,
        beat: Beat,
        prepared: Prepared,
        built: ModelRequest,
        wanted: StepInputs,
        request_id: UUID,
    ) -> tuple[list[EventDraft], StepInputs]:
        """The events of a step in the order of the live path, and its inputs as they would be recorded."""
        inputs, drafts = prepared.inputs, []
        read = memory_draft(beat.memory, wanted.content_head) if beat.memory != NO_MEMORY else None
        if read is not None:
            inputs = inputs.model_copy(update={"memory_event": wanted.head + 1})
            drafts.append(read)
        added = sent_draft(prepared, built, run=beat.run, owner="")
        if added is not None:
            inputs = inputs.model_copy(update={"fresh_event": wanted.head + 1 + len(drafts)})
            drafts.append(added)
        used = snapshot_draft(self.log, built.plan, beat.run)
        if used is not None:
            drafts.append(used)
        drafts += step_drafts(
            prepared,
            built,
            request_id=request_id,
            step=self._run_steps,
            model=self.plan.model,
            run=beat.run,
            first=wanted.head + 1 + len(drafts),
        )
        if prepared.allocation.raises:
            drafts = with_verdicts(drafts, prepared, built, self._prices)
        packets = packets_of(prepared, drafts, first=wanted.head + 1)
        fresh = fresh_digest(built)
        return drafts, inputs.model_copy(update={"packets": packets, "fresh": fresh})

    def _within_reach(self, built: ModelRequest, now: float) -> ModelRequest:
        if not may_be_out_of_reach(built, self.rules):
            return built
        trail = trail_of(built)
        return remarked(built, within_reach(built, trail, self._left, rules=self.rules, now=now))

    def _expected(self, built: ModelRequest, now: float) -> Prediction:
        trail = trail_of(built)
        expected = predict(
            trail,
            marked_places(built, trail, self.rules),
            self._left,
            rules=self.rules,
            now=now,
            factor=built.budget.factor,
            reach=self._reach,
        )
        self._left, self._reach = expected.entries, trail.places[trail.stable].digest
        return expected


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
