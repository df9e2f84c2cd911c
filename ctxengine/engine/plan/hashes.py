"""Identity of a prefix, whatever the provider (design 6; frozen-prefix spec, Prefix epochs)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxengine.engine.canonical import canonical_bytes, sha256_hex
from ctxengine.engine.plan.tool import PinnedTool

if TYPE_CHECKING:
    from ctxengine.engine.plan.plan import Plan

_NOT_IDENTITY = frozenset({"wire_name", "tokens", "reason", "place"})
"""One provider's spelling, one counter's opinion, an explanation, and an order of arrival."""
_SETS = ("required_scopes", "serves", "observes")
_LATER_FIELDS = ("deferred", "model_visible", "removed", "card")
"""Fields that plans of earlier builders lack: they count only where they differ from their defaults."""
_SKILL_FIELDS = frozenset({"name", "description", "trust", "digest"})

_TEXTS = ("policy_text", "framing", "instructions", "persona")


def neutral_sha256(plan: Plan) -> str:
    """Hash of rows 1 to 8 with the whole pinned tool specifications; no order of arrival enters it."""
    return _hash(plan, canonical=True)


def recorded_order_sha256(plan: Plan) -> str:
    """The same over sets in the order in which they were pinned, as builders hashed them that did not sort."""
    return _hash(plan, canonical=False)


def _hash(plan: Plan, *, canonical: bool) -> str:
    tools = sorted(plan.tools, key=lambda tool: tool.name) if canonical else plan.tools
    rows: dict[str, Any] = {
        **{name: _plain(getattr(plan, name)) for name in _TEXTS},
        "tools": [_tool(tool, canonical=canonical) for tool in tools],
        "snapshot": list(plan.snapshot),
    }
    if plan.skills:
        rows["skills"] = [
            skill.model_dump(mode="json", include=set(_SKILL_FIELDS))
            for skill in sorted(plan.skills, key=lambda skill: skill.name)
        ]
    return sha256_hex(canonical_bytes(rows))


def _tool(tool: PinnedTool, *, canonical: bool) -> dict[str, Any]:
    fields = tool.model_dump(mode="json", exclude=set(_NOT_IDENTITY))
    for name in _LATER_FIELDS:
        if fields[name] == PinnedTool.model_fields[name].default:
            del fields[name]
    if canonical:
        fields |= {name: sorted(set(fields[name])) for name in _SETS}
    return fields


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
