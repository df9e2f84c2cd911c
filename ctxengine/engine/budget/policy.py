"""The versioned budget policy: every cap and ratio in force for a plan (design 6, 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ctxengine.engine.budget.classes import CLASS_RULES, BudgetClass
from ctxengine.engine.evidence.inline import INLINE_MAXIMUM, InlineLimit, InlineUnit


class ClassCap(BaseModel):
    """Caps of one class; None means no absolute cap."""

    model_config = ConfigDict(frozen=True)

    tokens: int | None
    items: int | None


def _default_caps() -> dict[str, ClassCap]:
    return {
        rule.budget_class.value: ClassCap(tokens=rule.cap_tokens, items=rule.cap_items)
        for rule in CLASS_RULES
    }


class BudgetPolicy(BaseModel):
    """All figures that decide a budget. A change of any of them is a new version and a new epoch."""

    model_config = ConfigDict(frozen=True)

    name: str = "default"
    version: str = "1"
    policy_cap: int | None = None
    """Upper bound on total tokens, whatever the window."""
    reserve: int | None = None
    """Output reserve (tokens); None: min(8,192, the model's maximum output)."""
    margin: float = 0.05
    """Safety margin on top of the estimator's own rounding up."""
    low_water: float = 0.25
    """Share of history's room that one yield pass leaves; 1.0 yields no more than necessary."""
    history_floor: int = 8_000
    """A yield pass never goes below this many tokens of history (tokens)."""
    tool_results_share: float = 0.25
    """Share of the body that tool results may hold when something must yield."""
    recall_floor: int = 500
    """Tokens recall keeps when it is trimmed."""
    inline_maximum_bytes: int | None = INLINE_MAXIMUM
    """A tool result with more text than this stands in requests as an excerpt (bytes); None: always whole."""
    inline_maximum_chars: int | None = None
    """`working_set`: a tool result with more text than this stands in the open turn as a window (characters; capacity spec 3).
    Where it is given, bytes are not looked at; plans from before it was there have none, and count bytes."""
    compaction: Literal["deterministic", "model", "none"] = "deterministic"
    """What stands for history that a cut drops: a summary taken from the ledger, one that a model writes, or the
    omission line alone."""
    summary_model: str = "cheapest"
    """Who writes it: `cheapest` of the session's own provider whose window admits the input, `session` for the
    session's own model, else a model of that provider, or `provider/model` (design 7.14)."""
    summary_tokens: int = 4_000
    """Most tokens of one summary."""
    summary_share: float = 0.25
    """Share of the body that all summaries together may hold."""
    expected_steps: int = 20
    """Requests a rewrite is expected to serve, for the net-cost test."""
    deferral: Literal["index", "native"] = "index"
    """How deferred tools are reached: through our own index and `tool.call`, or, where the model can, through its
    provider's own search (design 7.1)."""
    offer_facts: bool = False
    """Whether facts that survive a session are offered to memory formation when it ends."""
    summarize_trigger: float = 0.70
    """`boundary`: share of the request budget from which on settled turns are compacted before the next request."""
    summary_max_output_tokens: int = 8_192
    """`boundary`: most tokens of one answer of a note's writer, its reasoning included where the provider counts it."""
    native_compaction_max_output_tokens: int = 4_096
    """`boundary`: most tokens of one answer of a provider that compacts."""
    summary_source_tokens: int | None = None
    """`boundary`: most tokens of a note's source in one call; None: what the writer's window admits."""
    retained_turns: int = 2
    """`boundary`: most recent turns that a compaction leaves whole, as far as they fit the low-water mark."""
    archive_recovery: bool = False
    """`boundary`: whether a history beyond the window may be answered from a bounded view of it, with a notice."""
    native_contract: Literal["on_demand", "inline"] = "on_demand"
    """`boundary`: whether the provider is asked for a window, or makes one by itself at the trigger."""
    native_input: Literal["whole", "elided"] = "whole"
    """`boundary`: whether a provider reads tool results whole or as pointers (on demand alone, design 7.2)."""
    surface: Literal["plan", "reading"] = "plan"
    """Which tools that say what they serve are defined: all that fit, or none, and their schemas are shown to the turns whose
    reading asks for them (capacity spec 5)."""
    promotion: Literal["body", "definitions"] = "body"
    """Where a tool that `find_tools` found is described: in the conversation, or from the next step on among the definitions,
    which is a new epoch and breaks the cache (design 7.1)."""
    guards: Literal["auto", "on", "off"] = "auto"
    """Whether drift guards judge what the model answers; `auto`: in sessions of the `working_set` engine (capacity spec 7)."""
    enforce_caps: bool = True
    """False only for imported plans: excess is a warning, not a refusal (design 7.17)."""
    caps: dict[str, ClassCap] = Field(default_factory=_default_caps)

    def cap(self, budget_class: BudgetClass) -> ClassCap:
        """The caps of one class."""
        return self.caps[budget_class.value]

    @property
    def inline(self) -> InlineLimit:
        """How much of one result stands in a request."""
        if self.inline_maximum_chars is not None:
            return InlineLimit(self.inline_maximum_chars, InlineUnit.CHARACTERS)
        return InlineLimit(self.inline_maximum_bytes)

    def for_engine(self, engine: str) -> BudgetPolicy:
        """The same policy where another engine replays a session: its limit of one result in the unit that engine counts in."""
        most = self.inline.most
        if engine in _IN_CHARACTERS:
            return self.model_copy(
                update={"inline_maximum_bytes": None, "inline_maximum_chars": most}
            )
        return self.model_copy(update={"inline_maximum_bytes": most, "inline_maximum_chars": None})

    @property
    def label(self) -> str:
        """`name@version`, as events and requests record it."""
        return f"{self.name}@{self.version}"

    def as_json(self) -> dict[str, Any]:
        """Plain data for storage; reading it back gives an equal policy."""
        return self.model_dump(mode="json")


DEFAULT_POLICY = BudgetPolicy()

_IN_CHARACTERS: Mapping[str, BudgetPolicy] = MappingProxyType(
    {
        "working_set": BudgetPolicy(
            version="2", inline_maximum_bytes=None, inline_maximum_chars=INLINE_MAXIMUM
        )
    }
)
"""The default of engines whose spec limits a result by its characters."""


def default_policy(engine: str) -> BudgetPolicy:
    """The policy of a session of this engine that states none."""
    return _IN_CHARACTERS.get(engine, DEFAULT_POLICY)


IMPORTED_POLICY = BudgetPolicy(
    name="imported", enforce_caps=False, inline_maximum_bytes=None, compaction="none"
)
"""Prefix caps as the file has them, excess listed as warnings; results as the model saw them (design 7.17)."""
