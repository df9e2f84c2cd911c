"""Plans that leave deferred tools to the provider's own search, and those that cannot."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from ctxengine.engine.budget.policy import BudgetPolicy, ClassCap
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import ForeignPart, Item, ItemKind, Unit, unit_of
from ctxengine.engine.plan.plan import Plan, wire_prefix
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.render import RenderContext, unit_messages
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.wire.base import WireOpaque, WireText
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.service.plans import control_tools
from tests.cast import PricedCounter

KEY = b"0123456789abcdef0123456789abcdef"
MODELS = {"anthropic": "claude-sonnet-4-6", "openai-responses": "gpt-5.4", "openai": "gpt-5.4"}
NATIVE = BudgetPolicy(deferral="native", reserve=500, history_floor=300, recall_floor=50)


def tool(name: str, **fields: Any) -> PinnedTool:
    schema = '{"properties":{},"type":"object"}'
    given: dict[str, Any] = {
        "wire_name": "",
        "description": f"Does {name}.",
        "input_schema": schema,
    }
    return PinnedTool(name=name, **(given | fields))


LATER = [tool(f"later.{number:02d}", deferred=True) for number in range(12)]


def plan_with(
    tools: Sequence[PinnedTool], provider: str = "anthropic", model: str = "", **fields: Any
) -> Plan:
    return resolve_plan(
        PlanRequest(
            engine="suffix", provider=provider, model=model or MODELS[provider], window=50_000,
            max_output=2_000, instructions="Answer.", tools=[*tools, *control_tools(())],
            **({"policy": NATIVE} | fields),
        ),
        counter=PricedCounter(), renderer=renderer_for(provider), nonce_key=KEY,
    )  # fmt: skip


def names(tools: Sequence[PinnedTool]) -> list[str]:
    return [entry.name for entry in tools]


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_the_index_and_its_caller_are_gone_and_every_definition_travels(provider: str) -> None:
    plan = plan_with([tool("look"), *LATER], provider)
    assert (plan.deferral, plan.warnings) == ("native", ())
    assert "tool.call" not in names(plan.tools)
    assert "6" not in plan.row_counts
    assert plan.by_class["deferred_index"].tokens == plan.by_class["deferred_index"].items == 0
    prefix = wire_prefix(plan, KEY)
    assert [entry.name for entry in prefix.deferred] == [f"later_{n:02d}" for n in range(12)]
    assert not {entry.name for entry in prefix.tools} & {entry.name for entry in prefix.deferred}


def test_what_is_kept_aside_counts_for_nothing_before_it_is_found() -> None:
    wordy = [entry.model_copy(update={"description": "Reads. " * 500}) for entry in LATER]
    assert plan_with([tool("look"), *LATER]).prefix_tokens == plan_with(wordy).prefix_tokens + (
        plan_with([tool("look")]).prefix_tokens - plan_with([]).prefix_tokens
    )


def test_no_order_of_arrival_reaches_the_bytes() -> None:
    tools = [tool("look"), tool("read"), *LATER]
    seen = set()
    for seed in range(6):
        shuffled = list(tools)
        random.Random(seed).shuffle(shuffled)
        plan = plan_with(shuffled)
        seen.add((plan.prefix_sha256, plan.wire_prefix_sha256))
    assert len(seen) == 1


def test_a_deferred_definition_is_part_of_the_prefix_that_is_hashed() -> None:
    changed = [LATER[0].model_copy(update={"description": "Other."}), *LATER[1:]]
    one, other = plan_with(LATER), plan_with(changed)
    assert one.prefix_sha256 != other.prefix_sha256
    assert one.wire_prefix_sha256 != other.wire_prefix_sha256


def test_what_finds_no_definition_is_kept_aside_too() -> None:
    few = NATIVE.model_copy(
        update={"caps": {**NATIVE.caps, "tools": ClassCap(tokens=9_000, items=5)}}
    )
    found = [tool(f"s.{number}", server="s") for number in range(6)]
    plan = plan_with(found, policy=few)
    assert len(plan.defined) == 5
    assert {entry.reason for entry in plan.deferred} == {"over the cap of 5 definitions"}
    assert not plan.skipped_names


def test_without_any_deferred_tool_no_search_is_declared() -> None:
    plan = plan_with([tool("look")])
    assert (
        plan.wire_prefix_sha256
        == plan_with(
            [tool("look")], policy=NATIVE.model_copy(update={"deferral": "index"})
        ).wire_prefix_sha256
    )


def test_one_tool_at_least_stays_in_the_prompt() -> None:
    only = [tool(rule.name, deferred=True) for rule in control_tools(())]
    plan = resolve_plan(
        PlanRequest(
            engine="suffix", provider="anthropic", model="claude-opus-5", window=50_000,
            max_output=2_000, instructions="Answer.", tools=only, policy=NATIVE,
        ),
        counter=PricedCounter(), renderer=renderer_for("anthropic"), nonce_key=KEY,
    )  # fmt: skip
    assert len(plan.defined) == 1
    assert len(plan.deferred) == len(only) - 1


@pytest.mark.parametrize(
    ("tools", "provider", "model", "why"),
    [
        (LATER, "openai", "", "gpt-5.4 at openai is not known to defer tools natively"),
        (LATER, "anthropic", "claude-opus-4-1", "claude-opus-4-1 at anthropic is not known"),
        (
            [*LATER, tool("tool.search.tool.bm25"), tool("tool_search_tool_bm25")],
            "anthropic",
            "",
            "a tool has the name of the provider's own search",
        ),
    ],
)
def test_where_it_cannot_be_the_index_stands_in_with_a_warning(
    tools: list[PinnedTool], provider: str, model: str, why: str
) -> None:
    plan = plan_with(tools, provider, model)
    assert plan.deferral == "index"
    assert why in plan.warnings[0]
    assert len(plan.indexed) == 12
    assert "tool.call" in names(plan.defined)
    assert not wire_prefix(plan, KEY).deferred


# --- what a search left behind, later ---

SEARCH = ForeignPart(
    "server_tool_use",
    '{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_bm25","input":{}}',
    "anthropic",
)
FOUND = ForeignPart(
    "tool_search_tool_result",
    '{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":'
    '"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":'
    '"later_00"},{"type":"tool_reference","tool_name":"later_01"}]}}',
    "anthropic",
)
WEB = ForeignPart("web_search_tool_result", '{"type":"web_search_tool_result"}', "anthropic")


def shown(plan: Plan) -> list[object]:
    """A step of a search, rendered under a plan."""
    item = Item(
        ItemId(EventSeq(5), 0), ItemKind.ASSISTANT_MESSAGE, Trust.MODEL, None,
        (SEARCH, FOUND, WEB), 10, "d",
    )  # fmt: skip
    unit: Unit = unit_of([item])
    context = RenderContext(KEY, {}, "anthropic", searchable=plan.searchable)
    (message,) = unit_messages(unit, context, as_pointers=False)
    return list(message.parts)


def test_what_a_search_found_goes_back_as_it_came() -> None:
    assert [part.raw for part in shown(plan_with(LATER)) if isinstance(part, WireOpaque)] == [
        SEARCH.raw,
        FOUND.raw,
        WEB.raw,
    ]


def test_a_reference_to_a_removed_tool_goes_with_it() -> None:
    removed = [LATER[0].model_copy(update={"removed": True}), *LATER[1:]]
    parts = shown(plan_with(removed, epoch=2, had_search=True))
    raws = [part.raw for part in parts if isinstance(part, WireOpaque)]
    assert raws[0] == SEARCH.raw
    assert "later_00" not in raws[1]
    assert "later_01" in raws[1]
    assert raws[2] == WEB.raw


def test_after_native_deferral_a_search_is_told_in_a_line_and_other_blocks_stay() -> None:
    index = NATIVE.model_copy(update={"deferral": "index"})
    parts = shown(plan_with(LATER, policy=index, epoch=2, had_search=True))
    assert [type(part) for part in parts] == [WireText, WireText, WireOpaque]


def test_a_session_that_never_deferred_natively_replays_what_its_runtime_searched() -> None:
    index = NATIVE.model_copy(update={"deferral": "index"})
    assert all(isinstance(part, WireOpaque) for part in shown(plan_with(LATER, policy=index)))
