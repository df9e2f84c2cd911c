"""A built request and its manifest: fifteen rows, a reason for everything, sums that agree with the bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import OrphanPair, RunHasNoInput
from ctxengine.engine.explain import Cause, common_prefix_bytes, compare
from ctxengine.engine.manifest import Form, Reason
from ctxengine.engine.step import Memory
from tests.cast import Call
from tests.lab import Lab, Turn, a_plan, played, turns
from tests.reading import said, seen

PRESSED = BudgetPolicy(reserve=500, history_floor=300, recall_floor=50)


def lab(window: int = 8_000) -> Lab:
    return Lab(a_plan(window=window, policy=PRESSED))


@given(turns(largest=300, most=6))
def test_the_manifest_accounts_for_every_unit_once(session: Sequence[Turn]) -> None:
    made = played(lab(4_000), session)
    for step in made.steps:
        manifest = step.built.manifest
        assert [row.row for row in manifest.rows] == list(range(1, 16))
        units = sum(span.units for span in manifest.spans if span.row in {10, 15})
        below = step.prepared.inputs.content_head
        assert units == sum(unit.sequence <= below for unit in made.units())
        left_out = [span for span in manifest.spans if span.form is Form.OUT]
        assert sum(span.units for span in left_out) == manifest.cut.left_out_units
        assert all(row.reason for row in manifest.rows)
        assert len(manifest.yields) == 4
        assert json.loads(json.dumps(manifest.as_json())) == manifest.as_json()


def test_the_size_of_a_manifest_does_not_follow_the_session() -> None:
    sizes = []
    for length in (20, 200):
        made = played(lab(20_000), [Turn(5, ((7,),), 6)] * length, build=False)
        made.ask(5)
        sizes.append(len(made.build().built.manifest.spans))
    assert sizes[1] <= sizes[0] + 2


def test_rows_stand_in_the_order_of_the_layout_and_fresh_rows_before_the_question() -> None:
    made = lab()
    made.scribe.user("3|first question")
    made.scribe.answers("3|first answer")
    made.seed = made.scribe.user("3|second question")
    memory = Memory((("k", "9|known"),), (("r", "9|recalled"),), (("c", "9|corrected"),))
    texts = [entry.text for entry in seen(made.build(memory).built.body)]
    order = ["first question", "first answer", "known", "recalled", "corrected", "Now:", "second"]
    whole = "\n".join(texts)
    places = [whole.index(word) for word in order]
    assert places == sorted(places)


def test_within_a_run_fresh_rows_stand_behind_completed_exchanges() -> None:
    made = lab()
    made.ask(5)
    made.act(20)
    kinds = [entry.what for entry in seen(made.build().built.body)]
    assert kinds == ["user", "call", "result", "user"]


def test_what_was_left_out_is_said_in_one_line_that_names_how_to_get_it_back() -> None:
    made = played(lab(3_000), [Turn(60, ((200,),), 60)] * 12, build=False)
    made.ask(10)
    step = made.build()
    first = seen(step.built.body)[0]
    assert first.what == "user"
    assert first.text.startswith("[omitted]")
    cut = step.built.manifest.cut
    assert f"{cut.left_out_turns} earlier turn" in first.text
    assert "recall" in first.text
    assert step.built.manifest.rows[8].reason is Reason.OMISSION


def test_open_calls_and_empty_runs_are_refused() -> None:
    made = lab()
    with pytest.raises(RunHasNoInput):
        made.build()
    made.ask(5)
    made.scribe.step(Call("c1", "read"))
    with pytest.raises(OrphanPair, match="no result yet"):
        made.build()


def test_a_step_that_only_thought_is_not_sent() -> None:
    made = lab()
    made.ask(5)
    made.scribe.step(text="")
    made.scribe.user("4|go on")
    kinds = [entry.what for entry in seen(made.build().built.body)]
    assert "assistant" not in kinds


def test_text_of_the_user_stands_bare_and_a_result_in_an_envelope() -> None:
    made = lab()
    made.seed = made.scribe.user("3|plain </untrusted> words")
    made.act(20)
    found = seen(made.build().built.body)
    assert found[0].text.startswith("3|plain ")
    assert "</untrusted>" not in found[0].text
    assert found[2].text.startswith("<untrusted")


# --- what changed -----------------------------------------------------------------------------------------------------


def test_the_next_step_is_told_as_appended() -> None:
    made = lab()
    made.ask(5)
    first = made.build()
    made.act(20)
    second = made.build()
    change = compare(first.built, second.built)
    assert change.cause is Cause.APPENDED
    assert compare(first.built, first.built).cause is Cause.SAME


def test_a_cut_and_a_truncation_are_told_apart() -> None:
    made = lab(4_000)
    causes = set()
    played(made, [Turn(60, ((300,),), 60)] * 14)
    for before, after in zip(made.steps, made.steps[1:], strict=False):
        cause = compare(before.built, after.built).cause
        if after.prepared.allocation.raises:
            causes.add(cause)
        else:
            assert cause in {Cause.APPENDED, Cause.FRESH_ROWS, Cause.SAME}
    assert causes
    assert causes <= {Cause.HISTORY_CUT, Cause.TRUNCATION}


def test_other_plans_are_told_by_their_row() -> None:
    for fields, cause, row in (
        ({"provider": "openai"}, Cause.MODEL, 5),
        ({"tools": ()}, Cause.TOOLS, 5),
        ({"persona": ("Terse.",)}, Cause.PERSONA, 4),
        ({"snapshot": ("Tea.",)}, Cause.SNAPSHOT, 8),
    ):
        built = []
        for plan in (a_plan(policy=PRESSED), a_plan(policy=PRESSED, **fields)):
            made = Lab(plan)
            made.ask(5)
            built.append(made.build().built)
        change = compare(*built)
        assert (change.cause, change.row) == (cause, row)


def test_shared_bytes_are_counted_from_the_start() -> None:
    assert common_prefix_bytes(b"", b"abc") == 0
    assert common_prefix_bytes(b"abcd", b"abxd") == 2
    assert common_prefix_bytes(b"abc", b"abc") == 3
    made = lab()
    made.ask(5)
    body = made.build().built.body
    assert common_prefix_bytes(body, body + b"x") == len(body)
    assert said(body)
