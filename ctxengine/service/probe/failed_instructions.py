"""Which answers of a run failed an instruction it had been given, read off what the log records (capacity spec 1 and 7).

Two things are known for certain: a guard stopped the answer, or the answer did again what the platform had refused in the run
before. Refused are calls with arguments that do not fit, calls of a tool that is not there or may not be used, and cards that
fit no schema. Each refusal tells the model what to do instead: one is a mistake, the next of its kind a failed instruction.

Whether a runtime forced a tool, or wants a card as the answer, is not known here: no request is rendered with a tool choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxengine.engine.events import EventType
from ctxengine.engine.guards.judgement import Guard
from ctxengine.engine.ids import parse_item_id
from ctxengine.engine.items import ItemKind
from ctxengine.ledger.models import Event, ItemRow, RunRow, SessionRow

INSTRUCTION_GUARDS = frozenset(
    {Guard.EMPTY_STEP.value, Guard.FRESHNESS.value, Guard.TOPIC.value, Guard.STEERING.value}
)
"""Guards whose word means that an instruction was not followed; a repeated card means no such thing."""
_FAILED = frozenset({"repair", "closed"})
_CUT_SHORT = frozenset(
    {"max_tokens", "max_output_tokens", "length", "model_context_window_exceeded"}
)
"""Reasons for which an answer stopped where arguments may be cut off: the model did not get to follow anything."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run's answers tell, by the request they answer."""

    first_token_ms: dict[str, int | None] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    """Requests whose answer failed an instruction."""


def answers_of(session: SessionRow, run: RunRow) -> Answers:
    """Read a run's answers."""
    kinds = (EventType.RESPONSE_COMPLETED, EventType.GUARD_JUDGED, EventType.CALL_REFUSED)
    events = Event.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, run_id=run.id, type__in=kinds
    ).order_by("sequence")
    responses: dict[int, Mapping[str, Any]] = {}
    refused: list[tuple[int, int, str]] = []
    failed: set[int] = set()
    for sequence, kind, told in events.values_list("sequence", "type", "payload"):
        if kind == EventType.RESPONSE_COMPLETED:
            responses[sequence] = told
        elif kind == EventType.CALL_REFUSED:
            answers = parse_item_id(told["answers"])
            refused.append((answers.sequence, answers.ordinal, told["code"]))
        elif _stopped(told):
            failed.add(told["response"])
    failed.update(_again(session, responses, refused))
    return Answers(
        {told["request"]: told.get("first_token_ms") for told in responses.values()},
        {responses[sequence]["request"] for sequence in failed if sequence in responses},
    )


def _stopped(told: Mapping[str, Any]) -> bool:
    """Whether a verdict says that an instruction was not followed; a second empty step passes, and follows none either."""
    if told["guard"] not in INSTRUCTION_GUARDS:
        return False
    return told["verdict"] in _FAILED or bool(told["evidence"].get("redone"))


def _again(
    session: SessionRow,
    responses: Mapping[int, Mapping[str, Any]],
    refused: list[tuple[int, int, str]],
) -> Iterator[int]:
    """Responses that repeat what an earlier one of the run was refused for: the same tool, for the same reason."""
    # What a fence was refused for is noted too, but nobody tells the model.
    names = _called(session, {sequence for sequence, _, _ in refused}) if len(refused) > 1 else {}
    first: dict[tuple[str, str], int] = {}
    for sequence, ordinal, code in refused:
        response = responses.get(sequence)
        name = names.get((sequence, ordinal))
        if response is None or name is None:
            continue
        meant = response.get("unwrapped", {}).get(str(ordinal), name)
        # One name that is not there is as wrong as another: the model was told to take one that it was given.
        told_at = first.setdefault(("" if code == "unknown_tool" else meant, code), sequence)
        stopped_by = response.get("stop_reason") or ""
        if told_at < sequence and stopped_by.casefold() not in _CUT_SHORT:
            yield sequence


def _called(session: SessionRow, sequences: set[int]) -> dict[tuple[int, int], str]:
    """Names of the calls of these responses, by place."""
    rows = ItemRow.objects.filter(
        tenant_id=session.tenant_id,
        session_id=session.id,
        sequence__in=sequences,
        kind=ItemKind.TOOL_CALL.value,
    )
    return {
        (sequence, ordinal): name
        for sequence, ordinal, name in rows.values_list("sequence", "ordinal", "name")
    }
