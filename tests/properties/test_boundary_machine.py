"""The boundary engine as a state machine: whatever happens, messages stay, and a failure leaves everything as it was."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ctxengine.engine.boundary.checkpoint import Checkpoint
from ctxengine.engine.boundary.context import BoundaryContext
from ctxengine.engine.boundary.failures import CompactionError, ContextLengthError
from ctxengine.engine.boundary.note import NoteAnswer
from ctxengine.engine.boundary.work import Work
from ctxengine.engine.errors import OrphanPair
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from tests.engine.boundary.hosting import MODEL, AnthropicPort, Clock, Notes, host, plan_for

WORDS = "what the user wants of this piece of work and why "
MODELS = (("anthropic", MODEL), ("anthropic", "claude-opus-5"), ("openai", "gpt-5.4"))
"""Two that compact by themselves, each by a contract of its own, and one that gets portable notes."""
FAILURES: dict[str, tuple[Reply, NoteAnswer]] = {
    "unavailable": (Reply(status=529), NoteAnswer("", "end")),
    "rate": (Reply(status=429), NoteAnswer("half a note", "output_limit")),
    "error": (Reply(status=500), NoteAnswer("a note", "refusal")),
    "refused": (Reply(refuse=True), NoteAnswer("a note", "end", calls=1)),
    "too long": (Reply(text=WORDS * 3_000), NoteAnswer(WORDS * 3_000, "end")),
}
"""What a provider does to a compaction, natively and as a writer of notes."""


class Writer(Notes):
    """A writer of notes in whose time things happen, as in the port's."""

    def __init__(self, work: Work, answers: list[NoteAnswer], port: AnthropicPort) -> None:
        super().__init__(work, answers)
        self.port = port

    def write(self, lines: str) -> NoteAnswer:
        self.port.compactions += 1
        self.port.before()
        return super().write(lines)


class Boundary(RuleBasedStateMachine):
    """One host and its context."""

    large = False
    """Whether the history has outgrown what is compacted at once."""

    @initialize(recovery=st.booleans(), model=st.sampled_from(MODELS))
    def open(self, recovery: bool, model: tuple[str, str]) -> None:
        self.clock = Clock()
        self.provider = StrictProvider()
        self.port = AnthropicPort(self.provider)
        self.recovery = recovery
        self.model = model
        self.notes: list[NoteAnswer] = []
        self.told: list[tuple[str, int, Any]] = []
        self.context = self._host()
        self.said: list[dict[str, Any]] = []
        self.turn = 0
        self._ask("begin")

    def _host(self) -> BoundaryContext:
        return host(
            self._plan(),
            self.clock,
            self.port,
            notes=lambda work: Writer(work, self.notes, self.port),
            emit=lambda name, facts: self.told.append(
                (name, facts["operation"], facts.get("outcome"))
            ),
        )

    def _plan(self) -> Any:
        return plan_for(
            *self.model,
            window=9_000,
            archive_recovery=self.recovery,
            retained_turns=1,
        )

    def _ask(self, text: str) -> None:
        self._append({"role": "user", "content": f"{self.turn}: {text}"})

    def _append(self, message: dict[str, Any]) -> None:
        self.said.append(message)
        self.context.append(message)

    def _body(self) -> str | None:
        """Digest of the request as it stands; None where it does not fit."""
        try:
            return hashlib.sha256(self.context.build().body).hexdigest()
        except ContextLengthError:
            return None

    # --- what hosts do ---

    @rule(words=st.integers(20, 60), answer=st.integers(40, 120))
    def turns(self, words: int, answer: int) -> None:
        self._append({"role": "assistant", "content": WORDS * answer})
        self.turn += 1
        self._ask(WORDS * words)

    @rule(turns=st.integers(1, 6), answer=st.integers(40, 90))
    def lives_on(self, turns: int, answer: int) -> None:
        for _ in range(turns):
            self.turns(20, answer)
            self.asks_for_a_request()

    @rule(
        does=st.lists(
            st.tuples(
                st.sampled_from(["reads", "queues", "ends"]), st.sampled_from(["one", "two"])
            ),
            min_size=1,
            max_size=3,
        ),
        in_order=st.booleans(),
    )
    def uses_tools(self, does: list[tuple[str, str]], in_order: bool) -> None:
        """A batch of calls, and their results in this order or the other."""
        names = [f"call-{len(self.said)}-{place}" for place in range(len(does))]
        calls = [{"id": name, "name": "read", "arguments": "{}"} for name in names]
        self._append({"role": "assistant", "content": "", "calls": calls})
        results = list(zip(names, does, strict=True))
        for name, (what, operation) in results if in_order else reversed(results):
            result = {"role": "tool", "call_id": name, "content": f"{what} {operation} of {name}"}
            if what != "reads":
                result["operation_id"] = operation
            if what == "queues":
                result["retain"] = "operation"
            self._append(result)

    @rule(operation=st.sampled_from(["one", "two"]), ends=st.booleans())
    def an_operation_goes_through_checkpoints(self, operation: str, ends: bool) -> None:
        self.uses_tools([("queues", operation)], True)
        if self._until_covered() and ends:
            self.uses_tools([("ends", operation)], True)
        self._until_covered()

    def _until_covered(self) -> bool:
        """Turns with their requests until a checkpoint covers all that was said so far; whether one could be made."""
        place = len(self.said)
        self.clock.wait(4_000.0)
        self.provider.script.clear()
        self.notes.clear()
        while (point := self.context.checkpoint) is None or point.replaced < place:
            self.turns(20, 60)
            try:
                self.context.prepare()
            except (CompactionError, ContextLengthError):
                return False
        self._keeps_what_is_alive(point)
        return True

    @rule(call=st.sampled_from(["nobody's", "call-1-0"]))
    def a_result_of_no_open_call_is_refused(self, call: str) -> None:
        body = self._body()
        late = {"role": "user", "content": "In front of it."}
        with pytest.raises(OrphanPair):
            self.context.append(late, {"role": "tool", "call_id": call, "content": "late"})
        assert self._body() == body

    @rule(kind=st.sampled_from(["reminder", "hook"]))
    def reminds(self, kind: str) -> None:
        self._append({"role": "user", "content": f"Mind {self.turn}.", "retain": kind})

    @rule(data=st.data())
    def edits_old_history(self, data: st.DataObject) -> None:
        self._edits(data.draw(st.integers(0, len(self.said) - 1)))

    @rule(data=st.data())
    def edits_covered_history(self, data: st.DataObject) -> None:
        before = self._until_compacted()
        if before is not None:
            self._edits(data.draw(st.integers(0, before.replaced - 1)))
            assert self.context.checkpoint != before

    def _edits(self, place: int) -> None:
        before = self.context.checkpoint
        self.said = [dict(message) for message in self.said]
        self.said[place]["content"] += " (edited)"
        self.context.set_messages(self.said)
        if before is not None and place >= before.replaced:
            assert self.context.checkpoint == before, "an unchanged prefix keeps its checkpoint"
        elif self.context.checkpoint is not None:
            assert self.context.checkpoint.replaced <= place

    @rule()
    def restarts(self) -> None:
        before, body = self.context.checkpoint, self._body()
        state = self.context.save()
        self.context = self._host()
        self.context.set_messages(self.said)
        self.context.restore(json.loads(json.dumps(state)))
        assert self.context.checkpoint == before
        assert self._body() == body

    @rule(model=st.sampled_from(MODELS))
    def changes_model(self, model: tuple[str, str]) -> None:
        before, old = self.context.checkpoint, self.model
        self._use(model)
        if before is not None and before.kind == "note":
            # A note binds nobody: it stands until a newer checkpoint of the other model's.
            now = self.context.checkpoint
            assert (now is not None and now.replaced >= before.replaced) or now == before
        elif before is not None and model != old:
            now = self.context.checkpoint
            assert now is None or now.contract != before.contract

    def _use(self, model: tuple[str, str]) -> None:
        self.model = model
        plan = self._plan()
        self.context.use_plan(
            plan,
            counter=counter_for(plan.provider, plan.model),
            renderer=renderer_for(plan.provider),
        )

    # --- what providers do ---

    @rule()
    def outgrows_what_is_compacted_at_once(self) -> None:
        """Far more history than the provider compacts at once: with recovery a view of it is, without none at all."""
        self.large = True
        for _ in range(12):
            self.turns(20, 90)
        self.clock.wait(4_000.0)
        self.context.forget_failures()
        self.provider.script.clear()
        self.notes.clear()
        native = self.model[0] == "anthropic"
        before = self.context.checkpoint
        if native and not self.recovery:
            with pytest.raises(CompactionError) as caught:
                self.context.prepare()
            assert caught.value.reason == "native_input_oversized"
            assert self.context.checkpoint == before
            return
        self.context.prepare()
        made = self.context.checkpoint
        assert made is not None and made != before
        assert made.recovered == native
        if native:
            assert made.ranges and made.left_out, "what was read and what was not are told"
            assert max(last for _, last in (*made.ranges, *made.left_out)) == made.replaced

    @rule()
    def asks_for_a_request(self) -> None:
        self.provider.script.clear()
        self.notes.clear()
        before = self.context.checkpoint
        paid = self.port.compactions
        try:
            request = self.context.prepare()
        except (CompactionError, ContextLengthError):
            assert self.context.checkpoint == before
            return
        assert request.budget.request <= request.budget.usable
        again = self.port.compactions
        assert again <= paid + 1
        if self.context.checkpoint is not None and self.context.checkpoint != before:
            assert self._body() is not None

    @rule(how=st.sampled_from(sorted(FAILURES)))
    def a_compaction_fails(self, how: str) -> None:
        # What is too long for a piece of a large history may be short for the whole of it.
        self._breaks(*FAILURES["error" if self.large and how == "too long" else how])

    @rule(error=st.sampled_from([CompactionError("cancelled"), KeyboardInterrupt()]))
    def a_caller_cancels(self, error: BaseException) -> None:
        def cancel() -> None:
            raise error

        self.port.before = cancel
        self._breaks()

    @rule(model=st.sampled_from(MODELS))
    def model_changes_in_flight(self, model: tuple[str, str]) -> None:
        self._until_due()
        before, old, body = self.context.checkpoint, self.model, self._body()
        paid, told = self.port.compactions, len(self.told)
        self.port.before = lambda: self._use(model)
        self._prepare_in_vain()
        if self.port.compactions > paid and self.told[told:]:
            assert self.told[-1][2] in {"superseded", "failed"}
        if self.model == model:
            self._use(old)
        assert self.context.checkpoint == before
        assert self._body() == body

    @rule()
    def history_changes_in_flight(self) -> None:
        def meddle() -> None:
            self.said.append({"role": "assistant", "content": "Meanwhile."})
            self.turn += 1
            self.said.append({"role": "user", "content": f"{self.turn}: late"})
            self.context.set_messages(self.said)

        self._until_due()
        before = self.context.checkpoint
        paid = self.port.compactions
        self.port.before = meddle
        self._prepare_in_vain()
        assert self.context.checkpoint == before
        if self.port.compactions > paid and self.told[-1][2] != "failed":
            assert self.told[-1][2] == "superseded"

    def _prepare_in_vain(self, *, paid: int | None = None) -> None:
        """A request asked for while no compaction can come about: it passes only where none was begun."""
        paid = self.port.compactions if paid is None else paid
        try:
            self.context.prepare()
            assert self.port.compactions == paid, "no failed compaction lets a request pass"
        except (CompactionError, ContextLengthError, KeyboardInterrupt):
            pass
        finally:
            self.port.before = lambda: None
            self.provider.script.clear()
            self.notes.clear()

    @rule(seconds=st.sampled_from([1.0, 40.0, 4_000.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.wait(seconds)

    def _breaks(self, *failures: Reply | NoteAnswer) -> None:
        """A request asked for while the provider does that: nothing has changed then."""
        self._until_due()
        before, body = self.context.checkpoint, self._body()
        self.provider.script.clear()
        self.provider.script.add([entry for entry in failures if isinstance(entry, Reply)])
        # A note of a large history is written piece by piece: each of them goes the same way.
        self.notes[:] = [entry for entry in failures if isinstance(entry, NoteAnswer)] * 40
        self._prepare_in_vain()
        self.notes.clear()
        assert self.context.checkpoint == before
        assert self._body() == body

    def _until_due(self) -> None:
        """Turns until the next request needs a compaction."""
        while not self.context.due:
            self.turns(20, 60)

    def _until_compacted(self) -> Checkpoint | None:
        """A checkpoint, made where none stands; None where nothing lets one be made just now."""
        if self.context.checkpoint is None:
            self._until_due()
            self.clock.wait(4_000.0)
            self.asks_for_a_request()
        return self.context.checkpoint

    def _keeps_what_is_alive(self, point: Checkpoint) -> None:
        """A checkpoint holds exactly the operations that the messages it covers leave alive."""
        alive: set[str] = set()
        for message in self.said[: point.replaced]:
            if operation := message.get("operation_id"):
                (alive.add if "retain" in message else alive.discard)(operation)
        assert {name for name, _ in point.operations} == alive

    # --- always ---

    @precondition(lambda self: hasattr(self, "context"))
    @invariant()
    def messages_are_the_hosts_own(self) -> None:
        mine = self.context.get_messages()
        assert [(m["role"], m["content"]) for m in mine] == [
            (m["role"], m["content"]) for m in self.said
        ]
        mine.clear()
        point = self.context.checkpoint
        if point is not None:
            self._keeps_what_is_alive(point)
        ended = [operation for name, operation, _ in self.told if name == "finished"]
        begun = [operation for name, operation, _ in self.told if name == "started"]
        assert ended == begun, "what began has ended, once"
        assert len(self.context.get_messages()) == len(self.said)


Boundary.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestBoundary = Boundary.TestCase
