"""Budget classes: caps, what scales, who yields when (frozen-prefix spec, The budget allocator).

The caps here are the defaults of a versioned policy (design 7.3); `budget.policy` carries the figures in force.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class BudgetClass(StrEnum):
    """Classes that share a request's tokens."""

    PLATFORM = "platform"
    AGENT = "agent"
    PERSONA = "persona"
    TOOLS = "tools"
    DEFERRED = "deferred_index"
    SKILL_CATALOG = "skill_catalog"
    SNAPSHOT = "snapshot"
    SKILL_BODIES = "skill_bodies"
    WORKING_STATE = "working_state"
    KNOWLEDGE = "knowledge"
    RECALL = "recall"
    TOOL_RESULTS = "tool_results"
    HISTORY = "history"
    RUNTIME = "runtime"
    USER_INPUT = "user_input"


class YieldRule(StrEnum):
    """When a class gives up tokens."""

    NEVER_PLAN = "never: fails at plan time"
    EPOCH = "only at an epoch boundary"
    NEVER = "never"
    LOAD_FAILS = "never: the load fails instead"
    FIRST = "first"
    SECOND = "second"
    THIRD = "third"
    FOURTH = "fourth"


class ClassRule(NamedTuple):
    """One line of the budget table."""

    budget_class: BudgetClass
    region: str
    title: str
    cap_tokens: int | None
    """None: not capped absolutely."""
    cap_items: int | None
    yields: YieldRule


CLASS_RULES: tuple[ClassRule, ...] = (
    ClassRule(BudgetClass.PLATFORM, "A", "Platform policy", 2_000, None, YieldRule.NEVER_PLAN),
    ClassRule(BudgetClass.AGENT, "A", "Agent instructions", 4_000, None, YieldRule.NEVER_PLAN),
    ClassRule(BudgetClass.PERSONA, "A", "Persona", 2_000, 30, YieldRule.NEVER_PLAN),
    ClassRule(BudgetClass.TOOLS, "A", "Tool definitions", 9_000, 30, YieldRule.EPOCH),
    ClassRule(BudgetClass.DEFERRED, "A", "Deferred tool index", 2_000, 40, YieldRule.EPOCH),
    ClassRule(BudgetClass.SKILL_CATALOG, "A", "Skill catalog", 1_500, 20, YieldRule.EPOCH),
    ClassRule(BudgetClass.SNAPSHOT, "A", "Memory snapshot", 1_500, 40, YieldRule.EPOCH),
    ClassRule(BudgetClass.SKILL_BODIES, "B", "Loaded skills", 6_000, 2, YieldRule.LOAD_FAILS),
    ClassRule(BudgetClass.WORKING_STATE, "B", "Working state", 1_000, None, YieldRule.NEVER),
    ClassRule(BudgetClass.KNOWLEDGE, "B", "Knowledge passages", 3_000, 3, YieldRule.FIRST),
    ClassRule(BudgetClass.RECALL, "B", "In-turn recall", 2_000, None, YieldRule.SECOND),
    ClassRule(BudgetClass.TOOL_RESULTS, "B", "Tool results", None, None, YieldRule.THIRD),
    ClassRule(BudgetClass.HISTORY, "B", "History", None, None, YieldRule.FOURTH),
    ClassRule(BudgetClass.RUNTIME, "B", "Runtime metadata", 500, None, YieldRule.NEVER),
    ClassRule(BudgetClass.USER_INPUT, "B", "Current user message", None, None, YieldRule.NEVER),
)

RULE_OF = {rule.budget_class: rule for rule in CLASS_RULES}

PREFIX_CLASSES = tuple(rule.budget_class for rule in CLASS_RULES if rule.region == "A")

PREFIX_CEILING_TOKENS = sum(rule.cap_tokens or 0 for rule in CLASS_RULES if rule.region == "A")
"""22,000 with the default caps."""

YIELD_ORDER = (
    BudgetClass.KNOWLEDGE,
    BudgetClass.RECALL,
    BudgetClass.TOOL_RESULTS,
    BudgetClass.HISTORY,
)
