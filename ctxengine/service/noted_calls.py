"""What the log notes of a response's calls beside them: the tools that are meant, found, or used against the reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import DecodedItem, ForeignPart
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.tool_search import found_names
from ctxengine.service.calls import Verdict
from ctxengine.service.run_facts import RunFacts


def calls_unwrapped(
    plan: Plan, calls: Mapping[int, DecodedItem], verdicts: Mapping[int, Verdict]
) -> dict[str, Any]:
    """The tools meant by calls of `tool.call`, by ordinal: their results are theirs."""
    meant = {
        str(ordinal): model_view(verdict.name)
        for ordinal, verdict in verdicts.items()
        if verdict.name != plan.ledger_name(calls[ordinal].name or "")
    }
    return {"unwrapped": meant} if meant else {}


def tools_found(plan: Plan, items: Sequence[DecodedItem]) -> dict[str, Any]:
    """Deferred tools that the provider's own search found, by ledger name; what else it names counts for nothing."""
    named = {
        name
        for item in items
        for part in item.parts
        if isinstance(part, ForeignPart)
        for name in found_names(part.kind, part.raw)
    }
    found = sorted(tool.name for tool in plan.kept_aside if tool.wire_name in named)
    return {"found_tools": [model_view(name) for name in found]} if found else {}


def misread(
    facts: RunFacts, verdicts: Mapping[int, Verdict], *, response: EventSeq
) -> list[EventDraft]:
    """Listed tools that were used though the run's reading did not ask for what they serve."""
    plan = facts.plan
    if plan.policy.surface != "reading":
        return []
    used = {
        tool
        for verdict in verdicts.values()
        if verdict.refused is None
        and (tool := plan.tool(verdict.name)) is not None
        and tool.group == "deferred"
    }
    if not used:
        return []
    required = frozenset(facts.reading.required_domains)
    missed = sorted(tool.name for tool in used if not required & set(tool.serves))
    if not missed:
        return []
    payload = {"names": missed, "required": len(required), "response": int(response)}
    return [
        EventDraft(
            type=EventType.READING_MISSED,
            trust=Trust.PLATFORM,
            run=str(facts.run.id),
            payload=payload,
        )
    ]
