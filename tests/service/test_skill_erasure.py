"""Whose skill a body is decides whose erasure takes it: a person's goes with them, the configuration's stays."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.trust.levels import Trust
from ctxengine.service.erase import erase_person
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import PrincipalSpec, SkillSpec
from tests.cast import Call, Runtime

pytestmark = pytest.mark.django_db

MARAS, HOUSE = "Mara likes her tea at four.", "Read the diff first."
SKILLS = (
    SkillSpec(name="habits", description="Her habits.", body=MARAS, trust=Trust.USER),
    SkillSpec(name="review", description="How to review.", body=HOUSE),
)


def loaded() -> Runtime:
    """A session on whose behalf both skills were loaded."""
    runtime = Runtime(principal=PrincipalSpec(id="mara"), extra={"skills": SKILLS})
    runtime.ask("Help me.")
    runtime.assemble()
    calls = [Call(name, "skill_load", json.dumps({"name": name})) for name in ("habits", "review")]
    runtime.say("", *calls)
    return runtime


def test_a_persons_skill_goes_with_the_person_and_the_houses_stays() -> None:
    runtime = loaded()
    before = runtime.assemble()
    assert MARAS in before.body.decode()
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    runtime.ask("Go on.")
    after = runtime.assemble().body.decode()
    assert MARAS not in after
    assert HOUSE in after
    assert after.count("[skill ") == 1
    for row in runtime.requests:
        verdict = replay_request(actor=runtime.actor, request_id=row.id).verdict
        assert verdict in {"identical", "identical_except"}


def test_a_persons_skill_cannot_be_loaded_any_more() -> None:
    runtime = Runtime(principal=PrincipalSpec(id="mara"), extra={"skills": SKILLS})
    runtime.turn("Help me.", "Yes.")
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    runtime.ask("Again.")
    runtime.assemble()
    calls = [Call(name, "skill_load", json.dumps({"name": name})) for name in ("habits", "review")]
    gone, there = runtime.say("", *calls).calls
    assert "skill_gone" in (gone.result or "")
    assert "Loaded." in (there.result or "")
