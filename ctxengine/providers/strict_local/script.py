"""What the provider says: replies queued by a script, else made by rule."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxengine.providers.strict_local.exchange import Json, object_of, objects, text_of

TEXT_PREFIX = "[scripted] "
"""Opens every text, but for those that repeat what they were told to."""


class ScriptInvalid(ValueError):
    """A reply of a script that cannot be understood; the message names the field."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call; `arguments` is sent as it is, be it JSON or not."""

    name: str
    arguments: str = "{}"
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the pretended model, and what goes wrong with it."""

    text: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str | None = None
    """Text of the reasoning; None leaves it to the request whether there is any."""
    searched: tuple[str, ...] = ()
    """Deferred tools that the provider's own search finds first."""
    plain: bool = False
    """Without `TEXT_PREFIX`."""
    refuse: bool = False
    truncate_after_tokens: int | None = None
    stall_seconds: float = 0.0
    status: int | None = None
    """An HTTP error in place of an answer: 429, 500, 503, 529 ..."""
    retry_after: float | None = None
    message: str | None = None
    """Wording of that error."""
    cut_after_events: int | None = None
    broken: Literal["", "block", "body"] = ""
    """What is wrong with the answer to a compaction: `block`, its window has no seal; `body`, it is no JSON."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that may be called."""

    name: str
    schema: Json = field(default_factory=dict)
    deferred: bool = False
    """Declared, not loaded, and not found by any search so far."""


@dataclass(frozen=True, slots=True)
class View:
    """A request, whatever its API, as far as an answer depends on it."""

    api: Literal["anthropic", "openai", "openai-responses", "ollama"]
    model: str
    tokens: int
    turns: tuple[Turn, ...]
    offers: tuple[Offer, ...] = ()
    choice: str = "auto"
    """`auto`, `none`, `any`, or the name of the tool that must be called."""
    answer_schema: Json | None = None
    thinks: bool = False
    searches: bool = False
    """Whether the provider's own tool search is on."""
    body_digest: str = ""
    """The same for a request that is sent again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Neighbouring messages of one role, as the rules read them."""

    role: str
    """`user`, `assistant` or another."""
    texts: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    """Names of the tools called."""


Answerer = Callable[[View], Reply | None]


class Script:
    """A queue of replies, then a function, then the rules."""

    def __init__(
        self,
        rules: Callable[[View], Reply],
        replies: Iterable[Reply] = (),
        answer: Answerer | None = None,
    ) -> None:
        """Queue `replies`; ask `answer` when there is none left, and `rules` when it has none."""
        self._rules = rules
        self._queue = deque(replies)
        self._answer = answer

    def __len__(self) -> int:
        """Replies still queued."""
        return len(self._queue)

    def add(self, replies: Iterable[Reply]) -> None:
        """Queue more."""
        self._queue.extend(replies)

    def clear(self) -> None:
        """Forget what is queued."""
        self._queue.clear()

    def next(self, view: View, rules: Callable[[View], Reply] | None = None) -> Reply:
        """The reply to a request; `rules` stands in for the usual ones."""
        if self._queue:
            return self._queue.popleft()
        made = self._answer(view) if self._answer else None
        return made or (rules or self._rules)(view)


_BROKEN = ("", "block", "body")
_FIELDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "thinking": (str,),
    "plain": (bool,),
    "refuse": (bool,),
    "truncate_after_tokens": (int,),
    "stall_seconds": (int, float),
    "status": (int,),
    "retry_after": (int, float),
    "message": (str,),
    "cut_after_events": (int,),
    "broken": (str,),
}


def reply_from(data: Any) -> Reply:
    """A reply from the JSON of a script.

    Raises:
        ScriptInvalid: an unknown field, or a value of the wrong type.
    """
    if not isinstance(data, dict):
        raise ScriptInvalid(f"A reply is an object, not a {type(data).__name__}.")
    values: Json = {}
    for key, value in data.items():
        if key == "calls":
            values[key] = tuple(_call(call) for call in objects(value))
        elif key == "searched":
            values[key] = tuple(str(name) for name in value)
        elif key not in _FIELDS:
            raise ScriptInvalid(
                f"A reply has no field {key!r}; it has {', '.join([*_FIELDS, 'calls', 'searched'])}."
            )
        elif not isinstance(value, _FIELDS[key]) or (key == "broken" and value not in _BROKEN):
            raise ScriptInvalid(f"The field {key!r} of a reply cannot be {value!r}.")
        else:
            values[key] = value
    return Reply(**values)


def _call(data: Json) -> ScriptedCall:
    name = text_of(data.get("name"))
    if not name:
        raise ScriptInvalid("A call of a reply needs a name.")
    arguments = data.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(object_of(arguments))
    return ScriptedCall(name, text, text_of(data.get("call_id")) or None)
