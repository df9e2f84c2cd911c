"""Resolving a plan: select tools, measure every class, refuse what does not fit (spec, The budget allocator)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ctxengine.engine.budget.arithmetic import frame
from ctxengine.engine.budget.classes import PREFIX_CLASSES, RULE_OF, BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.errors import PlanOverflow
from ctxengine.engine.plan.plan import (
    ClassTokens,
    PinnedTool,
    Plan,
    neutral_prefix_sha256,
    row_texts,
    wire_prefix_sha256,
)
from ctxengine.engine.plan.policy_text import POLICY_TEXT
from ctxengine.engine.plan.tool_surface import select_tools
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.framing import FRAMING_VERSION, framing_text
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.engine.wire.names import wire_names

_ROW_CLASS = {
    1: BudgetClass.PLATFORM,
    2: BudgetClass.PLATFORM,
    3: BudgetClass.AGENT,
    4: BudgetClass.PERSONA,
    8: BudgetClass.SNAPSHOT,
}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is resolved from. Order of tools, scopes and servers must not matter to the bytes."""

    engine: str
    provider: str
    model: str
    window: int
    max_output: int
    instructions: str
    tools: Sequence[PinnedTool]
    """Candidates; wire names, groups and token counts are filled in here."""
    persona: tuple[str, ...] = ()
    snapshot: tuple[str, ...] = ()
    snapshot_trace: str = ""
    snapshot_watermark: int = 0
    scopes: tuple[str, ...] = ()
    policy: BudgetPolicy = BudgetPolicy()
    epoch: int = 1


def resolve_plan(
    request: PlanRequest, *, counter: TokenCounter, renderer: WireRenderer, nonce_key: bytes
) -> Plan:
    """Build and measure region A.

    Raises:
        PlanOverflow: a prefix class is over its cap, or the prefix and the floors together leave no room to work in; the error
            names the class (frozen-prefix spec; field note 6).
    """
    names = wire_names(tuple(tool.name for tool in request.tools))
    counted = [
        tool.model_copy(
            update={
                "wire_name": names[tool.name],
                "tokens": counter.tool(names[tool.name], tool.description, tool.input_schema),
            }
        )
        for tool in request.tools
    ]
    tools = select_tools(counted, request.policy)
    draft = Plan(
        epoch=request.epoch,
        engine=request.engine,
        provider=request.provider,
        model=request.model,
        window=request.window,
        max_output=request.max_output,
        policy=request.policy,
        policy_text=POLICY_TEXT,
        framing=framing_text(),
        framing_version=FRAMING_VERSION,
        instructions=request.instructions,
        persona=request.persona,
        tools=tools,
        snapshot=request.snapshot,
        snapshot_trace=request.snapshot_trace,
        snapshot_watermark=request.snapshot_watermark,
        authority_scope_hashes=scope_hashes(request.scopes),
        renderer=renderer.version,
        counter=counter.label,
    )
    by_class = measure_classes(draft, counter=counter, nonce_key=nonce_key)
    warnings = check_caps(by_class, request.policy)
    total = sum(entry.tokens for entry in by_class.values())
    _check_floors(request, total)
    return draft.model_copy(
        update={
            "by_class": by_class,
            "row_counts": _row_counts(draft, counter=counter, nonce_key=nonce_key),
            "prefix_tokens": total,
            "warnings": tuple(warnings),
            "prefix_sha256": neutral_prefix_sha256(draft),
            "wire_prefix_sha256": wire_prefix_sha256(draft, nonce_key, renderer),
        }
    )


def scope_hashes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Sorted hashes of granted scopes, so that a plan can tell a new grant without naming it."""
    return tuple(sorted({hashlib.sha256(scope.encode()).hexdigest() for scope in scopes}))


def measure_classes(
    plan: Plan, *, counter: TokenCounter, nonce_key: bytes
) -> dict[str, ClassTokens]:
    """Count what each prefix class takes, from the rows exactly as they will be rendered."""
    tokens: dict[BudgetClass, int] = dict.fromkeys(PREFIX_CLASSES, 0)
    items: dict[BudgetClass, int] = dict.fromkeys(PREFIX_CLASSES, 0)
    for row, text in row_texts(plan, nonce_key).items():
        tokens[_ROW_CLASS[row]] += counter.text(text)
        items[_ROW_CLASS[row]] += 1
    items[BudgetClass.PERSONA] = len(plan.persona)
    items[BudgetClass.SNAPSHOT] = len(plan.snapshot)
    tokens[BudgetClass.TOOLS] = sum(tool.tokens for tool in plan.defined)
    items[BudgetClass.TOOLS] = len(plan.defined)
    return {
        name.value: ClassTokens(
            tokens=tokens[name],
            items=items[name],
            cap_tokens=plan.policy.cap(name).tokens,
            cap_items=plan.policy.cap(name).items,
            source="counted" if counter.exact else "estimated",
        )
        for name in PREFIX_CLASSES
    }


def _row_counts(
    plan: Plan, *, counter: TokenCounter, nonce_key: bytes
) -> dict[str, tuple[int, int]]:
    entries = {4: len(plan.persona), 8: len(plan.snapshot)}
    counts = {
        str(row): (counter.text(text), entries.get(row, 1))
        for row, text in row_texts(plan, nonce_key).items()
    }
    if plan.defined:
        counts["5"] = (sum(tool.tokens for tool in plan.defined), len(plan.defined))
    return counts


def check_caps(by_class: dict[str, ClassTokens], policy: BudgetPolicy) -> list[str]:
    """Refuse, or under the imported policy list, every prefix class over a cap.

    Raises:
        PlanOverflow: the first class over its cap, in the order of the budget table.
    """
    warnings = []
    for name, entry in by_class.items():
        over_tokens = entry.cap_tokens is not None and entry.tokens > entry.cap_tokens
        over_items = entry.cap_items is not None and entry.items > entry.cap_items
        if not (over_tokens or over_items):
            continue
        if policy.enforce_caps:
            if over_tokens:
                raise PlanOverflow(name, entry.tokens, entry.cap_tokens or 0, _hint(name))
            raise PlanOverflow(
                name,
                entry.items,
                entry.cap_items or 0,
                "These are entries, not tokens. " + _hint(name),
            )
        title = RULE_OF[BudgetClass(name)].title
        warnings.append(
            f"{title}: {entry.tokens:,} tokens in {entry.items} entries, over the default cap of "
            f"{entry.cap_tokens or 0:,} tokens."
        )
    return warnings


def _hint(name: str) -> str:
    if name == BudgetClass.TOOLS.value:
        return "Shorten descriptions and schemas, defer tools, or raise the class in the session's policy."
    return "Shorten it, or raise the class in the session's policy."


def _check_floors(request: PlanRequest, prefix_tokens: int) -> None:
    policy = request.policy
    if not policy.enforce_caps:
        return
    fixed = frame(
        window=request.window,
        max_output=request.max_output,
        prefix_tokens=prefix_tokens,
        policy=policy,
        factor=1.0,
    )
    needed = policy.history_floor + policy.recall_floor
    if fixed.body < needed:
        raise PlanOverflow(
            BudgetClass.HISTORY.value,
            needed,
            max(0, fixed.body),
            f"The prefix takes {prefix_tokens:,} of {fixed.usable:,} usable tokens, so history would be cut for ever. "
            "Shorten the prefix, use a larger window, or lower history_floor in the session's policy.",
        )
