"""A session driven through the engine alone: in-memory log, no Django, one method per act of the loop."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.request import CheckpointInput, ModelRequest
from ctxengine.engine.step import (
    Memory,
    Prepared,
    SessionFacts,
    StepInputs,
    fixed_frame,
    floors_of,
    prepare,
)
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.service.drafts import content_draft

AT = datetime(2026, 1, 1, tzinfo=UTC)
_EVENT_OF_ROLE = {
    "user": (EventType.USER_MESSAGE, Trust.USER, "user"),
    "assistant": (EventType.RESPONSE_COMPLETED, Trust.MODEL, "model"),
    "tool": (EventType.TOOL_RESULT, Trust.EXTERNAL_UNTRUSTED, "tool"),
}


class EngineSession:
    """One session; messages are OpenAI chat messages as the workload writes them."""

    def __init__(
        self,
        *,
        provider: str,
        model: str,
        budget: int,
        low_water: float,
        memo: BuildMemo | None,
        tools: tuple[str, ...] = (),
        instructions: str = "You are a careful agent.",
    ) -> None:
        """Open it: resolve and pin the plan.

        Args:
            budget: tokens of a whole request, output reserve not counted.
            memo: None builds every request from nothing.
        """
        self.counter = counter_for(provider, model)
        self.renderer = renderer_for(provider)
        self.memo = memo
        nonce_key = b"k" * 32
        plan = resolve_plan(
            PlanRequest(
                engine="suffix",
                provider=provider,
                model=model,
                window=max(200_000, budget),
                max_output=8_192,
                instructions=instructions,
                tools=[
                    PinnedTool(
                        name=name,
                        wire_name="",
                        description="Does its work.",
                        input_schema='{"type":"object"}',
                    )
                    for name in tools
                ],
                policy=BudgetPolicy(policy_cap=budget, reserve=0, margin=0.0, low_water=low_water),
            ),
            counter=self.counter,
            renderer=self.renderer,
            nonce_key=nonce_key,
        )
        self.facts = SessionFacts(plan, nonce_key, "session-" + "0" * 32)
        self.log = MemoryLog("tenant", "session", salt=lambda: os.urandom(16))
        self.derivation = Derivation(self.counter)
        self.boundary = 1

    def push(self, message: dict[str, Any], raw: str | None = None) -> None:
        """Derive one message and append it; `raw` is its text as it was received."""
        kind, trust, source = _EVENT_OF_ROLE[message["role"]]
        sequence = EventSeq(self.log.head().sequence + 1)
        answers = None
        if kind is EventType.TOOL_RESULT:
            open_calls = self.log.open_calls()
            answers = next(c for c in open_calls if c.call_id == message["tool_call_id"])
        if kind is EventType.USER_MESSAGE:
            self.boundary = sequence
        draft = content_draft(
            self.log,
            type=kind,
            format=ContentFormat.OPENAI_CHAT,
            raw=json.dumps(message) if raw is None else raw,
            trust=trust,
            sequence=sequence,
            derivation=self.derivation,
            run="run",
            source=source,
            answers=answers,
        )
        self.log.append([draft], expected=None, at=AT)

    def prepare(self) -> Prepared:
        """Measure and allocate the next step; floors that must rise are appended."""
        plan, head = self.facts.plan, self.log.head()
        wanted = StepInputs(
            head=head.sequence,
            content_head=head.content_sequence,
            boundary=self.boundary,
            epoch=plan.epoch,
            engine=plan.engine,
            builder=plan.builder,
            renderer=plan.renderer,
            counter=plan.counter,
            policy=plan.policy.label,
            framing=plan.framing_version,
            now=AT.isoformat(),
        )
        total = fixed_frame(plan, 1_000_000).total
        prepared = prepare(
            self.log,
            self.facts,
            wanted,
            memory=Memory(),
            floors=floors_of(self.log.newest_yields(), total),
            counter=self.memo.counter(self.counter) if self.memo else self.counter,
        )
        if prepared.allocation.raises:
            self.log.append(self._yields(prepared, total), expected=None, at=AT)
        return prepared

    def build(self, prepared: Prepared, options: BuildOptions) -> ModelRequest:
        """Build what was prepared."""
        return build(
            prepared.run,
            CheckpointInput(),
            self.facts.plan,
            renderer=self.renderer,
            memo=self.memo,
            options=options,
        )

    def record(self, request: ModelRequest) -> None:
        """Append the event that says the request was handed out."""
        started = EventDraft(
            type=EventType.REQUEST_STARTED,
            trust=Trust.PLATFORM,
            run="run",
            payload={
                "request": request.request_sha256[:32],
                "epoch": self.facts.plan.epoch,
                "prefix_sha256": self.facts.plan.prefix_sha256,
                "request_sha256": request.request_sha256,
                "tokens": request.budget.request,
            },
        )
        self.log.append([started], expected=None, at=AT)

    def _yields(self, prepared: Prepared, total: int) -> list[EventDraft]:
        return [
            EventDraft(
                type=EventType.YIELD_APPLIED,
                trust=Trust.PLATFORM,
                run="run",
                payload={
                    "class": raised.budget_class.value,
                    "floor_sequence": raised.floor,
                    "model": self.facts.plan.model,
                    "plan_total": total,
                    "policy": prepared.inputs.policy,
                    "before": raised.before,
                    "after": raised.after,
                    "items": raised.items,
                },
            )
            for raised in prepared.allocation.raises
        ]
