"""Resolving a plan: select tools, measure every class, refuse what does not fit (spec, The budget allocator)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctxengine.engine.budget.arithmetic import Frame, frame
from ctxengine.engine.budget.classes import PREFIX_CLASSES, RULE_OF, BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.cache.bound_reasoning import loses_reasoning
from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.errors import PlanOverflow
from ctxengine.engine.plan.authority import scope_hashes
from ctxengine.engine.plan.deferred_index import IndexMeter
from ctxengine.engine.plan.plan import (
    ClassTokens,
    PinnedSkill,
    PinnedTool,
    Plan,
    neutral_prefix_sha256,
    row_texts,
    wire_prefix_sha256,
)
from ctxengine.engine.plan.policy_text import POLICY_TEXT
from ctxengine.engine.plan.tool_surface import Aside, select_tools
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.framing import FRAMING_VERSION, framing_text
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.engine.wire.names import wire_names
from ctxengine.engine.wire.tool_search import (
    MOST_DEFERRED,
    RESERVED_NAMES,
    defers_natively,
    search_declaration,
)

_ROW_CLASS = {
    1: BudgetClass.PLATFORM,
    2: BudgetClass.PLATFORM,
    3: BudgetClass.AGENT,
    4: BudgetClass.PERSONA,
    6: BudgetClass.DEFERRED,
    7: BudgetClass.SKILL_CATALOG,
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
    """Candidates, control tools among them; wire names, groups and token counts are filled in here."""
    persona: tuple[str, ...] = ()
    persona_revision: int | None = None
    skills: tuple[PinnedSkill, ...] = ()
    snapshot: tuple[str, ...] = ()
    snapshot_trace: str = ""
    snapshot_watermark: int = 0
    scopes: tuple[str, ...] | None = None
    """What the principal was granted; None when nobody stated it."""
    authority: tuple[str, ...] | None = None
    """The same as hashes, from an earlier plan; used where `scopes` is None."""
    environment: Mapping[str, str] = field(default_factory=dict)
    agent_name: str = ""
    agent_version: str = ""
    policy: BudgetPolicy = BudgetPolicy()
    had_search: bool = False
    """Whether an earlier epoch of the session deferred natively."""
    prefix_ttl: Literal["5m", "1h"] = "5m"
    """An hour for scheduled runs, which wait on children and slow tools; the default for every other session."""
    epoch: int = 1
    notes: tuple[str, ...] = ()
    """Warnings of whoever asks, which the plan carries on with its own."""
    factor: float = 1.0
    """Calibration factor in force: what divides the budget that the prefix is held against. No part of the plan."""


def resolve_plan(
    request: PlanRequest, *, counter: TokenCounter, renderer: WireRenderer, nonce_key: bytes
) -> Plan:
    """Build and measure region A.

    Raises:
        PlanOverflow: a prefix class is over its cap, or the prefix and the floors together leave no room to work in; the error
            names the class (frozen-prefix spec; field note 6).
        RequiredToolMissing: a required tool cannot be defined.
    """
    authority = scope_hashes(request.scopes) if request.scopes is not None else request.authority
    aside, unserved = _aside(request, counter, renderer)
    surface = _surface(request, authority, counter, nonce_key, aside)
    draft = _draft(request, surface, counter, renderer)
    draft = draft.model_copy(
        update={
            "authority_scope_hashes": authority,
            "deferral": "native" if aside is not None else "index",
            "had_search": request.had_search,
        }
    )
    by_class = measure_classes(draft, counter=counter, nonce_key=nonce_key)
    warnings = check_caps(by_class, request.policy)
    total = sum(entry.tokens for entry in by_class.values())
    _check_floors(request, total, by_class)
    return draft.model_copy(
        update={
            "by_class": by_class,
            "row_counts": _row_counts(draft, counter=counter, nonce_key=nonce_key),
            "prefix_tokens": total,
            "warnings": (
                *request.notes,
                *unserved,
                *warnings,
                *_skill_warnings(draft),
            ),
            "prefix_sha256": neutral_prefix_sha256(draft),
            "wire_prefix_sha256": wire_prefix_sha256(draft, nonce_key, renderer),
        }
    )


def _aside(
    request: PlanRequest, counter: TokenCounter, renderer: WireRenderer
) -> tuple[Aside | None, tuple[str, ...]]:
    """The provider's own search where the policy asks for it and the model has it, else a warning that says why not."""
    if request.policy.deferral != "native":
        return None, ()
    names = wire_names(tuple(tool.name for tool in request.tools))
    taken = RESERVED_NAMES.get(renderer.api, frozenset()) & set(names.values())
    if not defers_natively(request.provider, request.model):
        why = f"{model_view(request.model)} at {model_view(request.provider)} is not known to defer tools natively"
    elif taken:
        why = f"a tool has the name of the provider's own search, {', '.join(sorted(taken))}"
    else:
        search = counter.text(search_declaration(request.provider))
        return Aside(search, MOST_DEFERRED), ()
    return None, (f"Deferred tools stand in the index: {why}.",)


def _surface(
    request: PlanRequest,
    authority: tuple[str, ...] | None,
    counter: TokenCounter,
    nonce_key: bytes,
    aside: Aside | None,
) -> tuple[PinnedTool, ...]:
    """The candidates with wire names, counts, groups and reasons."""
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
    caller = names.get(ControlTool.TOOL_CALL, ControlTool.TOOL_CALL)
    return select_tools(
        counted,
        request.policy,
        authority=frozenset(authority) if authority is not None else None,
        has_skills=bool(request.skills),
        meter=IndexMeter(counter, caller, nonce_key, by_server=request.engine == "working_set"),
        once=counter.tools_once,
        aside=aside,
        finds=request.engine == "working_set",
        by_reading=request.policy.surface == "reading",
    )


def _fresh_rows(request: PlanRequest, renderer: WireRenderer) -> Literal["moving", "appended"]:
    """Where fresh rows stand inside a run. What a transcript was made of stays as it was: its requests are not sent."""
    if not request.policy.enforce_caps:
        return "moving"
    if request.engine == "working_set":
        # Inside a turn nothing before the tail changes (capacity spec 6 and 10).
        return "appended"
    return "appended" if loses_reasoning(renderer.api, request.model) else "moving"


def _draft(
    request: PlanRequest,
    tools: tuple[PinnedTool, ...],
    counter: TokenCounter,
    renderer: WireRenderer,
) -> Plan:
    return Plan(
        epoch=request.epoch,
        engine=request.engine,
        provider=request.provider,
        model=request.model,
        window=request.window,
        max_output=request.max_output,
        fresh_rows=_fresh_rows(request, renderer),
        policy=request.policy,
        prefix_ttl=request.prefix_ttl,
        policy_text=POLICY_TEXT,
        framing=framing_text(),
        framing_version=FRAMING_VERSION,
        agent_name=request.agent_name,
        agent_version=request.agent_version,
        instructions=request.instructions,
        persona=request.persona,
        persona_revision=request.persona_revision,
        tools=tools,
        skills=tuple(sorted(request.skills, key=lambda skill: skill.name)),
        snapshot=request.snapshot,
        snapshot_trace=request.snapshot_trace,
        snapshot_watermark=request.snapshot_watermark,
        environment=dict(request.environment),
        renderer=renderer.version,
        counter=counter.label,
    )


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
    items[BudgetClass.DEFERRED] = len(plan.indexed)
    items[BudgetClass.SKILL_CATALOG] = len(plan.skills)
    tokens[BudgetClass.TOOLS] = definitions_tokens(plan, counter)
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
    entries = {
        4: len(plan.persona),
        6: len(plan.indexed),
        7: len(plan.skills),
        8: len(plan.snapshot),
    }
    counts = {
        str(row): (counter.text(text), entries.get(row, 1))
        for row, text in row_texts(plan, nonce_key).items()
    }
    if plan.defined:
        counts["5"] = (definitions_tokens(plan, counter), len(plan.defined))
    return counts


def definitions_tokens(plan: Plan, counter: TokenCounter) -> int:
    """What row 5 takes: every definition in the prompt, once what declaring any tool costs, and the provider's own search.

    Definitions kept aside for that search take nothing before it finds them.
    """
    whole = sum(tool.tokens for tool in plan.defined)
    whole += counter.tools_once if plan.defined else 0
    return whole + (counter.text(search_declaration(plan.provider)) if plan.kept_aside else 0)


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


def _skill_warnings(plan: Plan) -> list[str]:
    cap = plan.policy.cap(BudgetClass.SKILL_BODIES).tokens
    if cap is None:
        return []
    return [
        f"The skill {skill.name} can never be loaded: its body takes {skill.body_tokens:,} tokens, the class allows {cap:,}."
        for skill in plan.skills
        if skill.body_tokens > cap
    ]


def _check_floors(
    request: PlanRequest, prefix_tokens: int, by_class: Mapping[str, ClassTokens]
) -> None:
    policy = request.policy
    if not policy.enforce_caps:
        return
    fixed = frame(
        window=request.window,
        max_output=request.max_output,
        prefix_tokens=prefix_tokens,
        policy=policy,
        factor=request.factor,
    )
    needed = policy.history_floor + policy.recall_floor
    if fixed.body < needed:
        raise PlanOverflow(
            BudgetClass.HISTORY.value,
            needed,
            max(0, fixed.body),
            _no_room(request, fixed, by_class),
        )


def _no_room(request: PlanRequest, fixed: Frame, by_class: Mapping[str, ClassTokens]) -> str:
    """What leaves too little for a conversation, the largest part of it by name, and what to do."""
    name = max(by_class, key=lambda entry: by_class[entry].tokens)
    largest = f"{RULE_OF[BudgetClass(name)].title}, {by_class[name].tokens:,} of them"
    engine = (
        "each request would have to be compacted first"
        if request.engine == "boundary"
        else "history would be cut for ever"
    )
    kept = f"{fixed.reserve:,} for the answer and {fixed.margin:,} as a margin"
    return (
        f"Of a window of {fixed.window:,} tokens {kept} stay free; of the {fixed.usable:,} that are left the prefix takes "
        f"{fixed.prefix:,} (most of it {largest}), so {engine}. Use a larger window, shorten the prefix, or lower "
        f"history_floor ({request.policy.history_floor:,}) in the session's policy."
    )
