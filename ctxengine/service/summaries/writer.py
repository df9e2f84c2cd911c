"""The summariser behind a model: fragments in, prose out (design 7.14).

It decides nothing about what it gives back: soundness, redaction and what stands beside the prose are the engine's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ctxengine.engine.compaction.fragments import Fragment, fragments_of, packed
from ctxengine.engine.compaction.model_text import prose_budget
from ctxengine.engine.compaction.soundness import SummaryAnswer
from ctxengine.engine.compaction.source import SummarySource
from ctxengine.engine.ports import TokenCounter
from ctxengine.providers.adapters.contract import (
    Completion,
    Prompt,
    PromptMessage,
    ProviderError,
    Stop,
)
from ctxengine.service.summaries.model_choice import Writer
from ctxengine.service.summaries.prompts import CONDENSE, PACKET, SUMMARY, system_prompt
from ctxengine.service.wiring import counter_of

SUMMARISER_VERSION = "model-summary@1"

MOST_SPLITS = 6
"""So often an input is made smaller after a provider found it too long."""

_THINKING_TOKENS = 4_096
"""Room in the answer for models that think before they write."""
_FRAME_TOKENS = 64
_LEAST_PROSE_TOKENS = 60
_UNKNOWN_SHRINK = 0.5
_NO_LIMIT = 1 << 40

Ask = Callable[[Writer, Prompt, str], Completion]
"""Sends a prompt to a model; the last argument is the prompt's version."""
Choose = Callable[[int, int], Writer]
"""Names the model for an input and an answer of so many tokens."""
Report = Callable[[int, int], None]
"""Told how many fragments are done, and of how many."""


class _Unsound(Exception):
    """An answer that cannot be used; the engine says why."""

    def __init__(self, answer: SummaryAnswer) -> None:
        super().__init__()
        self.answer = answer


@dataclass(slots=True)
class ModelSummariser:
    """Writes summaries by asking a model, in as many calls as its window makes necessary."""

    counter: TokenCounter
    """The session's: what a summary costs there."""
    choose: Choose
    ask: Ask
    report: Report
    version: str = field(default=SUMMARISER_VERSION, init=False)
    """Recorded with the latest summary: who wrote it, told by which prompt."""
    prompt: str = field(default=SUMMARY, init=False)
    """Version of the prompt that told it."""
    writer: Writer | None = field(default=None, init=False)
    """Who wrote the latest one."""
    fragments: int = field(default=0, init=False)
    """In how many pieces its source was read."""

    def summarise(self, source: SummarySource, budget_tokens: int) -> SummaryAnswer:
        """Prose about the source, within its share of the budget.

        Raises:
            ProviderError: a call failed, or the input stays too long however it is split.
        """
        allowed = prose_budget(budget_tokens)
        try:
            return self._told(source, allowed)
        except _Unsound as unsound:
            return unsound.answer

    def _told(self, source: SummarySource, allowed: int) -> SummaryAnswer:
        told = PACKET if source.earlier else SUMMARY
        version = self.prompt = CONDENSE if source.retold else told
        input_tokens = sum(part.tokens for part in fragments_of(source, self.counter, _NO_LIMIT))
        writer = self.writer = self.choose(input_tokens, allowed)
        self.version = f"{SUMMARISER_VERSION} {writer.label} {version}"
        reader = counter_of(writer.provider, writer.model)
        limit = _room(writer, reader.text(system_prompt(version, allowed)), allowed)
        waiting = list(fragments_of(source, reader, limit))
        texts: list[str] = []
        splits = 0
        while waiting:
            count = len(texts) + len(waiting)
            self.report(len(texts), count)
            share = max(_LEAST_PROSE_TOKENS, allowed // count)
            try:
                texts.append(self._answered(writer, version, waiting[0].text, share))
            except ProviderError as error:
                splits += 1
                if error.code != "over_length" or splits > MOST_SPLITS:
                    raise
                limit = smaller_limit(min(limit, waiting[0].tokens), error)
                waiting = _split(waiting, reader, limit)
            else:
                waiting.pop(0)
        self.fragments = len(texts)
        self.report(len(texts), len(texts))
        prose = "\n\n".join(texts)
        if self.counter.text(prose) > allowed:
            prose = self._answered(writer, CONDENSE, _as_lines(texts), allowed)
        over = self.counter.text(prose) > allowed
        return SummaryAnswer(prose, by_model=True, over_budget=over)

    def _answered(self, writer: Writer, version: str, lines: str, allowed: int) -> str:
        prompt = Prompt(
            model=writer.model,
            messages=(PromptMessage("user", lines),),
            system=system_prompt(version, allowed),
            max_output_tokens=_output(writer, allowed),
        )
        completion = self.ask(writer, prompt, version)
        answer = answer_of(completion)
        if answer.stop_reason != "stop" or answer.tool_calls or not answer.text.strip():
            raise _Unsound(answer)
        return completion.text.strip()


def _output(writer: Writer, allowed: int) -> int:
    most = min(writer.max_output, max(256, writer.window // 4))
    return min(most, 2 * allowed + _THINKING_TOKENS)


def _room(writer: Writer, system_tokens: int, allowed: int) -> int:
    return max(1, writer.room(_output(writer, allowed)) - system_tokens - _FRAME_TOKENS)


def answer_of(completion: Completion) -> SummaryAnswer:
    """A completion as the engine judges it: only a normal stop counts, and a call is no text."""
    calls = len(completion.calls)
    stopped = completion.stop is Stop.END or calls > 0
    return SummaryAnswer(
        completion.text,
        stop_reason="stop" if stopped else completion.stop.value,
        tool_calls=calls,
        by_model=True,
    )


def smaller_limit(tokens: int, error: ProviderError) -> int:
    """Tokens of the next try, by our count, after a provider found so many too long (design 7.10).

    Its own numbers say by how much; without them half is tried.
    """
    share = _UNKNOWN_SHRINK
    if error.actual and error.maximum and error.actual > error.maximum:
        share = error.maximum / error.actual * 0.9
    return max(1, min(int(tokens * share), tokens - 1))


def _split(waiting: Sequence[Fragment], reader: TokenCounter, limit: int) -> list[Fragment]:
    units = tuple(unit for fragment in waiting for unit in fragment.units)
    return list(packed(units, reader, limit))


def _as_lines(texts: Sequence[str]) -> str:
    return "\n".join(
        json.dumps({"part": place, "text": text}, ensure_ascii=False)
        for place, text in enumerate(texts, start=1)
    )
