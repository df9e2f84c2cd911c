"""Climbing the ladder: samples sent, graded, and turned into a profile (capacity spec 1). No database in here."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxengine.engine.capacity.feedback import with_refusal
from ctxengine.engine.capacity.filler import (
    LOOKUP_TOOL,
    MAX_OUTPUT_TOKENS,
    PROBE_TOOL,
    FillerTurn,
    Instruction,
    instruction,
    turns_for,
)
from ctxengine.engine.capacity.grading import grade
from ctxengine.engine.capacity.ladder import (
    Sample,
    horizon_of,
    next_sample,
    rungs,
)
from ctxengine.engine.capacity.profile import (
    LADDER_VERSION,
    CacheBehaviour,
    CapacityProfile,
    Horizon,
    Observation,
    Provenance,
)
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.tokens.usage import Usage
from ctxengine.providers.adapters.contract import (
    Completion,
    Prompt,
    PromptMessage,
    PromptTool,
    ProviderError,
)

SYSTEM = (
    "You look things up for the user and answer in one sentence. When the user asks you to call a tool with given arguments, "
    "call it at once, with exactly these arguments."
)
_TOOLS = (
    PromptTool(
        LOOKUP_TOOL,
        "Looks a thing up.",
        {
            "type": "object",
            "properties": {"what": {"type": "string"}, "about": {"type": "string"}},
            "required": ["what", "about"],
        },
    ),
    PromptTool(
        PROBE_TOOL,
        "Confirms that an instruction was read. Has no effect.",
        {
            "type": "object",
            "properties": {"code": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["code", "count"],
        },
    ),
)
_FASTER = 5
"""The second of two equal requests must be so many times faster to show a cache that nobody reports."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands before the filler: the ladder's own system text and tools, or those of a session's plan."""

    system: str = SYSTEM
    tools: tuple[PromptTool, ...] = _TOOLS

    def with_probe_tools(self) -> Prefix:
        """The prefix with the ladder's tools behind its own."""
        own = {tool.name for tool in self.tools}
        return Prefix(self.system, (*self.tools, *(t for t in _TOOLS if t.name not in own)))


@dataclass(frozen=True, slots=True)
class World:
    """What a climb needs from outside; the clock, the nonces and the network come in as functions."""

    send: Callable[[Prompt], Completion]
    """Sends one prompt; raises ProviderError."""
    nonce: Callable[[], str]
    """Fresh random hex digits, at least eight."""
    elapsed_s: Callable[[], float]
    """Seconds since the climb began."""
    now: Callable[[], str]
    """ISO 8601 with offset."""
    wait: Callable[[float], None]
    """Rests for so many seconds, unless cancelled."""
    cancelled: Callable[[], bool]
    seen: Callable[[Sequence[Observation], Sample | None], None] = lambda _seen, _next: None
    """Told after each sample: all so far, and the next one."""


@dataclass(slots=True)
class Climb:
    """One climb of the ladder for one model."""

    profile: CapacityProfile
    """What is known before, from metadata."""
    counter: TokenCounter
    world: World
    prefix: Prefix = field(default_factory=Prefix)
    largest: int | None = None
    time_box_s: float = 600.0
    _seen: list[Observation] = field(default_factory=list)
    _ratio: float = 1.0
    """Tokens the provider counts for each of ours, from the first sample on."""
    _stopped: str = ""

    def run(self) -> CapacityProfile:
        """Climb, look at the cache, and say what was found.

        Raises:
            ProviderError: not even the first sample could be sent, for another reason than its length.
        """
        while (sample := self._next()) is not None:
            if self.world.cancelled():
                self._stopped = "cancelled"
                break
            if self.world.elapsed_s() > self.time_box_s:
                self._stopped = "time"
                break
            try:
                self._take(sample)
            except ProviderError as error:
                if not (self._seen and error.retryable and self._is_too_late_for(_rest(error, 1))):
                    raise
                # What was seen before the time ran out is kept.
                self._stopped = "time"
                break
            self.world.seen(self._seen, self._next())
        cache = CacheBehaviour.UNKNOWN if self._stopped == "cancelled" else self._cache()
        return self._found(cache)

    def _next(self) -> Sample | None:
        return next_sample(
            self._seen, declared_window=self.profile.declared_window, largest=self.largest
        )

    def _take(self, sample: Sample) -> None:
        asked = instruction(self.world.nonce())
        try:
            answer = self._sent(self._prompt(sample.tokens, asked))
        except ProviderError as error:
            if error.code != "over_length":
                raise
            self._refused(sample, error)
            return
        actual = answer.usage.prompt_total if answer.usage else 0
        if actual and not self._seen:
            self._ratio = max(0.25, actual / self._estimate(sample.tokens, asked))
        calls = [(name, arguments) for _, name, arguments in answer.calls]
        self._seen.append(
            Observation(
                tokens=sample.tokens,
                actual_tokens=actual or sample.tokens,
                grade=grade(calls, answer.text, asked),
                latency_ms=answer.latency_ms,
                first_token_ms=answer.first_token_ms,
                cached_tokens=_cached(answer.usage),
            )
        )

    def _refused(self, sample: Sample, error: ProviderError) -> None:
        rejected = error.actual or sample.tokens
        self.profile = with_refusal(
            self.profile, rejected_tokens=rejected, stated_maximum=error.maximum
        )
        self._stopped = "rejected"
        limit = self.profile.verified_window or rejected
        # Clearly below what was refused, or nearly the same rung would be asked for again and again.
        self.largest = min(limit - MAX_OUTPUT_TOKENS, sample.tokens * 19 // 20)

    def _sent(self, prompt: Prompt) -> Completion:
        for attempt in range(1, _TRIES + 1):
            try:
                return self.world.send(prompt)
            except ProviderError as error:
                if not error.retryable or attempt == _TRIES or self.world.cancelled():
                    raise
                rest = _rest(error, attempt)
                if self._is_too_late_for(rest):
                    raise
                self.world.wait(rest)
        raise AssertionError("the last try returns or raises")

    def _is_too_late_for(self, rest_s: float) -> bool:
        return rest_s > self.time_box_s - self.world.elapsed_s()

    def _prompt(self, tokens: int, asked: Instruction) -> Prompt:
        fixed = self._fixed(asked)
        turns = turns_for(int(tokens / self._ratio), self._cost, fixed)
        messages = [message for turn in turns for message in _messages(turn)]
        return Prompt(
            model=self.profile.model,
            system=self.prefix.system,
            messages=(*messages, PromptMessage("user", asked.text)),
            tools=self.prefix.tools,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            session_key="capacity-probe",
        )

    def _estimate(self, tokens: int, asked: Instruction) -> int:
        """What the prompt of that rung has by our own count (tokens)."""
        fixed = self._fixed(asked)
        return fixed + sum(map(self._cost, turns_for(int(tokens / self._ratio), self._cost, fixed)))

    def _fixed(self, asked: Instruction) -> int:
        tools = sum(
            self.counter.tool(tool.name, tool.description, _schema(tool))
            for tool in self.prefix.tools
        )
        return self.counter.text(self.prefix.system) + tools + self.counter.text(asked.text) + 16

    def _cost(self, turn: FillerTurn) -> int:
        return (
            self.counter.text(turn.question)
            + self.counter.call(LOOKUP_TOOL, turn.arguments)
            + self.counter.text(turn.result)
            + self.counter.text(turn.answer)
            + 24
        )

    # --- the cache rung ---

    def _cache(self) -> CacheBehaviour:
        """Two equal requests, one behind the other: reported reads, a much faster second one, or no cache."""
        if any(sample.cached_tokens for sample in self._seen):
            return CacheBehaviour.REPORTED
        ladder = rungs(self.profile.declared_window, largest=self.largest)
        if not ladder or not self._seen:
            return CacheBehaviour.UNKNOWN
        prompt = self._prompt(ladder[0], instruction(self.world.nonce()))
        try:
            first, second = self._sent(prompt), self._sent(prompt)
        except ProviderError:
            return CacheBehaviour.UNKNOWN
        if second.usage and second.usage.cache_read:
            return CacheBehaviour.REPORTED
        before, after = _reading_ms(first), _reading_ms(second)
        return (
            CacheBehaviour.PREFIX_STABLE
            if after and before >= _FASTER * after
            else CacheBehaviour.NONE
        )

    def _found(self, cache: CacheBehaviour) -> CapacityProfile:
        at = self.world.now()
        horizon = horizon_of(self._seen, at=at)
        if horizon is None:
            # Nothing passed: nothing of the history can be used, and the working set shrinks to the turn at hand.
            measured = bool(self._seen)
            horizon = (
                Horizon(tokens=0, confidence=0.9, native_calls=False, confirmed_at=at)
                if measured
                else self.profile.horizon
            )
        made = Provenance(
            source="probe",
            probed_at=at,
            metadata_digest=self.profile.provenance.metadata_digest,
            ladder=LADDER_VERSION,
            observations=tuple(self._seen),
            stopped=self._stopped,
        )
        speeds = [
            sample.actual_tokens * 1000 / sample.first_token_ms
            for sample in self._seen
            if sample.first_token_ms and not sample.cached_tokens
        ]
        changes: dict[str, Any] = {"horizon": horizon, "cache": cache, "provenance": made}
        if speeds:
            changes["prefill_tokens_per_s"] = round(statistics.median(speeds), 1)
        return self.profile.model_copy(update=changes)


def _messages(turn: FillerTurn) -> tuple[PromptMessage, ...]:
    return (
        PromptMessage("user", turn.question),
        PromptMessage("assistant", calls=((turn.call_id, LOOKUP_TOOL, turn.arguments),)),
        PromptMessage("user", results=((turn.call_id, turn.result),)),
        PromptMessage("assistant", turn.answer),
    )


def _rest(error: ProviderError, attempt: int) -> float:
    """Seconds before the next try: what the provider asked for, else doubling."""
    return error.retry_after_s or 2.0**attempt


def _schema(tool: PromptTool) -> str:
    return json.dumps(tool.input_schema, sort_keys=True)


def _cached(usage: Usage | None) -> int | None:
    """Tokens that a provider says it read from its cache; None where it says nothing."""
    return usage.cache_read if usage is not None and usage.tells_reads else None


def _reading_ms(answer: Completion) -> int:
    return answer.first_token_ms if answer.first_token_ms is not None else answer.latency_ms
