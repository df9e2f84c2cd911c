"""A session of the pure engine in memory, fed with OpenAI-style messages: what the benchmarks drive."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.engine.derive import Derivation, facts_of
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.plan.schema import provider_schema
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.step import (
    Memory,
    SessionFacts,
    StepInputs,
    build_step,
    fixed_frame,
    floors_of,
    prepare,
)
from ctxengine.engine.tokens.counter import FamilyCounter
from ctxengine.engine.tokens.families import O200K
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.wire.registry import renderer_for

_KEY = b"benchmark-key-of-thirty-two-byte"
_START = datetime(2026, 7, 1, 9, tzinfo=UTC)


class LiveSession:
    """Appends what a runtime would report and assembles each step the way the service does."""

    def __init__(
        self,
        *,
        instructions: str,
        tools: list[dict[str, Any]],
        budget: int,
        low_water: float = 0.25,
        reserve: int = 8_192,
        margin: float = 0.05,
    ) -> None:
        """Open a session whose request may take `budget` tokens by exact o200k counts."""
        self.counter = FamilyCounter(O200K)
        self.renderer = renderer_for("anthropic")
        policy = DEFAULT_POLICY.model_copy(
            update={
                "policy_cap": budget,
                "low_water": low_water,
                "reserve": reserve,
                "margin": margin,
                "name": "bench",
            }
        )
        plan = resolve_plan(
            PlanRequest(
                engine="suffix",
                provider="anthropic",
                model="claude-sonnet-4-6",
                window=1_000_000,
                max_output=64_000,
                instructions=instructions,
                tools=[
                    PinnedTool(
                        name=tool["name"],
                        wire_name="",
                        description=tool["description"],
                        input_schema=provider_schema(json.dumps(tool["input_schema"])),
                    )
                    for tool in tools
                ],
                policy=policy,
            ),
            counter=self.counter,
            renderer=self.renderer,
            nonce_key=_KEY,
        )
        self.facts = SessionFacts(plan, _KEY, "session-bench")
        self.log = MemoryLog("bench", "bench", salt=lambda: b"0" * 16)
        self.seed = EventSeq(1)
        self.calls: dict[str, tuple[int, int, str, str]] = {}
        self.yields = 0

    def append(self, messages: list[dict[str, Any]]) -> None:
        """Append messages of one kind of group: a user message, a step with its results, an answer."""
        for message in messages:
            if message["role"] == "user":
                self._put(EventType.USER_MESSAGE, ContentFormat.TEXT, message["content"])
                self.seed = self.log.head().sequence
            elif message["role"] == "assistant":
                batch = self._put(
                    EventType.RESPONSE_COMPLETED, ContentFormat.OPENAI_CHAT, json.dumps(message)
                )
                for item in batch.items:
                    if item.facts.call_id:
                        place = (item.sequence, item.facts.ordinal)
                        self.calls[item.facts.call_id] = (
                            *place,
                            item.facts.wire_call_id,
                            item.facts.name,
                        )
            else:
                self._put(
                    EventType.TOOL_RESULT,
                    ContentFormat.TEXT,
                    message["content"],
                    self.calls[message["tool_call_id"]],
                )

    def _put(
        self,
        type: EventType,
        format: ContentFormat,
        raw: str,
        call: tuple[int, int, str, str] | None = None,
    ) -> Any:
        trust = {
            EventType.USER_MESSAGE: Trust.USER,
            EventType.RESPONSE_COMPLETED: Trust.MODEL,
        }.get(type, Trust.EXTERNAL_UNTRUSTED)
        decoded = decode_event(type, format, raw)
        ids = {item.call_id for item in decoded if item.call_id}
        items = facts_of(
            decoded,
            sequence=EventSeq(self.log.head().sequence + 1),
            trust=trust,
            source=f"tool:{call[3]}" if call else "",
            derivation=Derivation(self.counter),
            taken=self.log.taken_call_ids(ids),
            answered=call[2] if call else "",
            name=call[3] if call else "",
        )
        draft = EventDraft(
            type=type,
            trust=trust,
            payload={"format": format.value},
            body=raw,
            items=items,
            answers=(call[0], call[1]) if call else None,
        )
        return self.log.append([draft], expected=None, at=_START)

    def assemble(self, seconds: float) -> ModelRequest:
        """Build the next request; floors that rise are written first, as the service does."""
        head, plan = self.log.head(), self.facts.plan
        wanted = StepInputs(
            head=head.sequence,
            content_head=head.content_sequence,
            boundary=self.seed,
            epoch=1,
            engine="suffix",
            builder=plan.builder,
            renderer=plan.renderer,
            counter=plan.counter,
            policy=plan.policy.label,
            framing=plan.framing_version,
            now=(_START + timedelta(seconds=seconds)).isoformat(),
        )
        total = fixed_frame(plan, 1_000_000).total
        prepared = prepare(
            self.log,
            self.facts,
            wanted,
            memory=Memory(),
            floors=floors_of(self.log.newest_yields(), total),
            counter=self.counter,
        )
        if prepared.allocation.raises:
            self.yields += 1
        for raised in prepared.allocation.raises:
            payload = {
                "class": raised.budget_class.value,
                "floor_sequence": raised.floor,
                "model": plan.model,
                "plan_total": total,
                "policy": plan.policy.label,
                "before": raised.before,
                "after": raised.after,
                "items": raised.items,
                "forced_by": "bench",
            }
            draft = EventDraft(type=EventType.YIELD_APPLIED, trust=Trust.PLATFORM, payload=payload)
            self.log.append([draft], expected=None, at=_START)
        return build_step(prepared.run, self.facts, opaque={}, renderer=self.renderer)
