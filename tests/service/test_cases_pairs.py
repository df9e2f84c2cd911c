"""Development cases on pairs: dev-01 to dev-05 and dev-19."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.fresh import omission_text
from ctxengine.engine.history.suffix import select_history
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import Item, ItemKind
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import ItemRow, SessionRow
from ctxengine.service.import_transcript import import_file
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import ServiceError, ToolSpec
from tests.cast import PROVIDERS, Call, PricedCounter, Runtime, new_actor, tool
from tests.lab import Lab, a_plan
from tests.reading import seen
from tests.rewire import body_for
from tests.service.conftest import Case

TIGHT = BudgetPolicy(reserve=500, margin=0, low_water=1.0, history_floor=0, recall_floor=0)
OMISSION = PricedCounter().text(omission_text(turns=99_999, units=99_999, through=99_999_999))


def imported(messages: list[dict[str, Any]], **fields: Any) -> Runtime:
    """A runtime that goes on with an imported file of chat messages."""
    actor = new_actor()
    data = json.dumps({"messages": messages, **fields}).encode()
    outcome = import_file(actor=actor, name="case.json", data=data)
    assert outcome.status == "imported", outcome.reason
    again = import_file(actor=actor, name="case.json", data=data)
    assert (again.status, again.session_ids) == ("unchanged", outcome.session_ids)
    runtime = object.__new__(Runtime)
    (runtime.session,) = outcome.session_ids
    runtime.actor, runtime.provider = actor, "openai"
    return runtime


def declared(step: dict[str, Any]) -> tuple[ToolSpec, ...]:
    """The tools that a step calls."""
    return tuple(tool(name) for name in sorted({call["name"] for call in step["calls"]}))


def newest_bodies(runtime: Runtime) -> dict[str, bytes]:
    """The newest request in each API, the same twice."""
    row = runtime.requests[-1]
    bodies = {provider: body_for(provider, runtime.row, row) for provider in PROVIDERS}
    assert bodies == {provider: body_for(provider, runtime.row, row) for provider in PROVIDERS}
    assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "identical"
    return bodies


# --- dev-01: a cut between a call and its result ----------------------------------------------------------------------

KINDS = {
    "user": ItemKind.USER_MESSAGE,
    "assistant": ItemKind.ASSISTANT_MESSAGE,
    "tool_call": ItemKind.TOOL_CALL,
    "tool_result": ItemKind.TOOL_RESULT,
}
OWN_01 = {
    "history_tokens": 75,
    "items": [
        {"seq": 1, "kind": "user", "cost": 12},
        {"seq": 2, "kind": "tool_call", "call_id": "p1", "cost": 20},
        {"seq": 3, "kind": "tool_result", "call_id": "p1", "cost": 45},
        {"seq": 4, "kind": "assistant", "cost": 25},
        {"seq": 5, "kind": "user", "cost": 0, "never_yield": True},
    ],
}


def test_01_the_cut_moves_later_and_takes_the_whole_pair(case: Case) -> None:
    given = case("01", OWN_01)
    history = [entry for entry in given["items"] if not entry.get("never_yield")]
    items = [
        Item(
            ItemId(EventSeq(entry["seq"]), 0), KINDS[entry["kind"]], Trust.USER, None, (),
            entry["cost"], "", wire_call_id=entry.get("call_id"),
        )
        for entry in history
    ]  # fmt: skip
    starts = [EventSeq(2 if item.wire_call_id else item.id.sequence) for item in items]
    by_cost_alone = sum(entry["cost"] for entry in history[2:])
    assert by_cost_alone <= given["history_tokens"]
    cuts = {select_history(items, starts, EventSeq(0), given["history_tokens"]) for _ in range(2)}
    assert cuts == {3}
    kept = items[3:]
    assert [item.id.sequence for item in kept] == [4]
    assert sum(item.tokens for item in kept) <= given["history_tokens"]


def test_01_a_built_request_leaves_the_pair_out_as_one() -> None:
    free = Lab(a_plan(window=100_000, policy=TIGHT))
    lab = Lab(a_plan(window=500 + free.plan.prefix_tokens + 13 + 100 + OMISSION, policy=TIGHT))
    for one in (free, lab):
        one.ask(50)
        one.scribe.step(Call("c1", "ports", '{"cost":30}'))
        one.scribe.result("c1", "30|22 80 443")
        one.reply(20)
        one.ask(0)
    assert free.build().prepared.allocation.never_yield == 13
    step = lab.build()
    assert step.built.manifest.cut.at_sequence == 4
    assert step.built.manifest.cut.left_out_units == 2
    assert [entry.what for entry in seen(step.built.body)] == ["user", "assistant", "user", "user"]
    assert lab.build().built.body == step.built.body
    assert "22 80 443" in str(lab.log.body("3"))


# --- dev-02: a batch of parallel calls --------------------------------------------------------------------------------


@pytest.mark.parametrize("room", range(0, 900, 60))
def test_02_a_batch_is_kept_whole_or_not_at_all(room: int) -> None:
    prefix = a_plan(window=100_000, policy=TIGHT).prefix_tokens
    lab = Lab(a_plan(window=500 + prefix + 13 + 50 + room + OMISSION, policy=TIGHT))
    lab.ask(50)
    lab.act(60, 60, 60, 60)
    lab.reply(50)
    lab.ask(50)
    found = seen(lab.build().built.body)
    assert sum(entry.what == "result" for entry in found) in {0, 4}
    assert sum(entry.what == "call" for entry in found) in {0, 4}


def test_02_in_the_open_run_results_shrink_and_all_stay() -> None:
    prefix = a_plan(window=100_000, policy=TIGHT).prefix_tokens
    lab = Lab(a_plan(window=500 + prefix + 600, policy=TIGHT))
    lab.ask(50)
    lab.act(300, 300, 300, 300)
    found = seen(lab.build().built.body)
    results = [entry.text for entry in found if entry.what == "result"]
    assert len(results) == 4
    assert all("[elided]" in text for text in results)


OWN_02 = {
    "messages": [
        {"role": "user", "content": "Compare both."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": f"k{n}",
                    "type": "function",
                    "function": {"name": "read", "arguments": f'{{"n":{n}}}'},
                }
                for n in range(4)
            ],
        },
        *({"role": "tool", "tool_call_id": f"k{n}", "content": f"R{n}"} for n in range(4)),
        {"role": "assistant", "content": "Equal."},
        {"role": "user", "content": "And the third?"},
    ]
}


@pytest.mark.django_db
def test_02_kept_results_follow_their_step_directly(case: Case) -> None:
    runtime = imported(case("02", OWN_02)["messages"])
    for body in newest_bodies(runtime).values():
        kinds = [entry.what for entry in seen(body)]
        first = kinds.index("call")
        assert kinds[first : first + 8] == ["call"] * 4 + ["result"] * 4


# --- dev-03: parallel results come back together, in call order -------------------------------------------------------

OWN_03 = {
    "events": [
        {"type": "user", "text": "Both?"},
        {"type": "assistant_step", "calls": [
            {"call_id": "a", "name": "read", "args": {"n": 1}},
            {"call_id": "b", "name": "read", "args": {"n": 2}},
            {"call_id": "c", "name": "read", "args": {"n": 3}},
        ]},
        {"type": "tool_result", "call_id": "c", "text": "three"},
        {"type": "tool_result", "call_id": "a", "text": "one"},
        {"type": "tool_result", "call_id": "b", "text": "two"},
    ]
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_03_results_stand_in_call_order_in_one_message(case: Case, provider: str) -> None:
    question, step, *results = case("03", OWN_03)["events"]
    runtime = Runtime(provider=provider, tools=declared(step))
    runtime.ask(question["text"])
    runtime.assemble()
    calls = [Call(c["call_id"], c["name"], json.dumps(c["args"])) for c in step["calls"]]
    runtime.say("", *calls)
    for result in results:
        runtime.results((result["call_id"], result["text"]))
    body = runtime.assemble().body
    found = seen(body)
    wanted = [call.id for call in calls]
    assert [entry.id for entry in found if entry.what == "call"] == wanted
    assert [entry.id for entry in found if entry.what == "result"] == wanted
    texts = {result["call_id"]: result["text"] for result in results}
    assert all(texts[entry.id] in entry.text for entry in found if entry.what == "result")
    if provider == "anthropic":
        first, reply, answers = json.loads(body)["messages"]
        assert (first["role"], reply["role"], answers["role"]) == ("user", "assistant", "user")
        kinds = [block["type"] for block in answers["content"]]
        assert kinds[: len(wanted)] == ["tool_result"] * len(wanted)
        assert "tool_result" not in kinds[len(wanted) :]


# --- dev-04: one id, two calls ----------------------------------------------------------------------------------------


def chat_call(name: str, arguments: str, result: str) -> list[dict[str, Any]]:
    call = {"id": "id:0", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "id:0", "content": result},
    ]


OWN_04 = {
    "messages": [
        {"role": "user", "content": "Two things?"},
        *chat_call("look", '{"at":"here"}', "a cat"),
        *chat_call("look", '{"at":"there"}', "a dog"),
        {"role": "assistant", "content": "Both."},
        {"role": "user", "content": "Thanks."},
    ]
}


@pytest.mark.django_db
def test_04_a_reused_id_stays_two_pairs(case: Case) -> None:
    messages = case("04", OWN_04)["messages"]
    expected = [
        (call["tool_calls"][0]["function"]["arguments"], result["content"])
        for call, result in itertools.pairwise(messages)
        if call.get("tool_calls")
    ]
    runtime = imported(messages)
    runtime.ask("And now?")
    runtime.assemble()
    for body in newest_bodies(runtime).values():
        found = seen(body)
        calls = {entry.id: json.loads(entry.text) for entry in found if entry.what == "call"}
        results = {entry.id: entry.text for entry in found if entry.what == "result"}
        assert len(calls) == len([e for e in found if e.what == "call"]) == len(expected)
        assert list(calls) == list(results)
        for (arguments, result), name in zip(expected, calls, strict=True):
            assert calls[name] == json.loads(arguments)
            assert result in results[name]
    rows = ItemRow.objects.filter(session_id=runtime.session, kind="tool_call")
    assert len(set(rows.values_list("call_id", flat=True))) == 1
    assert len(set(rows.values_list("wire_call_id", flat=True))) == 2


# --- dev-05: nothing came out -----------------------------------------------------------------------------------------

OWN_05 = {
    "messages": [
        {"role": "user", "content": "Touch it."},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "m1", "type": "function", "function": {"name": "sh", "arguments": '{"c":"touch x"}'}}
        ]},
        {"role": "tool", "tool_call_id": "m1", "content": ""},
        {"role": "user", "content": "Done?"},
    ]
}  # fmt: skip


@pytest.mark.django_db
def test_05_an_empty_result_is_kept_empty_and_shown_as_such(case: Case) -> None:
    runtime = imported(case("05", OWN_05)["messages"])
    runtime.ask("Good?")
    runtime.assemble()
    for body in newest_bodies(runtime).values():
        found = seen(body)
        assert all(entry.text.strip() for entry in found)
        (call,) = [entry for entry in found if entry.what == "call"]
        (result,) = [entry for entry in found if entry.what == "result"]
        assert call.id == result.id == "m1"
        assert not result.is_error
        assert "(no output)" in result.text
        assert result.text.count("EXTERNAL_UNTRUSTED") == 1
    item = ItemRow.objects.get(session_id=runtime.session, kind="tool_result")
    assert (item.chars_len, item.bytes_len, item.is_error) == (0, 0, False)


# --- dev-19: two runs in one session ----------------------------------------------------------------------------------

OWN_19 = {
    "interleaved": [
        {"run": "A", "type": "user", "text": "Start."},
        {"run": "A", "type": "assistant_step", "calls": [
            {"call_id": "q", "name": "quick", "args": {}},
            {"call_id": "s", "name": "slow", "args": {}},
        ]},
        {"run": "A", "type": "tool_result", "call_id": "q", "text": "at once"},
        {"run": "B", "type": "user", "text": "Something else."},
        {"run": "B", "type": "assistant", "text": "Yes."},
        {"run": "A", "type": "tool_result", "call_id": "s", "text": "at last"},
        {"run": "A", "type": "assistant", "text": "Both done."},
    ]
}  # fmt: skip


@pytest.mark.django_db
def test_19_the_second_run_waits_and_nothing_is_made_up(case: Case) -> None:
    start, step, first, other, reply, late, end = case("19", OWN_19)["interleaved"]
    runtime = Runtime(tools=declared(step))
    runtime.ask(start["text"])
    one = runtime.run
    runtime.assemble()
    runtime.say("", *(Call(c["call_id"], c["name"], json.dumps(c["args"])) for c in step["calls"]))
    runtime.results((first["call_id"], first["text"]))
    with pytest.raises(ServiceError) as busy:
        runtime.ask(other["text"])
    assert (busy.value.code, busy.value.status) == ("run_open", 409)
    with pytest.raises(ServiceError) as pending:
        runtime.assemble()
    assert pending.value.code == "calls_pending"
    assert runtime.results((late["call_id"], late["text"])).next == "assemble"
    body = runtime.assemble().body
    found = [entry for entry in seen(body) if entry.what in {"call", "result"}]
    order = [call["call_id"] for call in step["calls"]]
    assert [(entry.what, entry.id) for entry in found] == [
        *(("call", name) for name in order),
        *(("result", name) for name in order),
    ]
    assert other["text"] not in body.decode()
    runtime.say(end["text"])
    assert runtime.run == one
    runtime.turn(other["text"], reply["text"])
    content = [event for event in runtime.events() if event.body_id and "format" in event.payload]
    assert len(content) == 7
    assert [event.sequence for event in runtime.events()] == list(range(1, len(runtime.events()) + 1))  # fmt: skip
    assert not any(event.payload.get("synthetic") for event in content)
    assert SessionRow.objects.get(id=runtime.session).turns == 2
    for row in runtime.requests:
        assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "identical"
