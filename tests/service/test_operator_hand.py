"""Pin, fold, exclude and release: acts that the next request honours and every replay repeats."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.erase import erase_person
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import PolicySpec, PrincipalSpec, ServiceError
from tests.cast import AT, Call
from tests.shrinking import PROSE, Shrinker, body

pytestmark = pytest.mark.django_db


@pytest.fixture
def runtime() -> Shrinker:
    """A session of three turns with an open fourth."""
    made = Shrinker()
    made.talk(3)
    made.ask("And now?", now=AT)
    return made


def test_a_pinned_turn_stays_whole_behind_the_history_that_was_cut(runtime: Shrinker) -> None:
    first_turn = runtime.events()[2].sequence
    before = body(runtime.assemble())
    runtime.mark(str(first_turn), "pinned", scope="turn")
    pinned = body(runtime.assemble())
    assert pinned["messages"] == before["messages"]
    runtime.shrink(through=runtime.row.content_sequence - 1)
    after = body(runtime.assemble())
    text = json.dumps(after)
    assert "[pinned] Kept whole" in text
    opening = before["messages"][0]["content"][0]["text"]
    assert opening in [b.get("text") for m in after["messages"] for b in m["content"]]
    calls = [b["id"] for m in after["messages"] for b in m["content"] if b["type"] == "tool_use"]
    assert len(calls) == 1
    runtime.all_proven()


def test_releasing_a_pin_gives_back_the_bytes_of_before(runtime: Shrinker) -> None:
    target = str(runtime.events()[2].sequence)
    runtime.shrink(through=runtime.row.content_sequence - 1)
    before = runtime.assemble()
    runtime.mark(target, "pinned", scope="turn")
    assert runtime.assemble().body != before.body
    runtime.mark(target, "automatic", scope="turn")
    assert runtime.assemble().body == before.body
    runtime.all_proven()


def test_a_folded_turn_stands_as_pointers_and_keeps_its_pairs(runtime: Shrinker) -> None:
    target = runtime.events()[2].sequence
    before = runtime.assemble()
    done = runtime.mark(str(target), "folded", scope="turn")
    assert done.verdict.saved_tokens > 0
    after = runtime.assemble()
    text = after.body.decode()
    assert f'recall it with id \\"{target}.0\\"' in text
    assert after.budget["request"] < before.budget["request"]
    assert after.budget["request"] == before.budget["request"] - done.verdict.saved_tokens
    runtime.all_proven()


def test_an_excluded_result_leaves_a_notice_and_no_word_of_it(runtime: Shrinker) -> None:
    result = next(e for e in runtime.events() if e.type == "tool.result.received")
    listing = "Row of sheet"
    built = runtime.assemble()
    number = built.body.decode().count(listing)
    runtime.mark(f"{result.sequence}.0", "excluded", scope="item")
    text = runtime.assemble().body.decode()
    assert f"[excluded] An operator left tool result {result.sequence}.0 out." in text
    assert 0 < text.count(listing) < number
    runtime.shrink(through=runtime.row.content_sequence - 1)
    assert f"tool.result {result.sequence}.0" not in runtime.assemble().body.decode()
    runtime.all_proven()


def test_a_preview_costs_nothing_and_a_repeated_act_writes_nothing(runtime: Shrinker) -> None:
    target = str(runtime.events()[2].sequence)
    head = runtime.row.last_sequence
    preview = runtime.mark(target, "folded", preview=True)
    assert preview.event is None
    assert preview.verdict.recached_tokens > 0
    assert runtime.row.last_sequence == head
    assert runtime.mark(target, "folded").event == head + 1
    assert runtime.mark(target, "folded").event is None


@pytest.mark.parametrize(
    ("target", "form", "scope", "code"),
    [
        ("999", "pinned", "unit", "not_found"),
        ("1", "pinned", "unit", "not_found"),
        ("3", "excluded", "unit", "invalid_target"),
        ("3.0", "pinned", "item", "invalid_target"),
        ("3.7", "excluded", "item", "not_found"),
        ("x", "pinned", "unit", "invalid_target"),
    ],
)
def test_what_cannot_be_marked_is_refused_with_its_reason(
    runtime: Shrinker, target: str, form: str, scope: str, code: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        runtime.mark(target, form, scope=scope)
    assert refused.value.code == code


def test_a_call_is_never_excluded_without_its_step(runtime: Shrinker) -> None:
    step = next(e for e in runtime.events() if e.type == "model.response.completed")
    with pytest.raises(ServiceError) as refused:
        runtime.mark(f"{step.sequence}.0", "excluded", scope="item")
    assert refused.value.code == "invalid_target"


def test_recall_of_an_excluded_item_says_that_it_is_left_out(runtime: Shrinker) -> None:
    result = next(e for e in runtime.events() if e.type == "tool.result.received")
    runtime.mark(f"{result.sequence}.0", "excluded", scope="item")
    runtime.assemble()
    taken = runtime.say("", Call("r1", "recall", json.dumps({"id": f"{result.sequence}.0"})))
    assert "left out by an operator" in (taken.calls[0].result or "")
    assert PROSE not in (taken.calls[0].result or "")


def test_a_pinned_turn_stays_whole_below_the_pointer_floor_and_is_paid_for() -> None:
    runtime = Shrinker(window=60_000, policy=PolicySpec(low_water=1.0))
    runtime.ask("First.")
    target = runtime.row.content_sequence
    runtime.look("c0", "Needle. " + "Row of sheet. " * 3_000)
    runtime.assemble()
    runtime.say("Seen.")
    runtime.ask("Second.")
    runtime.mark(str(target), "pinned", scope="turn")
    for number in range(1, 4):
        runtime.look(f"c{number}", "Row of sheet. " * 2_500)
        built = runtime.assemble()
        runtime.say("Seen.")
        runtime.ask("More.")
        assert "Needle." in built.body.decode()
        assert built.budget["request"] <= built.budget["usable"]
    assert any(
        e.payload["class"] == "tool_results" for e in runtime.events(EventType.YIELD_APPLIED)
    )
    runtime.all_proven()


@pytest.mark.parametrize("form", ["pinned", "folded", "excluded"])
def test_requests_with_marked_units_are_proven_after_an_erasure(form: str) -> None:
    runtime = Shrinker(principal=PrincipalSpec(id="mara"))
    runtime.talk(3)
    runtime.ask("And now?", now=AT)
    runtime.assemble()
    target = runtime.events()[2].sequence
    if form == "excluded":
        (target, *_) = (e.sequence for e in runtime.events(EventType.TOOL_RESULT))
        runtime.mark(f"{target}.0", form, scope="item")
    else:
        runtime.mark(str(target), form, scope="turn")
    runtime.assemble()
    runtime.shrink(through=runtime.row.content_sequence - 1)
    runtime.assemble()
    erase_person(actor=runtime.actor, principal="mara", note="asked for")
    verdicts = [
        replay_request(actor=runtime.actor, request_id=r.id).verdict for r in runtime.requests
    ]
    # Each of them holds a message of the person, and not one is different.
    assert len(verdicts) > 3
    assert set(verdicts) == {"identical_except"}
