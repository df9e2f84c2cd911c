"""Which calls of a provider's own tools stand as notes: found from the units of one request alone, whatever a memo knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctxengine.engine.build import BuildOptions
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ForeignPart, TextPart, Unit
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.request import ModelRequest, RunInput
from ctxengine.engine.server_calls import served_in, unsent_calls
from ctxengine.engine.step import build_step
from ctxengine.engine.wire.registry import renderer_for
from tests.lab import Lab, a_plan

API = "anthropic"


def call(name: str = "srvtoolu_1", kind: str = "server_tool_use") -> ForeignPart:
    return ForeignPart(kind, f'{{"type":"{kind}","id":"{name}","name":"web","input":{{}}}}', API)


def result(name: str = "srvtoolu_1", kind: str = "web_search_tool_result") -> ForeignPart:
    return ForeignPart(kind, f'{{"type":"{kind}","tool_use_id":"{name}","content":[]}}', API)


@pytest.fixture
def lab() -> Lab:
    """Three turns, each asked, acted on and answered but for the last, which is open."""
    found = Lab(a_plan(provider="anthropic"))
    for _ in range(2):
        found.ask(20)
        found.act(30)
        found.reply(10)
    found.ask(20)
    found.act(30)
    return found


def holding(unit: Unit, *parts: ForeignPart) -> Unit:
    """The unit with these blocks in what it says."""
    first = replace(unit.items[0], parts=(TextPart("Let me look."), *parts))
    return replace(unit, items=(first, *unit.items[1:]))


def built(lab: Lab, run: RunInput, memo: BuildMemo | None = None) -> ModelRequest:
    renderer = renderer_for(lab.plan.provider)
    return build_step(run, lab.facts, opaque={}, renderer=renderer, memo=memo)


def unsent(*shown: Unit | None, lone_results: bool = True) -> set[str]:
    served = {unit.sequence: served_in(unit) for unit in shown if unit is not None}
    return set(unsent_calls(shown, served, lone_results=lone_results))


def test_a_call_ends_where_a_user_or_a_platform_line_speaks_and_a_result_needs_its_call(
    lab: Lab,
) -> None:
    asked, acted, said, *_, last = lab.build().prepared.run.history
    open_call = holding(acted, call())
    assert unsent(open_call, asked) == unsent(open_call, None, last) == {"srvtoolu_1"}
    assert unsent(open_call, holding(said, result())) == set()
    assert unsent(open_call, asked, holding(said, result())) == {"srvtoolu_1"}
    assert unsent(asked, holding(said, result())) == {"srvtoolu_1"}
    assert unsent(asked, holding(said, result()), lone_results=False) == set()
    remote = (call("m1", "mcp_tool_use"), result("m1", "mcp_tool_result"))
    assert unsent(asked, holding(said, *remote)) == set()
    assert unsent(asked, holding(said, remote[1])) == {"m1"}
    stranger = replace(call(), api="other")
    assert unsent(holding(acted, stranger), holding(said, result())) == {"srvtoolu_1"}


def shown_as(run: RunInput, kept: Sequence[Unit], promoted: Sequence[Unit]) -> RunInput:
    """The run under a projection that shows the second turn, with these units from before it."""
    history = run.history[3:]
    place = EventSeq(history[0].sequence)
    projection = Projection(
        cut=place,
        history=history,
        as_sent=[(place, history[-1].sequence)],
        kept=[(place, kept)] if kept else (),
        promoted=promoted,
    )
    return replace(run, history=history, pinned=promoted, projection=projection)


@pytest.mark.parametrize("where", ["kept", "promoted", "pinned", "cut away"])
def test_a_memo_that_saw_the_call_builds_what_one_that_did_not_builds(lab: Lab, where: str) -> None:
    run, memo = lab.build().prepared.run, BuildMemo()
    apart = [holding(run.history[2], call())]
    seen = replace(run, history=[*run.history[:2], *apart, *run.history[3:]])
    assert "server_tool_use" not in built(lab, seen, memo).body.decode()
    if where == "pinned":
        run = replace(run, history=run.history[3:], pinned=apart)
    elif where == "cut away":
        late = holding(run.history[5], result())
        run = replace(run, history=[*run.history[3:5], late])
    else:
        run = shown_as(run, *((apart, ()) if where == "kept" else ((), apart)))
    warm, fresh = built(lab, run, memo), built(lab, run)
    assert (warm.body, warm.request_sha256) == (fresh.body, fresh.request_sha256)
    assert "srvtoolu_1" not in fresh.body.decode() and "[elided] provider" in fresh.body.decode()
    assert warm.unsent == fresh.unsent == ("srvtoolu_1",)
    again = built(lab, replace(run, unsent=fresh.unsent, lone_results=False), memo)
    assert again.request_sha256 == fresh.request_sha256


def test_recorded_calls_stand_whatever_is_left_of_the_units_that_told_of_them(lab: Lab) -> None:
    run = lab.build().prepared.run
    late = holding(run.history[5], result())
    history = [*run.history[:2], holding(run.history[2], call()), *run.history[3:5], late]
    before = built(lab, replace(run, history=history))
    blank = [*run.history[:5], late]
    after = built(lab, replace(run, history=blank, unsent=before.unsent, lone_results=True))
    assert after.unit_digests[late.sequence] == before.unit_digests[late.sequence]
    sent = build_step(
        replace(run, history=blank, unsent=(), lone_results=True),
        lab.facts,
        opaque={},
        renderer=renderer_for(lab.plan.provider),
        options=BuildOptions(validate=False),
    )
    assert sent.unit_digests[late.sequence] != before.unit_digests[late.sequence]
