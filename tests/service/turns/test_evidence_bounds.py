"""Evidence and recall have bounds of their own: however long a result, however little a request has left (capacity spec 3)."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.evidence.ends import both_ends
from ctxengine.engine.evidence.inline import INLINE_MAXIMUM
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.run_input import fixed_frame
from ctxengine.ledger.models import Calibration, ItemRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.calibration import ModelKey
from ctxengine.service.import_transcript import import_file
from ctxengine.service.specs import Actor, PolicySpec
from ctxengine.service.turns.evidence import Evidence, evidence_of, try_recall
from ctxengine.service.wiring import plan_from
from tests.cast import AT, Call, Runtime, new_actor
from tests.service.test_import_sessions import line, lines

pytestmark = pytest.mark.django_db

BIG = "a line of the log that says little\n" * 60_000
ROOM_CHARS = INLINE_MAXIMUM + 4_000
"""What one text of an answer may hold, its notes counted."""


def evidence(actor: Actor) -> Evidence:
    """Of the newest result there is."""
    rows = ItemRow.objects.filter(tenant_id=actor.tenant_id, kind="tool_result")
    row = rows.order_by("-sequence")[0]
    item = ItemId(EventSeq(row.sequence), row.ordinal)
    return evidence_of(actor=actor, session_id=row.session_id, item=item)


def imported(text: str) -> Evidence:
    """A result of a session from elsewhere: no limit holds there."""
    actor = new_actor()
    asked = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat log"}}
    data = lines(
        line("a1", None, "user", "First question."),
        line("a2", "a1", "assistant", [asked]),
        line("a3", "a2", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": text}]),
        line("a4", "a3", "assistant", [{"type": "text", "text": "All done."}]),
    )
    import_file(actor=actor, data=data, name="x.jsonl")
    return evidence(actor)


def received(text: str, engine: str, policy: PolicySpec) -> Evidence:
    runtime = Runtime(extra={"engine": engine}, policy=policy)
    runtime.ask("Read it.")
    runtime.look("c1", text)
    return evidence(runtime.actor)


@pytest.mark.parametrize("text", [BIG, BIG.replace("\n", " "), "汉字\n" * 20_000])
def test_no_text_of_an_answer_is_longer_than_a_window_where_no_limit_holds(text: str) -> None:
    found = imported(text)
    assert (found.limit, found.window_ends, found.characters) == (None, True, len(text))
    whole = both_ends(text, INLINE_MAXIMUM, reference=f'id "{found.item}"').text
    assert found.window == whole
    for field in fields(found):
        value = getattr(found, field.name)
        assert not isinstance(value, str) or len(value) <= ROOM_CHARS, field.name


@pytest.mark.parametrize(
    ("engine", "policy"),
    [
        ("working_set", PolicySpec(inline_maximum_chars=1_000_000_000)),
        ("working_set", PolicySpec(inline_maximum_chars=200_000)),
        ("working_set", PolicySpec(inline_maximum_bytes=200_000)),
        ("suffix", PolicySpec(inline_maximum_bytes=1_000_000_000)),
        ("suffix", PolicySpec(inline_maximum_bytes=200_000)),
    ],
)
def test_a_high_limit_is_told_and_both_ends_stand_for_what_it_lets_through(
    engine: str, policy: PolicySpec
) -> None:
    found = received(BIG, engine, policy)
    assert found.limit == (policy.inline_maximum_chars or policy.inline_maximum_bytes)
    assert found.window_ends
    assert len(found.window) <= ROOM_CHARS
    assert "are not shown" in found.window


@pytest.mark.parametrize("length", [0, 20, INLINE_MAXIMUM, INLINE_MAXIMUM + 1])
def test_what_is_no_longer_than_a_window_stands_whole(length: int) -> None:
    found = imported(BIG[:length])
    assert found.window_ends == (length > INLINE_MAXIMUM) == (found.window != BIG[:length])


@pytest.mark.parametrize("policy", [PolicySpec(), PolicySpec(inline_maximum_bytes=2_000)])
def test_a_window_within_its_limit_is_all_that_the_open_turn_shows(policy: PolicySpec) -> None:
    assert not received(BIG, "suffix", policy).window_ends


@pytest.mark.parametrize("text", ["", "short", BIG[:90_000]])
@pytest.mark.parametrize("engine", ["suffix", "working_set"])
def test_a_model_that_bills_more_than_was_counted_leaves_evidence_readable(
    engine: str, text: str
) -> None:
    runtime = Runtime(
        provider="openai",
        window=4_000,
        max_output=500,
        extra={"engine": engine},
        policy=PolicySpec(history_floor=0),
        instructions="Look it up and answer. " * 250,
    )
    runtime.ask("Read it.")
    runtime.look("c1", text)
    plan = plan_from(runtime.log, plan_row_of(runtime.row))
    key = ModelKey(runtime.actor.tenant_id, plan.provider, plan.model)
    row, _ = Calibration.objects.get_or_create(**key.fields, defaults={"updated_at": AT})
    row.factor_millionths, row.samples = 2_000_000, 50
    row.save()
    assert fixed_frame(plan, 2_000_000).body < 0
    found = evidence(runtime.actor)
    arguments = json.dumps({"id": found.item})
    tried = try_recall(actor=runtime.actor, session_id=runtime.session, arguments=arguments)
    assert tried.text == found.part
    assert found.part == text or 1_000 < len(found.part) < 3_000


def test_a_recall_of_dense_ends_leaves_half_of_the_body() -> None:
    dense = "🦊🐻🎈🧭\n" * 1_000
    runtime = Runtime(provider="openai", window=16_000, policy=PolicySpec(reserve=1_000))
    runtime.ask("Read it.")
    runtime.look("c1", dense + "words of a line\n" * 1_500 + dense[:2_000])
    runtime.assemble()
    (result,) = runtime.events(EventType.TOOL_RESULT)
    asked = json.dumps({"id": f"{result.sequence}.0"})
    answer = runtime.say("", Call("r1", "recall", asked)).calls[0].result or ""
    plan = plan_from(runtime.log, plan_row_of(runtime.row))
    newest = ItemRow.objects.filter(session_id=runtime.session, kind="tool_result")
    tokens = newest.order_by("-sequence")[0].tokens
    assert "are not shown" in answer
    assert tokens <= fixed_frame(plan, 1_000_000).body // 2 + 50
