"""Fallback legs over REST: one projection, a body per model, sized to the smallest (design 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx2
import pytest

from ctxengine.ledger.models import Calibration, RequestRow, Tenant
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.erase import erase_person
from ctxengine.service.specs import Actor
from tests.api.door import Door

pytestmark = pytest.mark.django_db

CLAUDE = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
CHAT = {"provider": "openai", "name": "gpt-5.4"}
RESPONSES = {"provider": "openai-responses", "name": "gpt-5.4"}
MODELS = {"anthropic": CLAUDE, "openai": CHAT, "openai-responses": RESPONSES}
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}
SMALL = {"reserve": 1_000, "history_floor": 400}
ENGINES = ("suffix", "working_set", "boundary")


@pytest.fixture
def strict() -> Iterator[StrictServer]:
    with StrictServer(StrictProvider(instance="legs")) as server:
        yield server


def post(strict: StrictServer, provider: str, body: Any, *replies: Reply) -> Any:
    """Send one body; gives the provider's answer."""
    strict.provider.script.add(list(replies))
    answer = httpx2.post(
        strict.url + PATHS[provider], content=json.dumps(body).encode(), headers=HEADERS
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def turns(door: Door, session: str, count: int, words: str = "in plain words ") -> None:
    """Closed turns with one call each."""
    for number in range(count):
        run = door.run(session, f"How was day {number}? Say it {words * 20}")
        door.assemble(run)
        door.calls(run, (f"c{number}", "weather", {"day": number}))
        door.results(run, (f"c{number}", f"day {number}: {number * 3} degrees. " * 20))
        door.assemble(run)
        door.says(run, f"On day {number} it was {number * 3} degrees. " * 8)


def shown(body: Any) -> str:
    """A body's text."""
    return json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("own", MODELS)
def test_every_leg_gets_a_body_that_its_provider_takes(
    door: Door, strict: StrictServer, own: str, engine: str
) -> None:
    session = door.open(model=MODELS[own], engine=engine)
    turns(door, session, 3)
    run = door.run(session, "And on day three?")
    legs = [MODELS[name] for name in MODELS if name != own]
    built = door.assemble(run, legs=legs)
    assert [leg["provider"] for leg in built["legs"]] == [leg["provider"] for leg in legs]
    own_text = shown(built["request"])
    post(strict, own, built["request"], Reply(text="Fine."))
    for leg in built["legs"]:
        post(strict, leg["provider"], leg["request"], Reply(text="Fine."))
        assert leg["request"]["model"] == leg["model"]
        for number in range(3):
            told = f"On day {number} it was {number * 3} degrees."
            assert (told in shown(leg["request"])) == (told in own_text)
    again = door.assemble(run)
    assert again == built
    replay = door.get(f"requests/{built['request_id']}/replay").ok()
    assert replay["identical"], replay
    assert [e["type"] for e in door.events(session)].count("context.epoch.rotated") == 0


def test_a_leg_that_was_changed_on_disk_is_no_longer_proven(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    built = door.assemble(run, legs=[CHAT])
    row = RequestRow.objects.get(id=UUID(built["request_id"]))
    row.inputs["leg_bodies"][0]["request_sha256"] = "0" * 64
    row.save(update_fields=["inputs"])
    replay = door.get(f"requests/{built['request_id']}/replay").ok()
    assert not replay["identical"]
    assert "leg 0 (openai/gpt-5.4)" in replay["first_difference"]


@pytest.mark.parametrize("engine", ["suffix", "working_set"])
def test_the_request_is_sized_for_the_smallest_and_grows_back(door: Door, engine: str) -> None:
    session = door.open(engine=engine, policy=SMALL)
    turns(door, session, 12)
    run = door.run(session, "And now?")
    whole = door.assemble(run)
    small = door.assemble(run, legs=[{**CHAT, "window": 7_000, "max_output": 1_000}])
    assert small["request_id"] != whole["request_id"]
    assert small["budget"]["request"] < whole["budget"]["request"]
    (leg,) = small["legs"]
    assert leg["tokens"] <= (7_000 - 1_000) * 0.95
    assert any("openai/gpt-5.4" in warning for warning in small["manifest"]["warnings"])
    assert small["request"]["max_tokens"] == whole["request"]["max_tokens"]
    back = door.assemble(run, legs=[])
    assert "legs" not in back
    assert back["budget"]["history"] == whole["budget"]["history"]
    for built in (whole, small, back):
        assert door.replays(built["request_id"])
    if engine == "working_set":
        reasons = [
            event["payload"]["reason"]
            for event in door.events(session)
            if event["type"] == "context.working_set.planned"
        ]
        assert reasons[-2:] == ["leg", "leg"]


def test_legs_stay_for_the_run_and_end_with_it(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    assert len(door.assemble(run, legs=[CHAT])["legs"]) == 1
    door.calls(run, ("c1", "weather", {}))
    followed = door.post(
        f"runs/{run}/tool-results",
        {"results": [{"call_id": "c1", "content": "mild"}], "assemble": True},
    ).ok()
    assert len(followed["assembled"]["legs"]) == 1
    door.says(run, "Mild.")
    assert "legs" not in door.assemble(door.run(session, "And now?"))


def test_a_repeat_under_one_key_gives_the_same_answer(door: Door) -> None:
    run = door.run(door.open())
    first = door.post(f"runs/{run}/assemble", {"legs": [CHAT, RESPONSES]}, once="k")
    again = door.post(f"runs/{run}/assemble", {"legs": [CHAT, RESPONSES]}, once="k")
    assert again.json == first.ok()


def test_an_answer_of_a_leg_is_counted_for_its_model_alone(
    door: Door, strict: StrictServer, tenant: UUID
) -> None:
    session = door.open()
    run = door.run(session)
    built = door.assemble(run, legs=[RESPONSES, CHAT])
    call = ScriptedCall("weather", '{"city":"Oslo"}', "c1")
    answer = post(strict, "openai", built["legs"][1]["request"], Reply(calls=(call,)))
    taken = door.post(f"runs/{run}/responses", {"response": answer, "leg": 1}).ok()
    assert [(c["name"], c["action"]) for c in taken["calls"]] == [("weather", "execute")]
    row = RequestRow.objects.get(id=UUID(built["request_id"]))
    assert (row.provider, row.model, row.status) == ("openai", "gpt-5.4", "answered")
    assert row.usage["prompt_total"] == answer["usage"]["prompt_tokens"]
    learnt = Calibration.objects.filter(tenant_id=tenant).values_list("provider", "model")
    assert list(learnt) == [("openai", "gpt-5.4")]
    door.results(run, ("c1", "mild"))
    following = door.assemble(run)
    post(strict, "anthropic", following["request"], Reply(text="Mild."))
    assert door.replays(following["request_id"])


def test_reasoning_goes_back_to_the_model_that_thought_it(door: Door, strict: StrictServer) -> None:
    session = door.open()
    run = door.run(session)
    built = door.assemble(run, legs=[RESPONSES])
    reply = Reply(calls=(ScriptedCall("weather", "{}", "c1"),), thinking="about the weather")
    answer = post(strict, "openai-responses", built["legs"][0]["request"], reply)
    assert any(item["type"] == "reasoning" for item in answer["output"])
    door.post(f"runs/{run}/responses", {"response": answer, "leg": 0}).ok()
    door.results(run, ("c1", "mild"))
    other = {**RESPONSES, "name": "gpt-5.6-sol"}
    following = door.assemble(run, legs=[RESPONSES, other])
    mine, foreign = (leg["request"] for leg in following["legs"])
    assert any(item.get("type") == "reasoning" for item in mine["input"])
    assert not any(item.get("type") == "reasoning" for item in foreign["input"])
    assert "encrypted_content" not in shown(following["request"])
    for name, body in (
        ("anthropic", following["request"]),
        ("openai-responses", mine),
        ("openai-responses", foreign),
    ):
        post(strict, name, body, Reply(text="Mild."))
    assert door.replays(following["request_id"])
    door.says(run, "Mild.")
    replay = door.get(f"requests/{following['request_id']}/replay").ok()
    assert replay["verdict"] == "identical_except"
    assert replay["except"] == ["opaque"]


@pytest.mark.parametrize("engine", ["suffix", "working_set"])
def test_what_was_erased_is_told_by_digest_in_legs_too(
    door: Door, tenant: UUID, engine: str
) -> None:
    session = door.open(principal={"id": "mara"}, engine=engine)
    turns(door, session, 2)
    run = door.run(session, "And now?")
    built = door.assemble(run, legs=[CHAT], recall=[{"text": "it rained"}])
    erase_person(actor=Actor(tenant, "system"), principal="mara", note="asked for it")
    replay = door.get(f"requests/{built['request_id']}/replay").ok()
    assert (replay["verdict"], replay["except"]) == ("identical_except", ["erased"])
    assert Tenant.objects.filter(id=tenant).exists()


def test_a_leg_with_a_denser_counter_is_measured_and_still_fits(door: Door) -> None:
    policy = {**SMALL, "low_water": 1.0}
    session = door.open(model={**CHAT, "window": 9_000, "max_output": 1_000}, policy=policy)
    turns(door, session, 24, words="погода была хорошая ")
    run = door.run(session, "And now?")
    alone = door.assemble(run)
    small = {**CLAUDE, "window": 9_000, "max_output": 1_000}
    built = door.assemble(run, legs=[small])
    (leg,) = built["legs"]
    assert leg["tokens"] > built["budget"]["request"]
    assert leg["tokens"] <= (9_000 - 1_000) * 0.95
    assert built["budget"]["request"] < alone["budget"]["request"]
    told = [e["payload"] for e in door.events(session) if e["type"] == "context.legs.chosen"]
    assert [payload["reason"] for payload in told] == ["asked", "measured"]
    ratios = [payload["legs"][0]["ratio_millionths"] for payload in told]
    assert 1_000_000 < ratios[0] < ratios[1]
    assert door.replays(built["request_id"])


def test_a_failure_of_a_leg_teaches_that_leg_alone(door: Door, tenant: UUID) -> None:
    session = door.open()
    run = door.run(session)
    built = door.assemble(run, legs=[CHAT])
    tokens = built["legs"][0]["tokens"]
    message = (
        f"This model's maximum context length is {max(1_100, tokens)} tokens. However, your messages resulted in "
        f"{tokens + 200} tokens."
    )
    body = {"error": {"code": "context_length_exceeded", "message": message}}
    failed = door.post(
        f"runs/{run}/responses", {"error": {"status": 400, "body": body}, "leg": 0}
    ).ok()
    assert (failed["next"], failed["code"]) == ("fail", "over_length")
    assert list(Calibration.objects.filter(tenant_id=tenant).values_list("model", flat=True)) == [
        "gpt-5.4"
    ]
    assert door.says(run, "Hello to you.")["next"] == "finish"


def test_what_cannot_be_a_leg_is_refused_and_named(door: Door) -> None:
    session = door.open()
    run = door.run(session)
    path = f"runs/{run}/assemble"
    unknown = door.post(path, {"legs": [{"provider": "nobody", "name": "x"}]})
    assert (unknown.status, unknown.code) == (422, "unsupported_provider")
    field = door.post(path, {"legs": [{**CHAT, "size": 3}]})
    assert (field.status, field.code) == (400, "unknown_field")
    many = door.post(path, {"legs": [CHAT] * 5})
    assert many.status in {400, 422}
    tiny = door.post(path, {"legs": [{**CHAT, "window": 1_024}]})
    assert (tiny.status, tiny.code) == (422, "leg_unavailable")
    door.assemble(run, legs=[CHAT])
    nowhere = door.post(
        f"runs/{run}/responses",
        {"response": {"content": [], "stop_reason": "end_turn"}, "leg": 1},
    )
    assert (nowhere.status, nowhere.code) == (422, "unknown_leg")


def test_a_plan_that_defers_natively_refuses_a_leg_without_such_a_search(door: Door) -> None:
    tool = {"name": "rare", "description": "Rare.", "input_schema": {}, "deferred": True}
    session = door.open(policy={"deferral": "native"}, tools=[tool])
    run = door.run(session)
    refused = door.post(f"runs/{run}/assemble", {"legs": [CHAT]})
    assert (refused.status, refused.code) == (422, "leg_unavailable")
    assert "legs" not in door.assemble(run)
