"""Which tools are defined in the prompt, which are indexed, which are left out, and why (spec, The budget allocator).

Candidates compete in a fixed rank; what wins is then ordered by name, so that the order in which servers connect, keys are
written or sets are iterated never reaches the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.errors import PlanOverflow, RequiredToolMissing
from ctxengine.engine.plan.authority import scope_hash
from ctxengine.engine.plan.deferred_index import IndexMeter
from ctxengine.engine.plan.tool import READ_EFFECTS, PinnedTool


class Claim(IntEnum):
    """Who comes first when slots are scarce; the lower value wins."""

    MUST = 0
    """Required tools and the platform's own: a plan that cannot define them fails."""
    ALWAYS = 1
    """Tools marked as always loaded."""
    EXPLICIT = 2
    """Tools that the configuration names, in the order in which it names them first."""
    DISCOVERED = 3
    """Tools of servers: reads before writes, then by server, then by name."""


class Aside(NamedTuple):
    """A provider that keeps definitions aside for a search of its own."""

    search_tokens: int
    """What declaring the search takes (tokens)."""
    most: int
    """Definitions that one request may keep aside."""


class _Chosen(NamedTuple):
    defined: tuple[PinnedTool, ...]
    over: tuple[PinnedTool, ...]
    """What found no definition, in rank order, each with its reason."""


def select_tools(
    candidates: Sequence[PinnedTool],
    policy: BudgetPolicy,
    *,
    authority: frozenset[str] | None = None,
    has_skills: bool = False,
    meter: IndexMeter | None = None,
    once: int = 0,
    aside: Aside | None = None,
    finds: bool = False,
    by_reading: bool = False,
) -> tuple[PinnedTool, ...]:
    """Assign each candidate to a group, with the reason, ordered by name.

    Args:
        candidates: tools with their token counts, control tools among them. `tool.call` among them lets tools be
            deferred.
        authority: hashes of the scopes granted; None when nobody stated any, and then no tool is withheld for want of one.
        has_skills: whether the catalog names anything to load.
        meter: measures the deferred index; without it nothing is deferred.
        once: tokens that declaring any tool costs, whatever their number.
        aside: where the provider's own search finds deferred tools; None defers through the index.
        finds: whether `find_tools` stands beside `tool.call` where something is deferred.
        by_reading: whether tools that say what they serve wait in the index until a directive asks for it.

    Raises:
        PlanOverflow: tools that the configuration names take more tokens than the class allows.
        RequiredToolMissing: a required tool cannot be defined.
    """
    visible, hidden = _partition(candidates, authority, has_skills)
    if not policy.enforce_caps:
        left_out = (ControlTool.TOOL_CALL, ControlTool.FIND_TOOLS)
        kept = [tool for tool in visible if not any(_is(tool, name) for name in left_out)]
        return _ordered([_grouped(tool, "defined", _why(tool)) for tool in kept], hidden)
    caller = next((tool for tool in visible if _is(tool, ControlTool.TOOL_CALL)), None)
    finder = next((tool for tool in visible if _is(tool, ControlTool.FIND_TOOLS)), None)
    others = [tool for tool in visible if tool not in (caller, finder)]
    waits = frozenset(tool.name for tool in others if _waits(tool, by_reading=by_reading))
    if aside is not None:
        chosen = _with_search(others, waits, policy, once, aside)
        if chosen is not None:
            return _ordered(chosen, hidden)
        caller = None
    if caller is not None and meter is not None:
        reach = [caller, finder] if finds and finder is not None else [caller]
        chosen = _with_index(others, waits, reach, policy, meter, once)
        if chosen is not None:
            return _ordered(chosen, hidden)
    plain = _define(others, policy, once)
    skipped = [_grouped(tool, "skipped", tool.reason) for tool in plain.over]
    return _ordered([*plain.defined, *skipped], hidden)


def _with_index(
    tools: Sequence[PinnedTool],
    waits: frozenset[str],
    reach: Sequence[PinnedTool],
    policy: BudgetPolicy,
    meter: IndexMeter,
    once: int,
) -> list[PinnedTool] | None:
    """The surface where something is to be deferred; None when nothing is."""
    configured = [tool for tool in tools if tool.name in waits]
    names = {tool.name for tool in configured}
    competing = [tool for tool in tools if tool.name not in names]
    if not configured and not _define(competing, policy, once).over:
        return None
    # What reaches the index takes slots itself, so the others are chosen once more beside it.
    chosen = _define([*competing, *reach], policy, once)
    waiting = [
        *(_grouped(tool, "deferred", _why_deferred(tool)) for tool in _ranked(configured)),
        *(_grouped(tool, "deferred", tool.reason) for tool in chosen.over),
    ]
    indexed, left = _fit_index(waiting, policy, meter)
    if indexed:
        return [*chosen.defined, *indexed, *left]
    # Without an entry its tool has nothing to name and gives its slot back; what was to be deferred still gets none.
    plain = _define(competing, policy, once)
    out = [tool for tool in left if tool.name in names]
    return [*plain.defined, *(_grouped(tool, "skipped", tool.reason) for tool in plain.over), *out]


def _with_search(
    tools: Sequence[PinnedTool],
    waits: frozenset[str],
    policy: BudgetPolicy,
    once: int,
    aside: Aside,
) -> list[PinnedTool] | None:
    """The surface where the provider's own search finds what is deferred; None when nothing is."""
    configured = _ranked(tool for tool in tools if tool.name in waits)
    if len(configured) == len(tools):
        # A request in which every definition is kept aside is refused.
        configured = configured[1:]
    names = {tool.name for tool in configured}
    competing = [tool for tool in tools if tool.name not in names]
    if not configured and not _define(competing, policy, once).over:
        return None
    chosen = _define(competing, policy, once + aside.search_tokens)
    waiting = [
        *(_grouped(tool, "deferred", _why_deferred(tool)) for tool in configured),
        *(_grouped(tool, "deferred", tool.reason) for tool in chosen.over),
    ]
    left = [
        _grouped(tool, "skipped", f"{tool.reason}; over the provider's {aside.most:,}")
        for tool in waiting[aside.most :]
    ]
    return [*chosen.defined, *waiting[: aside.most], *left]


def _waits(tool: PinnedTool, *, by_reading: bool) -> bool:
    """Whether a tool is to be reached without a definition; those that are wanted always never are."""
    if _claim(tool) <= Claim.ALWAYS:
        return False
    return tool.deferred or (by_reading and bool(tool.serves))


def _why_deferred(tool: PinnedTool) -> str:
    return "deferred by configuration" if tool.deferred else "shown to turns that ask for it"


def _fit_index(
    waiting: Iterable[PinnedTool], policy: BudgetPolicy, meter: IndexMeter
) -> tuple[list[PinnedTool], list[PinnedTool]]:
    cap = policy.cap(BudgetClass.DEFERRED)
    indexed: list[PinnedTool] = []
    left: list[PinnedTool] = []
    taken = 0
    for tool in waiting:
        room = cap.tokens is None or taken + meter.line(tool) <= cap.tokens
        if room and (cap.items is None or len(indexed) < cap.items):
            whole = meter.whole([*indexed, tool])
            if cap.tokens is None or whole <= cap.tokens:
                indexed.append(tool)
                taken = whole
                continue
        left.append(_grouped(tool, "skipped", f"{tool.reason}; no room in the deferred index"))
    return indexed, left


def _define(tools: Sequence[PinnedTool], policy: BudgetPolicy, once: int) -> _Chosen:
    cap = policy.cap(BudgetClass.TOOLS)
    defined: list[PinnedTool] = []
    over: list[PinnedTool] = []
    tokens = once
    for tool in _ranked(tools):
        claim = _claim(tool)
        if cap.items is not None and len(defined) >= cap.items:
            if claim is Claim.MUST:
                raise RequiredToolMissing(
                    tool.name, f"all {cap.items} definitions are taken by others"
                )
            over.append(_grouped(tool, "skipped", f"over the cap of {cap.items:,} definitions"))
            continue
        if cap.tokens is not None and tokens + tool.tokens > cap.tokens:
            if claim is not Claim.DISCOVERED:
                raise _too_many_tokens(tools, cap.tokens, once)
            over.append(_grouped(tool, "skipped", f"over the cap of {cap.tokens:,} tokens"))
            continue
        tokens += tool.tokens
        defined.append(_grouped(tool, "defined", _why(tool)))
    return _Chosen(tuple(defined), tuple(over))


def _too_many_tokens(tools: Sequence[PinnedTool], cap: int, once: int) -> PlanOverflow:
    named = [tool for tool in tools if _claim(tool) is not Claim.DISCOVERED]
    largest = sorted(named, key=lambda tool: (-tool.tokens, tool.name))[:3]
    return PlanOverflow(
        BudgetClass.TOOLS.value,
        sum(tool.tokens for tool in named) + once,
        cap,
        "Shorten descriptions and schemas, or defer some of the largest: "
        + ", ".join(f"{tool.name} ({tool.tokens:,})" for tool in largest)
        + ".",
    )


def _partition(
    candidates: Sequence[PinnedTool], authority: frozenset[str] | None, has_skills: bool
) -> tuple[list[PinnedTool], list[PinnedTool]]:
    visible: list[PinnedTool] = []
    hidden: list[PinnedTool] = []
    for tool in candidates:
        if _is(tool, ControlTool.SKILL_LOAD) and not has_skills:
            continue
        why = _withheld(tool, authority)
        if not why:
            visible.append(tool)
        elif tool.required and not tool.removed:
            raise RequiredToolMissing(tool.name, why)
        else:
            hidden.append(_grouped(tool, "hidden", why))
    return visible, hidden


def _withheld(tool: PinnedTool, authority: frozenset[str] | None) -> str:
    if tool.removed:
        return "removed for security"
    if not tool.model_visible:
        return "not model-visible"
    if authority is not None and not {scope_hash(s) for s in tool.required_scopes} <= authority:
        return "its scopes are not granted"
    return ""


def _claim(tool: PinnedTool) -> Claim:
    if tool.required or tool.control:
        return Claim.MUST
    if tool.always_loaded:
        return Claim.ALWAYS
    return Claim.DISCOVERED if tool.discovered else Claim.EXPLICIT


def _ranked(tools: Iterable[PinnedTool]) -> list[PinnedTool]:
    return sorted(tools, key=_rank)


def _rank(tool: PinnedTool) -> tuple[int, int, str, str]:
    claim = _claim(tool)
    if claim is Claim.DISCOVERED:
        writes = int(tool.side_effect not in READ_EFFECTS)
        return (claim, writes, tool.server, tool.name)
    return (claim, tool.place, "", tool.name)


def _why(tool: PinnedTool) -> str:
    if tool.control:
        return "the platform's own"
    if tool.required:
        return "required"
    return f"discovered at {tool.server}" if tool.discovered else "declared"


def _is(tool: PinnedTool, name: ControlTool) -> bool:
    return tool.control and tool.name == name.value


def _grouped(tool: PinnedTool, group: str, reason: str) -> PinnedTool:
    return tool.model_copy(update={"group": group, "reason": reason})


def _ordered(chosen: Iterable[PinnedTool], hidden: Iterable[PinnedTool]) -> tuple[PinnedTool, ...]:
    return tuple(sorted((*chosen, *hidden), key=lambda tool: tool.name))
