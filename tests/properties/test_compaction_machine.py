"""A machine over append, compact, merge, undo, pin, fold, exclude and restart.

Whatever the order: pairs stay whole and requests keep the provider's rules, the ranges before the cut tile the log, what was
undone gives back its bytes, constraints stay, and every request recorded on the way rebuilds to its hash.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ctxengine.engine.events import EventType
from ctxengine.engine.items import ItemKind
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import violations
from ctxengine.ledger.models import Checkpoint, Event, ItemRow
from ctxengine.service.compactions import compactions_of
from ctxengine.service.specs import PolicySpec, ServiceError
from tests.cast import AT, Call
from tests.shrinking import PROSE, Shrinker

pytestmark = pytest.mark.django_db

REFUSALS = frozenset(
    {
        "no_progress",
        "depth_exceeded",
        "nothing_to_compact",
        "compaction_merged",
        "compaction_covered",
    }
)
"""Refusals that an arbitrary order of acts may meet."""


class Shrinking(RuleBasedStateMachine):
    """One session that people and pressure shrink."""

    def __init__(self) -> None:
        super().__init__()
        self.runtime = Shrinker(
            window=24_000, policy=PolicySpec(history_floor=600, summary_tokens=500)
        )
        self.runtime.ask("Never write to prod.", now=AT)
        self.runtime.note(add_constraints=["never write to prod"])
        self.calls = 0

    # --- append ---

    @rule(results=st.lists(st.integers(1, 60), min_size=1, max_size=3), answer=st.integers(1, 8))
    def turn(self, results: list[int], answer: int) -> None:
        """Finish the run with a step of its own and start another."""
        runtime = self.runtime
        runtime.assemble()
        ids = [f"k{self.calls + place}" for place in range(len(results))]
        self.calls += len(ids)
        runtime.say("", *(Call(name, "read", '{"path":"src/a.py"}') for name in ids))
        pairs = zip(ids, results, strict=True)
        runtime.results(*((name, "Row of the sheet. " * size) for name, size in pairs))
        runtime.assemble()
        runtime.say(PROSE * answer)
        runtime.ask(f"And question {self.calls}? " + PROSE, now=AT)
        self.look()

    def look(self) -> bytes:
        """Build the next request and hold it against the provider's rules."""
        built = self.runtime.assemble()
        assert violations(WireApi.ANTHROPIC, built.body) == ()
        assert built.body.decode().count("): never write to prod") == 1
        assert built.budget["request"] <= built.budget["usable"]
        return built.body

    # --- shrink ---

    @rule(share=st.floats(0.1, 1.0))
    def compact(self, share: float) -> None:
        """Compact a share of what is there, and undo it at once: nothing may have changed."""
        before = self.look()
        row = self.runtime.row
        try:
            done = self.runtime.shrink(through=max(1, int(row.content_sequence * share)))
        except ServiceError as refused:
            assert refused.code in REFUSALS
            assert self.look() == before
            return
        self.look()
        if done.outcome == "compacted" and row.last_sequence % 2:
            self.runtime.undo(done.event)
            assert self.look() == before

    @rule()
    def merge(self) -> None:
        """Merge what stands side by side."""
        try:
            self.runtime.shrink(merge=True)
        except ServiceError as refused:
            assert refused.code in REFUSALS
        self.look()

    @rule(data=st.data())
    @precondition(lambda self: self.runtime.events(EventType.COMPACTED))
    def undo(self, data: st.DataObject) -> None:
        """Undo any compaction there ever was."""
        made = self.runtime.events(EventType.COMPACTED)
        try:
            self.runtime.undo(data.draw(st.sampled_from(made)).sequence)
        except ServiceError as refused:
            assert refused.code in REFUSALS
        self.look()

    # --- by hand ---

    @rule(
        data=st.data(),
        form=st.sampled_from(["pinned", "folded", "automatic"]),
        scope=st.sampled_from(["unit", "turn"]),
    )
    def present(self, data: st.DataObject, form: str, scope: str) -> None:
        """Pin, fold or release any unit or turn that is over."""
        event = data.draw(st.sampled_from(self.events()[:-1] or self.events()))
        pinned = sum("pinned" in str(e.payload) for e in self.acts())
        self.runtime.mark(str(event), "folded" if pinned > 2 else form, scope=scope)
        self.look()

    @rule(data=st.data())
    @precondition(lambda self: self.results())
    def exclude(self, data: st.DataObject) -> None:
        """Exclude a result."""
        event = data.draw(st.sampled_from(self.results()))
        self.runtime.mark(f"{event}.0", "excluded", scope="item")
        assert f"An operator left tool result {event}.0 out" in self.look().decode() or self.hidden(
            event
        )

    @rule()
    def restart(self) -> None:
        """Lose everything that is dispensable."""
        before = self.look()
        Checkpoint.objects.filter(tenant_id=self.runtime.actor.tenant_id).delete()
        assert self.look() == before

    # --- what must hold ---

    def teardown(self) -> None:
        """Ranges tile, requests prove, constraints stand."""
        found = compactions_of(actor=self.runtime.actor, session_id=self.runtime.session).as_json()
        at = 1
        for tile in found["coverage"]:
            assert tile["first"] == at
            at = tile["through"] + 1
        assert max((line["depth"] for line in found["items"]), default=1) <= 2
        assert [c.text for c in self.runtime.state.constraints] == ["never write to prod"]
        self.runtime.all_proven()

    def acts(self) -> list[Event]:
        return list(self.runtime.events(EventType.PRESENTATION_SET))

    def events(self) -> list[int]:
        """Events with content."""
        rows = ItemRow.objects.filter(
            tenant_id=self.runtime.actor.tenant_id, session_id=self.runtime.session
        )
        return sorted(set(rows.values_list("sequence", flat=True)))

    def results(self) -> list[int]:
        """Events that are results of `read`."""
        rows = ItemRow.objects.filter(
            tenant_id=self.runtime.actor.tenant_id,
            session_id=self.runtime.session,
            kind=ItemKind.TOOL_RESULT.value,
            name="read",
        )
        return sorted(rows.values_list("sequence", flat=True))

    def hidden(self, event: int) -> bool:
        """Whether the request does not show that event one by one."""
        shown = self.runtime.assemble().manifest["spans"]
        return not any(
            span["reason"] == "excluded_by_hand" and span["from_item"] == f"{event}.0"
            for span in shown
        )


def test_whatever_people_and_pressure_do_nothing_is_lost_torn_or_unprovable() -> None:
    run_state_machine_as_test(
        Shrinking,
        settings=settings(
            max_examples=max(4, settings().max_examples // 8),
            stateful_step_count=10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
