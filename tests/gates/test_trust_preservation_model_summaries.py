"""Gate: a model that writes summaries never sees what is untrusted, so that it cannot launder it (design 7.2).

Fifty generated injections, fetched and then repeated by the assistant in every way it can, are in no byte that the provider
receives and in no summary, though the pretended model says all it was told back. Requests rebuild without asking any model.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.providers.strict_local.script import Reply, View
from ctxengine.service.compactions import compactions_of
from tests.cast import Call
from tests.gates.test_trust_preservation_compaction import (
    INJECTIONS,
    WISHES,
    planted,
    shown_to_the_model,
)
from tests.shrinking import body, outside_envelopes, texts_of
from tests.summing import Summing, asked, provider_of

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

MINE = INJECTIONS[::4]
A_TURN = 5
ECHOED_CHARS = 600


def echo(view: View) -> Reply:
    """A model that says back what it was told: the beginning and the end of it."""
    said = "\n".join(text for turn in view.turns for text in turn.texts)
    return Reply(text=f"{said[:ECHOED_CHARS]}\n{said[-ECHOED_CHARS:]}", plain=True)


def test_no_injection_reaches_the_model_that_sums_up_or_its_summary(settings: Any) -> None:
    assert len(MINE) == 50
    with provider_of(settings, answer=echo) as provider:
        runtime = Summing(window=None)
        for turn in range(len(MINE) // A_TURN):
            read_and_repeat(runtime, str(turn), MINE[turn * A_TURN :][:A_TURN])
            if turn in {3, 6, 9}:
                through = runtime.row.content_sequence
                runtime.shrink(through=through, summariser="model")
                assert runtime.work() == [("compaction.summary", "done")], runtime.job().error
        prompts = asked(provider)
        provider.log.clear()
        runtime.ask("Go on.")
        texts = texts_of(body(runtime.assemble()))
        runtime.all_proven()
        assert asked(provider) == []
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).as_json()["items"]
    assert {line["kind"] for line in found} == {"model"}
    summaries = "\n".join(line["summary"] for line in found)
    outside = "\n".join(outside_envelopes(text) for text in texts)
    forms = {form for text, _ in MINE for form in (text, shown_to_the_model(text))} | set(WISHES)
    for form in forms:
        assert form not in summaries
        assert form not in outside
        for written in {form, json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}:
            # The lines of a prompt are JSON inside JSON.
            for inner in {written, json.dumps(written)[1:-1]}:
                assert not any(inner in prompt for prompt in prompts)
    assert all("[elided] tool.result" in prompt for prompt in prompts[:1])


def read_and_repeat(runtime: Summing, name: str, injections: list[tuple[str, str]]) -> None:
    """One turn: pages are fetched, and the assistant repeats what they say in text and in arguments."""
    runtime.ask(f"Look at the pages of {name}.")
    runtime.assemble()
    calls = [Call(f"f{name}-{number}", "web.fetch") for number in range(len(injections))]
    runtime.say("", *calls)
    pages = [planted(text, place) for text, place in injections]
    runtime.results(*((call.id, page) for call, page in zip(calls, pages, strict=True)))
    runtime.assemble()
    parroted = [shown_to_the_model(text) for text, _ in injections]
    again = Call(f"n{name}", "read", json.dumps({"path": parroted[4], "note": parroted[2]}))
    runtime.say(parroted[4], again)
    runtime.results((again.id, "nothing"))
    runtime.assemble()
    runtime.say("The pages list a price of 40. They also say:\n" + "\n\n".join(parroted))
