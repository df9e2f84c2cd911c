"""The boundary engine in process: a host's canonical messages in, validated requests out (boundary spec; design 3).

The host owns persistence. `get_messages` gives detached originals; `set_messages` lets go of derived state only where what it
covers has changed; `save` and `restore` carry checkpoints through a restart. No failure degrades a request: it is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from ctxengine.engine.boundary.checkpoint import Checkpoint, contract_of
from ctxengine.engine.boundary.failures import (
    MENDED_OUTSIDE,
    CompactionError,
    ContextLengthError,
    held_back,
    outcome_of,
    told_again,
)
from ctxengine.engine.boundary.messages import Message, append_messages
from ctxengine.engine.boundary.native import make_window
from ctxengine.engine.boundary.note import NotePort, make_note
from ctxengine.engine.boundary.prepare import NEAR, Situation, situation_of, work_of
from ctxengine.engine.boundary.saved import Finished, as_saved, read_saved
from ctxengine.engine.boundary.settled import source_of_units
from ctxengine.engine.boundary.work import Made, NativePort, Work
from ctxengine.engine.budget.arithmetic import reserve_of
from ctxengine.engine.budget.yields import Floors
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.derive import Derivation
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Memory, SessionFacts, StepInputs
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.step import build_step, prepare
from ctxengine.engine.wire.base import WireRenderer

Emit = Callable[[str, Mapping[str, Any]], None]
FitOutput = Callable[[int, int], int]
"""Given what is missing and the output reserve (tokens), the smaller reserve that the host accepts."""


def unheard(name: str, facts: Mapping[str, Any]) -> None:
    """For hosts that listen to no event."""


class BoundaryContext:
    """One conversation of a host.

    `history_authority` says where a transcript tool reads: in the host's own messages, never in a private copy.
    """

    history_authority: ClassVar[str] = "host"

    def __init__(
        self,
        plan: Plan,
        *,
        nonce_key: bytes,
        session_key: str,
        counter: TokenCounter,
        renderer: WireRenderer,
        now: Callable[[], datetime],
        salt: Callable[[], bytes],
        native: NativePort | None = None,
        notes: Callable[[Work], NotePort] | None = None,
        fit_output: FitOutput | None = None,
        emit: Emit = unheard,
    ) -> None:
        """Start empty.

        Args:
            plan: region A, pinned; its policy holds trigger, allowances and recovery.
            now: the host's clock, with offset.
            salt: gives 16 unguessable bytes per message.
            native: the provider's own compaction and count, where the host has configured it.
            notes: a writer of portable notes for one piece of work.
            fit_output: may lower the output reserve of a request that does not fit; its input stays whole.
            emit: told of every operation's start and end.
        """
        self._session = SessionFacts(plan, nonce_key, session_key)
        self._counter, self._renderer = counter, renderer
        self._now, self._salt = now, salt
        self._native, self._notes = native, notes
        self._fit_output, self._emit = fit_output, emit
        self._messages: tuple[Message, ...] = ()
        self._log = self._empty()
        self._made: tuple[tuple[Checkpoint, str], ...] = ()
        """Checkpoints with their texts, newest first."""
        self._finished: tuple[Finished, ...] = ()
        self._admitted = 0
        """The checkpoint under which a whole request was counted."""
        self._operations = 0
        self._version = 0

    # --- canonical messages ---

    def get_messages(self) -> list[dict[str, Any]]:
        """All messages, complete and detached: changing what is given changes nothing here."""
        return [message.model_dump() for message in self._messages]

    def set_messages(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Replace all messages. Checkpoints stay where what they cover is unchanged.

        Raises:
            pydantic.ValidationError: a message is malformed; nothing was changed.
            EngineError: a message cannot be read, or answers no call; nothing was changed.
        """
        given = tuple(Message.model_validate(dict(message)) for message in messages)
        same = 0
        while same < min(len(given), len(self._messages)) and given[same] == self._messages[same]:
            same += 1
        if same < len(self._messages):
            log = self._appended(self._empty(), given, self._counter)
        else:
            log = self._appended(self._log.copy(), given[same:], self._counter)
        self._log, self._messages = log, given
        self._version += 1
        self._made = tuple(entry for entry in self._made if entry[0].replaced <= same)

    def append(self, *messages: Mapping[str, Any]) -> None:
        """Append messages; see `set_messages` for the errors."""
        self.set_messages([*self.get_messages(), *messages])

    def transcript(self, first: int, last: int) -> dict[str, Any]:
        """Canonical messages of a range, 1 for the first: what a transcript tool answers with."""
        return {
            "history_authority": self.history_authority,
            "messages": self.get_messages()[max(0, first - 1) : last],
        }

    def use_plan(self, plan: Plan, *, counter: TokenCounter, renderer: WireRenderer) -> None:
        """Go on under another plan: another model, other tools. What is bound to the old one no longer holds.

        Args:
            counter: counts as the plan's model does; all messages are counted anew.
            renderer: speaks to the plan's provider.
        """
        self._log = self._appended(self._empty(), self._messages, counter)
        self._session = replace(self._session, plan=plan)
        self._counter, self._renderer = counter, renderer
        self._version += 1
        self._admitted = 0

    # --- derived state ---

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint in force."""
        standing = self._standing()
        return standing[0] if standing is not None else None

    def save(self) -> dict[str, Any]:
        """Checkpoints and failures as plain data, for the host to keep beside its messages (`durable_checkpoints`)."""
        return as_saved(self._made, self._finished)

    def restore(self, state: Mapping[str, Any]) -> int:
        """Take back what was saved, as far as it still fits the messages; gives how many checkpoints do.

        Raises:
            BoundaryStateError: the state is not what `save` gave; nothing was changed. A state of another version is no
                error: nothing of it is taken.
        """
        saved = read_saved(state)
        if saved is None:
            return 0
        sound: dict[int, tuple[Checkpoint, str]] = {}
        for point, text in reversed(saved.checkpoints):
            if self._sound(point, sound):
                sound[int(point.sequence)] = (point, text)
        self._made = tuple(reversed(sound.values()))
        self._finished = saved.finished
        self._operations = max(
            (
                *(int(point.sequence) for point, _ in saved.checkpoints),
                *(int(entry.payload["operation"]) for entry in saved.finished),
            ),
            default=0,
        )
        self._admitted = 0
        return len(self._made)

    def forget_failures(self) -> None:
        """Let the next request try again at once, whatever failed before: for a host that has mended the cause."""
        self._finished = tuple(
            entry for entry in self._finished if entry.payload["outcome"] == "completed"
        )

    # --- requests ---

    @property
    def due(self) -> bool:
        """Whether the next request needs a compaction first."""
        return self._look().due

    def prepare(self) -> ModelRequest:
        """The next request, its compaction made first where one is due.

        Raises:
            CompactionError: it failed; messages and checkpoints are as they were.
            ContextLengthError: the request does not fit whole.
        """
        situation = self._look()
        self._refuse_unusable(situation)
        if situation.due:
            self._compact(situation)
            situation = self._look()
        return self._built(situation)

    def build(self) -> ModelRequest:
        """The request as it stands, without any compaction: what a failed one must leave as it was.

        Raises:
            ContextLengthError: it does not fit whole.
        """
        return self._built(self._look(), counts=False)

    # --- parts ---

    def _empty(self) -> MemoryLog:
        return MemoryLog("host", "messages", salt=self._salt)

    def _appended(
        self, log: MemoryLog, messages: Sequence[Message], counter: TokenCounter
    ) -> MemoryLog:
        """That log, with the messages behind what is in it; an error half-way leaves it behind, never the one in use."""
        append_messages(log, messages, derivation=Derivation(counter), at=self._now())
        return log

    def _standing(self) -> tuple[Checkpoint, str] | None:
        contract, below = contract_of(self._session.plan), self._below()
        for point, text in self._made:
            if point.cut <= below and (point.kind == "note" or point.contract == contract):
                return point, text
        return None

    def _below(self) -> EventSeq:
        """Where the open run begins: the newest user's message that opened one."""
        newest = self._log.events(after=EventSeq(max(0, self._log.head().sequence - 1)), limit=1)
        run = newest[0].run if newest else None
        return EventSeq(int(run)) if run else EventSeq(1)

    def _look(self) -> Situation:
        return situation_of(
            self._log,
            self._session,
            counter=self._counter,
            marks=Marks(),
            below=self._below(),
            content_head=self._log.head().content_sequence,
            factor_millionths=1_000_000,
            standing=self._standing(),
        )

    def _refuse_unusable(self, situation: Situation) -> None:
        point = situation.checkpoint
        if point is not None and point.kind == "native" and self._native is None:
            raise CompactionError("count_unavailable", retryable=False)

    def _compact(self, situation: Situation) -> None:
        work = work_of(situation, self._renderer)
        if work is None:
            return
        held = held_back(self._finished, work.prefix)
        if held is not None:
            left = (held.again_at - self._now()).total_seconds() if held.again_at else None
            if left is None:
                raise told_again(held)
            if left > 0:
                raise CompactionError(held.reason, retry_after_s=left)
        method = "native" if situation.native else "note"
        if situation.native and self._native is None:
            raise CompactionError("missing_configuration")
        if not situation.native and self._notes is None:
            raise CompactionError("missing_configuration")
        self._operations += 1
        operation, version = self._operations, self._version
        try:
            self._emit(
                "started", {"operation": operation, "method": method, "cut": work.covered.cut}
            )
            made = self._make(work, situation.native)
            if version != self._version:
                raise CompactionError("superseded")
        except CompactionError as error:
            self._end(operation, work, error)
            raise
        except Exception:
            # Foreign errors may carry prompts and keys: neither their text nor they themselves leave with ours.
            unforeseen = CompactionError("internal")
            self._end(operation, work, unforeseen)
            raise unforeseen from None
        except BaseException:
            # The caller ends it, not the provider: nothing rests before the next try.
            self._end(operation, work, CompactionError("cancelled"))
            raise
        point = replace(made.checkpoint, sequence=EventSeq(operation))
        self._made = ((point, made.text), *self._made)
        self._end(operation, work, None)

    def _make(self, work: Work, native: bool) -> Made:
        if native and self._native is not None:
            recovers = self._session.plan.policy.archive_recovery
            return make_window(work, self._native, recovers=recovers)
        if self._notes is None:
            raise CompactionError("missing_configuration")
        return make_note(work, self._log, self._notes(work))

    def _end(self, operation: int, work: Work, error: CompactionError | None) -> None:
        payload = {
            "operation": operation,
            "outcome": outcome_of(error) if error else "completed",
            "code": error.reason if error else None,
            "retryable": error.retryable if error else None,
            "retry_after_s": error.retry_after_s if error else None,
            "prefix_sha256": work.prefix,
        }
        if error is None or error.reason not in MENDED_OUTSIDE:
            # What bars nothing must not push out what does.
            self._finished = (Finished(payload, self._now()), *self._finished)[:50]
        self._emit("finished", payload)

    def _sound(self, point: Checkpoint, older: Mapping[int, tuple[Checkpoint, str]]) -> bool:
        """Whether a saved checkpoint covers exactly the messages there are."""
        if point.base and point.base not in older:
            return False
        base = older[point.base][0] if point.base else None
        start = base.cut if base else EventSeq(1)
        if point.cut > self._log.head().sequence + 1 or point.cut <= start:
            return False
        units = self._log.units(start, point.cut)
        return source_of_units(base, units, "") == point.source

    def _built(self, situation: Situation, *, counts: bool = True) -> ModelRequest:
        plan, point = self._session.plan, situation.checkpoint
        counts = counts and point is not None and point.kind == "native"
        while True:
            try:
                request = self._step(situation, plan)
            except BudgetExceeded as error:
                numbers = error.numbers
                needed, available = int(str(numbers["needed"])), int(str(numbers["available"]))
                plan = self._smaller_output(plan, needed, available, source="estimated")
                continue
            tokens = self._counted(request, point) if counts and point is not None else None
            available = request.budget.total - request.budget.reserve
            if tokens is None or tokens <= available:
                break
            while tokens > available:
                plan = self._smaller_output(plan, tokens, available, source="counted")
                available = request.budget.total - reserve_of(plan.policy, plan.max_output)
        if tokens is not None and point is not None:
            self._admitted = int(point.sequence)
        return request

    def _smaller_output(self, plan: Plan, needed: int, available: int, *, source: str) -> Plan:
        """The plan with a smaller output reserve, where the host has one to give.

        Raises:
            ContextLengthError: it has none.
        """
        reserve = reserve_of(plan.policy, plan.max_output)
        wanted = self._fit_output(needed - available, reserve) if self._fit_output else reserve
        if not 0 < wanted < reserve:
            raise ContextLengthError(
                needed,
                available,
                source=source,
                remedy="Shorten the newest message, or use a larger window.",
            ) from None
        return plan.model_copy(
            update={"policy": plan.policy.model_copy(update={"reserve": wanted})}
        )

    def _step(self, situation: Situation, plan: Plan) -> ModelRequest:
        head = self._log.head()
        wanted = StepInputs(
            head=head.sequence,
            content_head=head.content_sequence,
            boundary=situation.below,
            epoch=plan.epoch,
            engine="boundary",
            builder=BUILDER_VERSION,
            renderer=plan.renderer,
            counter=plan.counter,
            policy=plan.policy.label,
            framing=plan.framing_version,
        )
        facts = replace(self._session, plan=plan)
        prepared = prepare(
            self._log,
            facts,
            wanted,
            memory=Memory(),
            floors=Floors(EventSeq(0), EventSeq(0)),
            counter=self._counter,
            projection=situation.projection,
        )
        return build_step(prepared.run, facts, opaque={}, renderer=self._renderer)

    def _counted(self, request: ModelRequest, point: Checkpoint) -> int | None:
        """Tokens by the provider's count; None where none is due.

        One is due before a first request under a window is dispatched, and for every one that is near its limit.
        """
        near = request.budget.request > NEAR * request.budget.usable
        if self._native is None or (self._admitted == point.sequence and not near):
            return None
        try:
            return self._native.count(request.body)
        except CompactionError:
            raise
        except Exception:
            raise CompactionError("internal") from None
