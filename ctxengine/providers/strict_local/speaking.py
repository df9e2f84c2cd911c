"""From a reply to what is said within the output limit, before any API gives it its form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ctxengine.providers.strict_local.counting import Counter
from ctxengine.providers.strict_local.exchange import Answer
from ctxengine.providers.strict_local.refusal import Dialect, Refusal
from ctxengine.providers.strict_local.script import TEXT_PREFIX, Reply, ScriptedCall, View
from ctxengine.providers.strict_local.state import Ids

Stop = Literal["stop", "calls", "length", "window", "refusal"]

_THOUGHT = "Scripted reasoning: the rules say what to do next."
_REFUSED = TEXT_PREFIX + "I can't help with that."
_WORDS: dict[tuple[str, int], str] = {
    ("anthropic", 429): (
        "This request would exceed your organization's rate limit of 50,000 input tokens per "
        "minute. Please reduce the prompt length or the maximum tokens requested, or try again "
        "later."
    ),
    ("anthropic", 500): "Internal server error",
    ("anthropic", 529): "Overloaded",
    ("openai", 429): (
        "Rate limit reached for {model} in organization org-strict on tokens per min (TPM): Limit "
        "30000, Used 30000. Please try again in 1s."
    ),
    ("openai", 500): "The server had an error while processing your request. Sorry about that!",
    ("openai", 503): "The engine is currently overloaded, please try again later",
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is said, and what it costs."""

    text: str
    calls: tuple[ScriptedCall, ...]
    thinking: str | None
    stop: Stop
    text_tokens: int
    thinking_tokens: int

    @property
    def tokens(self) -> int:
        """All output tokens, thinking included."""
        return self.text_tokens + self.thinking_tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be said, in tokens."""

    asked: int
    """What the request allows."""
    room: int
    """What the window leaves."""


def refuse_by_script(reply: Reply, dialect: Dialect, model: str, code: str | None = None) -> None:
    """Fail as the reply says.

    Raises:
        Refusal: when the reply is an error.
    """
    if reply.status is None:
        return
    words = reply.message or _WORDS.get((dialect, reply.status), "Overloaded")
    retry_after = reply.retry_after
    if retry_after is None and reply.status == 429:
        retry_after = 1.0
    raise Refusal(
        words.format(model=model), status=reply.status, code=code, retry_after=retry_after
    )


def broken_by_script(reply: Reply, answer: Answer) -> Answer:
    """The answer to a compaction, cut to what is no JSON where the reply says so."""
    return replace(answer, body=answer.body[:-1]) if reply.broken == "body" else answer


def speak(
    reply: Reply, view: View, limits: Limits, counter: Counter, ids: Ids, call_prefix: str
) -> Spoken:
    """Say a reply within its limits. A text that is cut takes the calls after it along."""
    if reply.refuse:
        return Spoken(_REFUSED, (), None, "refusal", counter.text(_REFUSED, view.model), 0)
    thinking = reply.thinking if reply.thinking is not None or not view.thinks else _THOUGHT
    thought = counter.text(thinking, view.model) if thinking else 0
    text = reply.text or ""
    if text and not reply.plain:
        text = TEXT_PREFIX + text
    allowed, stop = _allowed(reply, limits)
    room = max(0, allowed - thought)
    whole = counter.text(text, view.model)
    if whole > room:
        cut = _cut(text, room, counter, view.model)
        return Spoken(cut, (), thinking, stop, counter.text(cut, view.model), thought)
    calls = tuple(
        replace(call, call_id=call.call_id or ids.next(call_prefix)) for call in reply.calls
    )
    spent = whole + sum(counter.call(call.name, call.arguments, view.model) for call in calls)
    if reply.truncate_after_tokens is not None:
        return Spoken(text, calls, thinking, "length", spent, thought)
    return Spoken(text, calls, thinking, "calls" if calls else "stop", spent, thought)


def _allowed(reply: Reply, limits: Limits) -> tuple[int, Stop]:
    asked = limits.asked
    if reply.truncate_after_tokens is not None:
        asked = min(asked, reply.truncate_after_tokens)
    return (limits.room, "window") if limits.room < asked else (asked, "length")


def _cut(text: str, tokens: int, counter: Counter, model: str) -> str:
    """The longest beginning found by halving that keeps to the limit, cut between characters."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.text(text[:middle], model) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
