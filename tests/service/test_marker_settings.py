"""Markers through the loop: within reach, the same when handed out again, and a life that an operator sets."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.items import ContentFormat
from ctxengine.ledger.models import Calibration, PlanRow
from ctxengine.service.body_of_request import request_body
from ctxengine.service.configure_session import configure_session
from ctxengine.service.factor import factor_in_force
from ctxengine.service.plan_specs import Configure
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import Assembled, Content, PolicySpec, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import AT, Runtime, new_actor

pytestmark = pytest.mark.django_db

LONG = "Look at every file, word by word. " * 200


def names(built: Assembled) -> list[str]:
    return [marker["name"] for marker in built.cache["markers"]]


def lives(built: Assembled) -> list[str]:
    return [marker["ttl"] for marker in built.cache["markers"]]


def blocks(count: int) -> Content:
    """A message of many blocks, each a cache position of its own."""
    parts = [{"type": "text", "text": f"Part {n}."} for n in range(count)]
    return Content(raw=json.dumps(parts), format=ContentFormat.BLOCKS)


def test_a_message_of_many_blocks_gets_a_marker_within_reach_and_keeps_it() -> None:
    runtime = Runtime(instructions=LONG)
    runtime.turn("First?", "Yes.")
    runtime.ask("Second?")
    runtime.look("c1", "Found.")
    before = runtime.look("c2", "Found.")
    runtime.assemble()
    runtime.say("Done.")
    runtime.ask(blocks(30))
    runtime.look("c3", "Found.")
    built = runtime.assemble()
    assert built.cache["predicted"]["why"] == "hit"
    assert built.cache["predicted"]["lost"] == 0
    assert len(names(built)) <= 4
    assert names(before)[:2] == ["after_tools", "after_system"]
    tools, system = before.cache["markers"][:2]
    assert 0 < tools["tokens"] == before.manifest["rows"][4]["tokens"] < system["tokens"]
    again = runtime.assemble()
    assert again.request_id == built.request_id
    assert again.body == built.body
    assert request_body(actor=runtime.actor, request_id=built.request_id) == built.body


def test_a_step_of_many_blocks_gives_up_the_tools_marker_and_still_replays() -> None:
    runtime = Runtime(instructions=LONG)
    runtime.turn("First?", "Yes.")
    runtime.ask("Second?")
    runtime.look("c1", "Found.")
    take_input(actor=runtime.actor, run_id=runtime.run, spec=TakeInput(message=blocks(30)))
    runtime.look("c2", "Found.")
    built = runtime.assemble()
    assert names(built) == ["after_system", "carried_history", "run", "intermediate"]
    assert built.cache["predicted"]["why"] == "hit"
    assert built.cache["predicted"]["lost"] == 0
    assert runtime.assemble().body == built.body
    assert replay_request(actor=runtime.actor, request_id=built.request_id).identical


def test_the_life_of_history_is_an_operators_setting_that_rotates_nothing() -> None:
    runtime = Runtime(instructions=LONG)
    runtime.turn("First?", "Yes.")
    runtime.ask("Second?")
    short = runtime.assemble()
    assert lives(short) == ["5m"] * len(lives(short))
    spec = Configure(policy=PolicySpec(history_ttl="1h"))
    configure_session(actor=runtime.actor, session_id=runtime.session, spec=spec)
    assert runtime.assemble().body == short.body
    runtime.say("Done.")
    runtime.ask("Third?")
    long = runtime.assemble()
    assert lives(long) == ["1h"] * len(lives(long))
    assert b'"ttl":"1h"' in long.body
    assert long.prefix_sha256 == short.prefix_sha256
    assert long.wire_prefix_sha256 == short.wire_prefix_sha256
    rows = PlanRow.objects.filter(tenant_id=runtime.actor.tenant_id, session_id=runtime.session)
    assert [row.epoch for row in rows] == [1]


def test_a_session_may_open_with_the_longer_life_and_keep_its_default_policy() -> None:
    runtime = Runtime(instructions=LONG, policy=PolicySpec(history_ttl="1h"))
    built = runtime.turn("First?", "Yes.")
    assert set(lives(built)) == {"1h"}
    (row,) = PlanRow.objects.filter(tenant_id=runtime.actor.tenant_id, session_id=runtime.session)
    assert row.policy["name"] == "default"


def test_few_receipts_may_raise_a_factor_and_not_lower_it_below_one() -> None:
    actor = new_actor()
    key = {"tenant_id": actor.tenant_id, "provider": "anthropic", "model": "m"}
    row = Calibration.objects.create(**key, factor_millionths=700_000, samples=4, updated_at=AT)
    assert factor_in_force(actor.tenant_id, "anthropic", "m") == 1_000_000
    Calibration.objects.filter(**key).update(samples=5)
    assert factor_in_force(actor.tenant_id, "anthropic", "m") == row.factor_millionths
    Calibration.objects.filter(**key).update(samples=1, factor_millionths=1_400_000)
    assert factor_in_force(actor.tenant_id, "anthropic", "m") == 1_400_000
    assert factor_in_force(actor.tenant_id, "anthropic", "other") == 1_000_000
