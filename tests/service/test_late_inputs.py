"""Input that comes in while the model answers, again and again: each further request is one that its provider takes."""

from __future__ import annotations

import json

import pytest

from ctxengine.service.prove import replay_request
from ctxengine.service.specs import Content, PolicySpec, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Runtime

pytestmark = pytest.mark.django_db

TIMES = 4


def speaker_at_the_end(runtime: Runtime) -> str:
    body = json.loads(runtime.assemble().body)
    return str((body.get("messages") or body["input"])[-1]["role"])


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
@pytest.mark.parametrize("engine", ["working_set", "suffix", "boundary"])
@pytest.mark.parametrize("guards", ["on", "off"])
def test_every_late_input_is_answered(provider: str, engine: str, guards: str) -> None:
    runtime = Runtime(provider=provider, extra={"engine": engine}, policy=PolicySpec(guards=guards))
    runtime.ask("What does the page say of Bergen?")
    runtime.assemble()
    for number in range(TIMES):
        late = TakeInput(message=Content(raw=f"And what of harbour {number}?"))
        take_input(actor=runtime.actor, run_id=runtime.run, spec=late)
        assert runtime.say(f"The page tells of harbour {number - 1}.").next != "finish"
        assert speaker_at_the_end(runtime) == "user"
    assert runtime.say("All harbours are told of.").next == "finish"
    for row in runtime.requests:
        assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "identical"
