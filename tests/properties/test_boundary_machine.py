"""The boundary engine as a state machine: whatever happens, messages stay, and a failure leaves everything as it was."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ctxengine.engine.boundary.failures import CompactionError, ContextLengthError
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from tests.engine.boundary.hosting import MODEL, AnthropicPort, Clock, host, plan_for

WORDS = "what the user wants of this piece of work and why "
MODELS = (MODEL, "claude-opus-5")


class Boundary(RuleBasedStateMachine):
    """One host and its context."""

    @initialize(recovery=st.booleans())
    def open(self, recovery: bool) -> None:
        self.clock = Clock()
        self.provider = StrictProvider()
        self.port = AnthropicPort(self.provider)
        self.recovery = recovery
        self.model = MODEL
        self.context = host(self._plan(), self.clock, self.port)
        self.said: list[dict[str, Any]] = []
        self.turn = 0
        self._ask("begin")

    def _plan(self) -> Any:
        return plan_for(
            "anthropic",
            self.model,
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

    @rule(kind=st.sampled_from(["reminder", "hook"]))
    def reminds(self, kind: str) -> None:
        self._append({"role": "user", "content": f"Mind {self.turn}.", "retain": kind})

    @rule(data=st.data())
    def edits_old_history(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.said) - 1))
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
        self.context = host(self._plan(), self.clock, self.port)
        self.context.set_messages(self.said)
        self.context.restore(state)
        assert self.context.checkpoint == before
        assert self._body() == body

    @rule(model=st.sampled_from(MODELS))
    def changes_model(self, model: str) -> None:
        before = self.context.checkpoint
        changed = model != self.model
        self.model = model
        plan = self._plan()
        self.context.use_plan(
            plan,
            counter=counter_for(plan.provider, plan.model),
            renderer=renderer_for(plan.provider),
        )
        if changed and before is not None:
            now = self.context.checkpoint
            assert now is None or now.contract != before.contract

    # --- what providers do ---

    @rule()
    def asks_for_a_request(self) -> None:
        self.provider.script.clear()
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

    @rule(status=st.sampled_from([429, 500, 529]))
    def a_compaction_fails(self, status: int) -> None:
        self._breaks([Reply(status=status)])

    @rule()
    def a_compaction_is_refused(self) -> None:
        self._breaks([Reply(refuse=True)])

    @rule()
    def a_caller_cancels(self) -> None:
        def cancel() -> None:
            raise CompactionError("cancelled")

        self.port.before = cancel
        self._breaks([])

    @rule()
    def history_changes_in_flight(self) -> None:
        paid = self.port.compactions

        def meddle() -> None:
            self.said.append({"role": "assistant", "content": "Meanwhile."})
            self.turn += 1
            self.said.append({"role": "user", "content": f"{self.turn}: late"})
            self.context.set_messages(self.said)

        self._until_due()
        before = self.context.checkpoint
        self.provider.script.clear()
        self.port.before = meddle
        try:
            self.context.prepare()
            assert self.port.compactions == paid
        except CompactionError:
            pass
        except ContextLengthError:
            pass
        finally:
            self.port.before = lambda: None
        assert self.context.checkpoint == before

    @rule(seconds=st.sampled_from([1.0, 40.0, 4_000.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.wait(seconds)

    def _breaks(self, replies: list[Reply]) -> None:
        """A request asked for while the provider does that: either no compaction was due, or nothing has changed."""
        self._until_due()
        before, body, paid = self.context.checkpoint, self._body(), self.port.compactions
        self.provider.script.clear()
        self.provider.script.add(replies)
        try:
            self.context.prepare()
            assert self.port.compactions == paid, "no failed compaction lets a request pass"
        except (CompactionError, ContextLengthError):
            pass
        finally:
            self.port.before = lambda: None
            self.provider.script.clear()
        assert self.context.checkpoint == before
        assert self._body() == body

    def _until_due(self) -> None:
        """Turns until the next request needs a compaction."""
        while not self.context.due:
            self.turns(20, 60)

    # --- always ---

    @precondition(lambda self: hasattr(self, "context"))
    @invariant()
    def messages_are_the_hosts_own(self) -> None:
        mine = self.context.get_messages()
        assert [(m["role"], m["content"]) for m in mine] == [
            (m["role"], m["content"]) for m in self.said
        ]
        mine.clear()
        assert len(self.context.get_messages()) == len(self.said)


Boundary.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestBoundary = Boundary.TestCase
