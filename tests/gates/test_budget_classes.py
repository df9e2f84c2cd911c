"""Gate: every class of the budget table, overflowed through REST (frozen-prefix spec, The budget allocator).

The table itself drives it: a class without a case fails. Prefix classes refuse the session and are named; body classes yield in
the table's order, at `low_water` 1.0 no further than they must.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from ctxengine.engine.budget.classes import CLASS_RULES, YIELD_ORDER, BudgetClass, YieldRule
from ctxengine.ledger.models import OpenRefusal
from tests.api.door import MODEL, WEATHER, Door, key_for, new_tenant

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

MINIMAL = {"reserve": 500, "history_floor": 200, "low_water": 1.0, "compaction": "none"}
LINE = "The harbour master keeps a ledger of every boat that came in. " * 6


@pytest.fixture
def door(db: None) -> Door:
    return Door(key_for(new_tenant("classes")))


def opening(door: Door, **fields: Any) -> Any:
    """The answer to an attempt to open a session."""
    agent = {
        "name": f"agent-{uuid.uuid4().hex[:12]}",
        "version": "1",
        "instructions": fields.pop("instructions", "Help."),
    }
    body = {"model": MODEL, "agent": agent, "tools": [WEATHER], **fields}
    return door.post("sessions", body)


def refused_at_open(door: Door, name: BudgetClass, **fields: Any) -> None:
    """The session does not open, the problem names the class, and the failed open is kept."""
    answer = opening(door, **fields)
    assert (answer.status, answer.code) == (422, "plan_overflow")
    problem = answer.json
    assert problem["budget_class"] == name.value
    assert problem["needed"] > problem["available"]
    kept = OpenRefusal.objects.order_by("at").last()
    assert kept is not None
    assert (kept.code, kept.budget_class) == ("plan_overflow", name.value)
    assert (kept.needed, kept.available) == (problem["needed"], problem["available"])
    assert (kept.provider, kept.model, kept.session_id) == (MODEL["provider"], MODEL["name"], None)


# --- one case for each class ------------------------------------------------------------------------------------------


def platform(door: Door) -> None:
    refused_at_open(door, BudgetClass.PLATFORM, policy={"caps": {"platform": 50}})


def agent(door: Door) -> None:
    refused_at_open(door, BudgetClass.AGENT, instructions="Word by word. " * 4_000)


def persona(door: Door) -> None:
    refused_at_open(door, BudgetClass.PERSONA, persona=[f"Fact {n}." for n in range(31)])
    refused_at_open(door, BudgetClass.PERSONA, persona=["Kind. " * 3_000])


def tools(door: Door) -> None:
    heavy = [{"name": f"tool{n}", "description": "It does a thing. " * 300} for n in range(12)]
    refused_at_open(door, BudgetClass.TOOLS, tools=heavy)


def deferred_index(door: Door) -> None:
    """It never overflows: what has no room in the index is skipped, and named."""
    many = [{"name": f"later{n:02}", "description": "Later.", "deferred": True} for n in range(45)]
    plan = opening(door, tools=many).ok()["plan"]
    assert len(plan["deferred_tool_names"]) == 40
    assert plan["skipped_tool_names"] == [f"later{n}" for n in range(40, 45)]
    none = opening(door, tools=many[:2], policy={"caps": {"deferred_index": 1}}).ok()["plan"]
    assert none["deferred_tool_names"] == []
    assert none["skipped_tool_names"] == ["later00", "later01"]
    assert not {"later00", "later01"} & set(none["tool_names"])


def skill_catalog(door: Door) -> None:
    many = [{"name": f"s{n}", "description": "Helps.", "body": "Do it."} for n in range(21)]
    refused_at_open(door, BudgetClass.SKILL_CATALOG, skills=many)


def snapshot(door: Door) -> None:
    items = [f"Remembered {n}." for n in range(41)]
    refused_at_open(door, BudgetClass.SNAPSHOT, snapshot={"items": items})


def skill_bodies(door: Door) -> None:
    """The load fails, and the run goes on."""
    large = {"name": "large", "description": "Long.", "body": "Step by step. " * 2_500}
    session = opening(door, skills=[large]).ok()["id"]
    run = door.run(session)
    door.assemble(run)
    (call,) = door.calls(run, ("c1", "skill_load", {"name": "large"}))["calls"]
    said = json.loads(call["result"].split("\n")[-1]) if "\n" in call["result"] else call["result"]
    assert "skill_too_large" in str(said)
    assert door.events(session, "type=skill.loaded&") == []


def working_state(door: Door) -> None:
    """The update fails, and what stood stands."""
    session = opening(door).ok()["id"]
    run = door.run(session)
    door.assemble(run)
    update = {"add_constraints": [f"Never touch the file called {n}. " * 8 for n in range(30)]}
    (call,) = door.calls(run, ("c1", "context_update_working_state", update))["calls"]
    assert "error" in str(call["result"])
    assert door.get(f"sessions/{session}/working-state").ok()["constraints"] == []


def knowledge(door: Door) -> None:
    """More passages than the class holds: the best ones stay, each whole."""
    run = door.run(opening(door).ok()["id"])
    built = door.assemble(run, knowledge=lines("k", 5, "A passage. "))
    text = json.dumps(built["request"])
    assert [f"k{n} " in text for n in range(5)] == [True] * 3 + [False] * 2


def recall(door: Door) -> None:
    run = door.run(opening(door).ok()["id"])
    built = door.assemble(run, recall=lines("r", 60, LINE))
    row = next(row for row in built["manifest"]["rows"] if row["row"] == 13)
    assert 0 < row["tokens"] <= 2_000
    assert "r0 " in json.dumps(built["request"])
    assert "r59 " not in json.dumps(built["request"])


def tool_results(door: Door) -> None:
    """Carried results shrink to pointers, oldest first, and only then is history cut."""
    steps = ladder(over_by(door, 1_200))
    assert steps["tool_results"]["outcome"] == "ran"
    assert 0 < steps["tool_results"]["tokens_after"] < steps["tool_results"]["tokens_before"]
    assert steps["history"]["outcome"] == "not_needed"


def history(door: Door) -> None:
    built = over_by(door, 3_500)
    assert ladder(built)["history"]["outcome"] == "ran"
    assert built["manifest"]["cut"]["left_out_turns"] > 0


def runtime(door: Door) -> None:
    """Scopes beyond the class are counted, not named."""
    scopes = [f"mail.folder{n:03}.read" for n in range(400)]
    session = opening(door, principal={"id": "mara", "scopes": scopes}).ok()["id"]
    built = door.assemble(door.run(session))
    row = next(row for row in built["manifest"]["rows"] if row["row"] == 14)
    assert row["tokens"] <= 500
    text = json.dumps(built["request"])
    assert "mail.folder000.read" in text
    assert "mail.folder399.read" not in text
    assert " more." in text


def user_input(door: Door) -> None:
    session = opening(door, model={**MODEL, "window": 12_000}, policy=MINIMAL).ok()["id"]
    run = door.run(session, "Read all of this. " * 6_000)
    answer = door.post(f"runs/{run}/assemble", {})
    assert (answer.status, answer.code) == (409, "budget_exceeded")
    assert answer.json["budget_class"] == "user_input"
    assert answer.json["needed"] > answer.json["available"]
    (pressure,) = door.events(session, "type=context.budget.pressure&")
    (exceeded,) = door.events(session, "type=context.budget.exceeded&")
    assert pressure["sequence"] < exceeded["sequence"]
    assert pressure["payload"]["fits"] is False
    assert pressure["payload"]["legacy_tool_excerpts"] == 0
    assert [s["budget_class"] for s in pressure["payload"]["steps"]] == [
        c.value for c in YIELD_ORDER
    ]


CASES: dict[BudgetClass, Callable[[Door], None]] = {
    BudgetClass.PLATFORM: platform,
    BudgetClass.AGENT: agent,
    BudgetClass.PERSONA: persona,
    BudgetClass.TOOLS: tools,
    BudgetClass.DEFERRED: deferred_index,
    BudgetClass.SKILL_CATALOG: skill_catalog,
    BudgetClass.SNAPSHOT: snapshot,
    BudgetClass.SKILL_BODIES: skill_bodies,
    BudgetClass.WORKING_STATE: working_state,
    BudgetClass.KNOWLEDGE: knowledge,
    BudgetClass.RECALL: recall,
    BudgetClass.TOOL_RESULTS: tool_results,
    BudgetClass.HISTORY: history,
    BudgetClass.RUNTIME: runtime,
    BudgetClass.USER_INPUT: user_input,
}


def test_every_class_of_the_table_has_a_case() -> None:
    assert set(CASES) == {rule.budget_class for rule in CLASS_RULES} == set(BudgetClass)


def test_the_order_of_yields_is_the_tables() -> None:
    ranked = {YieldRule.FIRST: 0, YieldRule.SECOND: 1, YieldRule.THIRD: 2, YieldRule.FOURTH: 3}
    told = sorted(
        (rule for rule in CLASS_RULES if rule.yields in ranked), key=lambda r: ranked[r.yields]
    )
    assert tuple(rule.budget_class for rule in told) == YIELD_ORDER


@pytest.mark.parametrize("name", list(BudgetClass), ids=lambda name: name.value)
def test_a_session_that_overflows_the_class(door: Door, name: BudgetClass) -> None:
    CASES[name](door)


# --- the ladder, one rung after the other -----------------------------------------------------------------------------


def lines(name: str, count: int, text: str) -> list[dict[str, str]]:
    return [{"id": f"{name}{n}", "text": f"{name}{n} {text}"} for n in range(count)]


def pressed(door: Door, extra: int) -> Any:
    """A session with four turns and their results, and a message of about `extra` tokens on top."""
    session = opening(door, model={**MODEL, "window": 14_000}, policy=MINIMAL).ok()["id"]
    for turn in range(4):
        run = door.run(session, f"Question {turn}?")
        door.assemble(run)
        door.calls(run, (f"c{turn}", "weather", {"city": "Bonn"}))
        door.results(run, (f"c{turn}", f"Result {turn}. " + LINE * 8))
        door.assemble(run)
        door.says(run, f"Answer {turn}. " + LINE * 2)
    run = door.run(session, "Hm. " + "word " * extra)
    return door.assemble(run, knowledge=lines("k", 3, LINE), recall=lines("r", 8, LINE))


def over_by(door: Door, tokens: int) -> Any:
    """The same session with a message that is so many tokens more than everything else leaves room for."""
    free, with_words = (pressed(door, extra)["budget"]["free"] for extra in (0, 1_000))
    return pressed(door, (free + tokens) * 1_000 // (free - with_words))


def ladder(built: Any) -> dict[str, Any]:
    return {step["budget_class"]: step for step in built["manifest"]["yields"]}


def test_the_classes_yield_in_order_and_at_the_mark_no_further_than_they_must(door: Door) -> None:
    reached: list[int] = []
    for over in (-60, 100, 500, 1_200, 3_500):
        built = over_by(door, over)
        steps, budget = ladder(built), built["budget"]
        assert budget["request"] <= budget["usable"]
        ran = [place for place, name in enumerate(YIELD_ORDER) if steps[name]["outcome"] == "ran"]
        assert ran == list(range(len(ran))), "A class yielded before the one in front of it."
        reached.append(len(ran))
        if len(ran) > 1:
            assert steps["knowledge"]["tokens_after"] == 0
        if len(ran) > 2:
            assert steps["recall"]["tokens_after"] <= 500
        if ran:
            # What was given up last would not fit any more: a line, or a step with its result.
            last = steps[YIELD_ORDER[ran[-1]]]
            given = last["tokens_before"] - last["tokens_after"]
            assert budget["free"] < (given / last["items"] if len(ran) < 3 else 1_000)
    assert reached == [0, 1, 2, 3, 4]


def test_the_best_line_of_recall_is_cut_to_the_floor_before_it_is_lost(door: Door) -> None:
    def asked(words: int) -> Any:
        session = opening(door, model={**MODEL, "window": 14_000}, policy=MINIMAL).ok()["id"]
        run = door.run(session, "word " * words)
        return door.assemble(run, recall=[{"id": "r0", "text": "r0 " + LINE * 12}])

    def shown(built: Any) -> int:
        return int(next(row["tokens"] for row in built["manifest"]["rows"] if row["row"] == 13))

    roomy, fuller = asked(100), asked(1_100)
    free = roomy["budget"]["free"]
    per_thousand = free - fuller["budget"]["free"]
    tight = asked(100 + (free + 300) * 1_000 // per_thousand)
    assert shown(roomy) > 1_000
    assert 400 < shown(tight) <= 500
    assert "[cut]" in json.dumps(tight["request"])
    assert tight["budget"]["request"] <= tight["budget"]["usable"]
    assert door.replays(tight["request_id"])
