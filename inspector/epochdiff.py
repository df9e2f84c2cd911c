"""Two plans side by side: row by row, tool by tool, then whatever else was pinned (ui 5, P7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxengine.engine.layout import Row
from ctxengine.ledger.queries.epochs import PlanParts
from ctxengine.ledger.queries.plans import PlannedTool
from inspector.figures import number
from inspector.jsonview import pretty_text
from inspector.reasons import class_title, row_of
from inspector.textdiff import DiffLine, compare


@dataclass(frozen=True, slots=True)
class TextChange:
    """One row of region A whose text differs."""

    row: Row
    before: int | None
    """Tokens; None for an empty row."""
    after: int | None
    lines: tuple[DiffLine, ...]

    @property
    def difference(self) -> int:
        """Tokens after minus before."""
        return (self.after or 0) - (self.before or 0)


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One tool that came, went, moved or reads otherwise."""

    name: str
    kind: str
    """`added`, `removed`, `moved` or `changed`."""
    words: str
    before: int
    after: int
    """Tokens of its definition, 0 where it has none."""
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Everything that differs, and how much does not."""

    before: int
    after: int
    """Epochs."""
    before_tokens: int
    after_tokens: int
    texts: tuple[TextChange, ...]
    tools: tuple[ToolChange, ...]
    facts: tuple[tuple[str, str, str], ...]
    """Name, value before, value after."""
    equal_rows: int
    equal_tools: int
    erased: bool
    """Whether texts of one side are gone, so that rows cannot be compared."""

    @property
    def difference(self) -> int:
        """Prefix tokens after minus before."""
        return self.after_tokens - self.before_tokens

    @property
    def same(self) -> bool:
        """Whether nothing of what is pinned differs."""
        return not (self.texts or self.tools or self.facts)


def compare_plans(before: PlanParts, after: PlanParts) -> PlanComparison:
    """Compare two epochs."""
    texts = _texts(before, after)
    tools = _tools(before, after)
    names = {tool.name for side in (before, after) for tool in side.tools}
    rows = {text.row for side in (before, after) for text in side.texts}
    return PlanComparison(
        before=before.epoch,
        after=after.epoch,
        before_tokens=before.prefix_tokens,
        after_tokens=after.prefix_tokens,
        texts=texts,
        tools=tools,
        facts=(*_facts(before, after), *_policy(before.policy, after.policy)),
        equal_rows=len(rows) - len(texts),
        equal_tools=len(names) - len(tools),
        erased=before.erased or after.erased,
    )


def _texts(before: PlanParts, after: PlanParts) -> tuple[TextChange, ...]:
    old = {text.row: text for text in before.texts}
    new = {text.row: text for text in after.texts}
    changes = []
    for row in sorted({*old, *new}):
        was, now = old.get(row), new.get(row)
        one, other = was.text if was else "", now.text if now else ""
        if one != other:
            lines = compare(one, other)
            counts = (was.tokens if was else None, now.tokens if now else None)
            changes.append(TextChange(row_of(row), *counts, lines))
    return tuple(changes)


def _tools(before: PlanParts, after: PlanParts) -> tuple[ToolChange, ...]:
    old = {tool.name: tool for tool in before.tools}
    new = {tool.name: tool for tool in after.tools}
    changes = []
    for name in sorted({*old, *new}):
        change = _tool(name, old.get(name), new.get(name))
        if change is not None:
            changes.append(change)
    return tuple(changes)


def _tool(name: str, old: PlannedTool | None, new: PlannedTool | None) -> ToolChange | None:
    if old is None or new is None:
        kind = "added" if old is None else "removed"
        known = new or old
        group = known.group if known else ""
        reason = known.reason if known else ""
        words = f"{group}: {reason}" if reason else group
        return ToolChange(name, kind, words, _cost(old), _cost(new), ())
    lines = compare(_said(old), _said(new)) if _said(old) != _said(new) else ()
    if old.group != new.group:
        words = f"{old.group} → {new.group}"
        words += f": {new.reason}" if new.reason else ""
        return ToolChange(name, "moved", words, _cost(old), _cost(new), lines)
    if lines or _rules(old) != _rules(new):
        words = "what the model reads" if lines else "what the runtime and the platform hold to"
        return ToolChange(name, "changed", words, _cost(old), _cost(new), lines)
    return None


def _cost(tool: PlannedTool | None) -> int:
    return tool.tokens if tool is not None and tool.group == "defined" else 0


def _said(tool: PlannedTool) -> str:
    return f"{tool.description}\n{pretty_text(tool.schema)}"


def _rules(tool: PlannedTool) -> tuple[object, ...]:
    return (tool.required_scopes, tool.side_effect, tool.result_trust, tool.server)


def _facts(before: PlanParts, after: PlanParts) -> list[tuple[str, str, str]]:
    old, new = dict(before.facts), dict(after.facts)
    return [
        (name, old.get(name, "none"), new.get(name, "none"))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _policy(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    old, new = policy_figures(before), policy_figures(after)
    return [
        (name, old.get(name, "none"), new.get(name, "none"))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def policy_figures(policy: dict[str, Any]) -> dict[str, str]:
    """Every figure of a budget policy in words, the caps of classes one by one."""
    figures = {
        name.replace("_", " "): _figure(value)
        for name, value in policy.items()
        if name not in {"caps", "name", "version"}
    }
    for name, cap in policy.get("caps", {}).items():
        limits = [
            f"{number(cap[unit])} {unit}"
            for unit in ("tokens", "items")
            if cap.get(unit) is not None
        ]
        if limits:
            figures[f"cap of {class_title(name).lower()}"] = ", ".join(limits)
    return figures


def _figure(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int) else str(value)
