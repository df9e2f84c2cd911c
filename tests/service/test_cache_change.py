"""What a request keeps of its segments, and what is said of where two requests part (capacity spec 10)."""

from __future__ import annotations

import json
import re

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import Present
from tests.cast import Runtime
from tests.service.working_set.test_loop import body

pytestmark = pytest.mark.django_db

AGES = (36, 72)


def test_a_request_s_cache_part_is_as_large_in_an_old_session_as_in_a_young_one() -> None:
    runtime = Runtime(provider="openai", window=1_000_000, extra={"engine": "working_set"})
    seen, turns = [], 0
    for age in AGES:
        while turns < age:
            runtime.turn(f"Question {turns} about city {turns}?", f"Answer {turns} is ordinary.")
            turns += 1
        cache = runtime.requests[-1].cache
        assert len(cache["segments"]["ends"].split()) <= 66
        # Figures may have more digits, and that alone.
        seen.append(len(re.sub(r"\d+", "#", json.dumps(cache | {"segments": None}))))
        seen.append(len(cache["segments"]["ends"].split()))
    assert seen[1] == seen[3] == 66
    assert abs(seen[0] - seen[2]) < 200


def test_where_nothing_is_predicted_no_segments_are_kept() -> None:
    runtime = Runtime(provider="compatible", model="house-coder-7b", extra={"engine": "suffix"})
    runtime.turn("How warm is it?", "Four degrees.")
    runtime.turn("And in Bergen?", "Five.")
    for request in runtime.requests:
        assert request.cache["predicted"]["why"] == "no_cache"
        assert "segments" not in request.cache
        assert request.cache["changed"] is None


@pytest.mark.parametrize(("folded", "exact"), [(2, False), (40, True)])
def test_a_part_is_named_only_where_the_kept_ends_tell_it(folded: int, exact: bool) -> None:
    runtime = Runtime(provider="openai", model="gpt-5", window=200_000, extra={"engine": "suffix"})
    for number in range(44):
        runtime.turn(f"Question {number}?", f"Answer {number} is ordinary. " * 12)
    runtime.ask("Before.")
    runtime.assemble()
    old = _messages(runtime)
    runtime.say("Fine.")
    user = runtime.events(EventType.USER_MESSAGE)[folded]
    spec = Present(target=f"{user.sequence}.0", form="folded", scope="turn")
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
    runtime.ask("After.")
    runtime.assemble()
    new = _messages(runtime)
    differs = next(n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    changed = runtime.requests[-1].cache["changed"]
    segment = changed["segment"]
    assert (changed["part"], segment["exact"]) == ("messages", exact)
    in_front = sum(message.get("role") in {"system", "developer"} for message in old[:1])
    if exact:
        assert segment["fragment"] == differs - in_front
    else:
        # All that is claimed: so many parts in front are the same.
        assert segment["fragment"] <= differs - in_front


def _messages(runtime: Runtime) -> list[dict[str, str]]:
    sent = json.loads(body(runtime))
    found: list[dict[str, str]] = sent["messages"] if "messages" in sent else sent["input"]
    return found
