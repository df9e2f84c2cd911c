"""A library host of the boundary engine: a plan, a clock, and ports that ask the strict provider in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxengine.engine.boundary.context import BoundaryContext
from ctxengine.engine.boundary.failures import FAILURE_OF, CompactionError
from ctxengine.engine.boundary.note import NoteAnswer
from ctxengine.engine.boundary.work import NativeAnswer, Work
from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.engine.lexeme import parse
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider

KEY = b"k" * 32
MODEL = "claude-sonnet-4-6"


class Clock:
    """The host's clock; it goes on only when it is told to."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 29, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def plan_for(provider: str, model: str, *, window: int = 6_000, **policy: Any) -> Plan:
    """A pinned plan without tools."""
    figures = {"native_compaction_max_output_tokens": 500, "history_floor": 0, **policy}
    return resolve_plan(
        PlanRequest(
            engine="boundary",
            provider=provider,
            model=model,
            window=window,
            max_output=500,
            agent_name="host",
            agent_version="1",
            instructions="Answer shortly.",
            tools=[],
            policy=DEFAULT_POLICY.model_copy(update=figures),
        ),
        counter=counter_for(provider, model),
        renderer=renderer_for(provider),
        nonce_key=KEY,
    )


class AnthropicPort:
    """Native compaction and counts by the strict provider, without a socket."""

    def __init__(self, provider: StrictProvider) -> None:
        self.provider = provider
        self.compactions = 0
        self.before: Callable[[], None] = lambda: None
        """Called while a compaction is in flight."""

    def count(self, body: bytes) -> int:
        return int(
            self._ask("/v1/messages/count_tokens", json.loads(body), drop=("max_tokens",))[0][
                "input_tokens"
            ]
        )

    def compact(self, body: bytes) -> NativeAnswer:
        self.compactions += 1
        self.before()
        asked = {**json.loads(body), "compaction": {"type": "summarize"}}
        said, text = self._ask("/v1/messages", asked)
        items = tuple(block.raw for block in parse(text).get("content") or ())
        return NativeAnswer(items, said["stop_reason"])

    def _ask(self, path: str, body: dict[str, Any], drop: tuple[str, ...] = ()) -> tuple[Any, str]:
        betas = ",".join(body.pop("betas", ()))
        for name in drop:
            body.pop(name, None)
        headers = {"anthropic-version": "2026-10-21", "authorization": "Bearer k"}
        headers |= {"anthropic-beta": betas} if betas else {}
        answer = self.provider.handle(Call("POST", path, headers, json.dumps(body).encode()))
        text = answer.body.decode()
        if answer.status != 200:
            error = json.loads(text)["error"]
            named = str((error.get("details") or {}).get("error_code") or error.get("code") or "")
            raise CompactionError(named if named in FAILURE_OF else "transient")
        return json.loads(text), text


class Notes:
    """A writer whose answers the test decides."""

    def __init__(self, work: Work, answers: list[NoteAnswer]) -> None:
        self.counter: TokenCounter = work.counter
        self.answers = answers
        self.kept_texts: dict[tuple[int, int], str] = {}
        self.read: list[str] = []

    def room(self) -> int:
        return 100_000

    def limit(self) -> int:
        return 100_000

    def count(self, lines: str) -> int | None:
        return None

    def kept(self, place: int, of: int) -> str | None:
        return self.kept_texts.get((place, of))

    def keep(self, place: int, of: int, text: str) -> None:
        self.kept_texts[place, of] = text

    def write(self, lines: str) -> NoteAnswer:
        self.read.append(lines)
        return self.answers.pop(0) if self.answers else NoteAnswer("Objective: go on.", "end")


def host(plan: Plan, clock: Clock, port: AnthropicPort | None, **ports: Any) -> BoundaryContext:
    """A context of that plan."""
    return BoundaryContext(
        plan,
        nonce_key=KEY,
        session_key="session-" + "0" * 32,
        counter=counter_for(plan.provider, plan.model),
        renderer=renderer_for(plan.provider),
        now=clock,
        salt=lambda: b"0123456789abcdef",
        native=port,
        **ports,
    )
