"""A session of the replay lab, driven with OpenAI chat messages: the engine alone, no database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.events import EventType
from ctxengine.engine.inputs import Prepared
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.request import CheckpointInput, ModelRequest
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.service.replay.drivers import SuffixDriver
from ctxengine.service.replay.session import LabSession, LabStep
from ctxengine.service.replay.source import Beat, Source

_EVENT_OF_ROLE = {
    "user": (EventType.USER_MESSAGE, Trust.USER, "user"),
    "assistant": (EventType.RESPONSE_COMPLETED, Trust.MODEL, "model"),
    "tool": (EventType.TOOL_RESULT, Trust.EXTERNAL_UNTRUSTED, "tool"),
}
_STEP = Beat("step", 0, run="run")
_NOW = 1_767_225_600.0


class EngineSession:
    """A session of the lab, one method per act of the loop; messages are OpenAI chat messages as the workload writes them."""

    def __init__(
        self,
        *,
        provider: str,
        model: str,
        budget: int,
        low_water: float,
        tools: Sequence[str],
        instructions: str,
    ) -> None:
        """Open it: resolve and pin the plan. The budget is that of a whole request, without an output reserve; a cut leaves no
        summary, for the floor makes none."""
        renderer, nonce_key = renderer_for(provider), b"k" * 32
        plan = resolve_plan(
            PlanRequest(
                engine="suffix",
                provider=provider,
                model=model,
                window=200_000,
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
                policy=BudgetPolicy(
                    policy_cap=budget,
                    reserve=0,
                    margin=0.0,
                    low_water=low_water,
                    compaction="none",
                ),
            ),
            counter=counter_for(provider, model),
            renderer=renderer,
            nonce_key=nonce_key,
        )
        source = Source("bench", "", provider, model, (), plan=plan, nonce_key=nonce_key)
        self.lab = LabSession(
            source,
            plan,
            session_key="session-" + "0" * 32,
            prices=None,
            history_ttl=None,
            driver=SuffixDriver(),
        )
        self._places = 0

    def push(self, message: dict[str, Any], raw: str | None = None) -> None:
        """Derive one message and append it; `raw` is its text as it was received."""
        kind, trust, source = _EVENT_OF_ROLE[message["role"]]
        answers = None
        if kind is EventType.TOOL_RESULT:
            open_calls = self.lab.log.open_calls()
            call = next(c for c in open_calls if c.call_id == message["tool_call_id"])
            answers = (self.lab.place_of[call.sequence], call.ordinal)
        self._places += 1
        self.lab.hear(
            Beat(
                "message",
                self._places,
                type=kind,
                format=ContentFormat.OPENAI_CHAT,
                raw=json.dumps(message) if raw is None else raw,
                trust=trust,
                source=source,
                run="run",
                answers=answers,
                opens_run=kind is EventType.USER_MESSAGE,
            )
        )

    def prepare(self) -> Prepared:
        """Measure and allocate the next step."""
        return self.lab.decide(_STEP, _NOW)[0]

    def build(
        self, prepared: Prepared, options: BuildOptions, *, fresh: bool = False
    ) -> ModelRequest:
        """Build what was prepared, with the session's memo, or with one that knows nothing."""
        lab = self.lab
        memo = BuildMemo() if fresh else lab.memo
        return build(
            prepared.run,
            CheckpointInput(),
            lab.plan,
            renderer=lab.renderer,
            memo=memo,
            options=options,
        )

    def step(self) -> LabStep:
        """The whole step with its prediction, its events left in the log."""
        return self.lab.step(_STEP, _NOW)
