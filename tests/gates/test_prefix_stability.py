"""Gate: prefix stability. Fifty turns over midnight, with everything that moves moving: one prefix, one epoch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import PlanRow
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import (
    MemoryLine,
    PolicySpec,
    PrincipalSpec,
    SnapshotSpec,
)
from tests.cast import Call, Runtime

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

START = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
TURNS = 50


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_fifty_turns_over_midnight_share_one_prefix(provider: str) -> None:
    runtime = Runtime(
        provider=provider,
        window=12_000,
        policy=PolicySpec(reserve=800, history_floor=500),
        principal=PrincipalSpec(id="mara@acme", scopes=("files:read", "net")),
        extra={
            "persona": ("Speaks plainly.",),
            "snapshot": SnapshotSpec(trace_id="t1", watermark=4, items=("Likes tea.",)),
        },
    )
    bodies = [body for turn in range(TURNS) for body in one_turn(runtime, turn)]
    rows = runtime.requests
    assert len(rows) == len(bodies) == 2 * TURNS
    assert len({row.prefix_sha256 for row in rows}) == 1
    assert len({row.wire_prefix_sha256 for row in rows}) == 1
    assert {row.epoch for row in rows} == {1}
    assert PlanRow.objects.filter(session_id=runtime.session).count() == 1
    assert runtime.events(EventType.EPOCH_ROTATED) == []
    # The scenario did what it is for: the day changed, history was cut, memory was corrected, a call was refused.
    assert {row.inputs["now"][:10] for row in rows} >= {"2026-03-28", "2026-03-29"}
    assert runtime.events(EventType.YIELD_APPLIED)
    assert len({prefix_on_the_wire(body) for body in bodies}) == 1
    assert "2026" not in prefix_on_the_wire(bodies[0])


def one_turn(runtime: Runtime, turn: int) -> list[bytes]:
    now = START + timedelta(minutes=10 * turn)
    scopes = ("files:read", "net") if turn < TURNS // 2 else ("files:read",)
    runtime.ask(f"Question {turn}", now=now, timezone="Europe/Oslo", scopes=scopes)
    memory = {
        "recall": (MemoryLine(id=f"m{turn}", text=f"Remembered at turn {turn}."),),
        "corrections": (MemoryLine(text="No longer likes tea."),) if turn > 20 else (),
    }
    first = runtime.assemble(now=now, **memory)
    name = "gone" if turn % 10 == 3 else "web_fetch"
    taken = runtime.say("Let me look.", Call(f"c{turn}", name, '{"q": 1}'))
    if taken.next == "tools":
        runtime.results((f"c{turn}", f"line {turn}\n" * 40))
    second = runtime.assemble(now=now + timedelta(minutes=4))
    runtime.say(f"Answer {turn}.")
    return [first.body, second.body]


def prefix_on_the_wire(body: bytes) -> str:
    """System texts and tool definitions, cache markers left out."""
    request = json.loads(body)
    said = request.get("system") or [
        entry for entry in request["input"] if entry.get("role") in {"system", "developer"}
    ]
    texts = [block.get("text", block.get("content")) for block in said]
    assert texts
    tools = [
        {key: value for key, value in tool.items() if key != "cache_control"}
        for tool in request["tools"]
    ]
    return json.dumps([texts, tools])


def test_a_rotation_by_hand_is_a_new_epoch_with_its_reason_and_keeps_unchanged_bytes() -> None:
    runtime = Runtime()
    runtime.turn("One", "1")
    rotate_epoch(actor=runtime.actor, session_id=runtime.session, reason="operator", note="why not")
    runtime.turn("Two", "2")
    before, after = runtime.requests
    assert (before.epoch, after.epoch) == (1, 2)
    assert before.wire_prefix_sha256 == after.wire_prefix_sha256
    (rotated,) = runtime.events(EventType.EPOCH_ROTATED)
    assert rotated.payload["reasons"] == ["operator"]
    assert rotated.payload["note"] == "why not"


def test_sessions_of_one_agent_share_their_prefix_unless_they_carry_memory() -> None:
    one, two = Runtime(), Runtime()
    assert one.opened.plan.wire_prefix_sha256 == two.opened.plan.wire_prefix_sha256
    assert one.opened.plan.prefix_sha256 == two.opened.plan.prefix_sha256
