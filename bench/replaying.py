"""Sessions lived step by step through the services, with the strict local provider as their model.

Each step's predicted cache read is held against the read that the provider reports. A prediction is a place in the request, not
a number of tokens: so it is translated by counting, with the provider's own counter, the same body cut off at that place. Both
sides then speak the provider's tokens, and equal means equal to the token; where the provider serves whole steps, its own rule
rounds the place's count first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

from ctxengine.engine.cache.rules import CacheRules, cache_rules
from ctxengine.engine.cache.trail import trail_of
from ctxengine.engine.content.decode import ContentError, decode
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignSession
from ctxengine.engine.items import DecodedItem, ItemKind, TextPart
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.base import WireApi, WirePrefix
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.providers.strict_local import (
    anthropic_compaction,
    anthropic_prompt,
    anthropic_request,
    openai_chat,
    openai_request,
    responses_items,
    responses_prompt,
)
from ctxengine.providers.strict_local.clock import AdvancingClock
from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.responses_checks import FIELDS
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.providers.strict_local.state import State
from ctxengine.service.assemble import assemble
from ctxengine.service.open_session import open_session
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.specs import (
    Actor,
    AgentRef,
    Assemble,
    Content,
    ModelRef,
    OpenSession,
    PolicySpec,
    StartRun,
    TakeInput,
    TakeResponse,
    TakeToolResults,
    ToolResult,
    ToolSpec,
)
from ctxengine.service.start_run import start_run
from ctxengine.service.take_input import take_input
from ctxengine.service.take_response import take_response
from ctxengine.service.take_tool_results import take_tool_results

PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
TARGETS = (
    ("anthropic", "claude-sonnet-4-6"),
    ("openai", "gpt-5.4"),
    ("openai", "gpt-5.6-terra"),
    ("openai-responses", "gpt-5.4"),
    ("openai-responses", "gpt-5.6-terra"),
)
"""What is measured: each API, and both of OpenAI's caches."""

_HEADERS = {"authorization": "Bearer local", "anthropic-version": "2026-10-21"}
_MOST_RESULT_CHARS = 400_000


@dataclass(frozen=True, slots=True)
class Compared:
    """One step: where the prediction says the read ends, and where the provider ended it."""

    session: str
    step: int
    expected: int
    """The provider's tokens up to the predicted place, by its rule."""
    reported: int
    granule: int
    """Whole steps in which the provider serves; 1: exact."""
    why: str
    cause: str
    verdict: dict[str, Any]
    minimum: int = 0
    """Tokens below which the provider keeps nothing."""

    @property
    def at_the_minimum(self) -> bool:
        """Whether all hangs on a place within 3 % of the minimum, which an estimate cannot put on one side for certain."""
        place = max(self.expected, self.reported)
        return (
            not min(self.expected, self.reported)
            and abs(place - self.minimum) <= 0.03 * self.minimum
        )

    @property
    def equal(self) -> bool:
        """Equal, or within one of the provider's steps: a message that merely begins alike can complete one."""
        return abs(self.expected - self.reported) <= (self.granule if self.granule > 1 else 0)


@dataclass
class Clock:
    """One clock for both sides."""

    at: datetime = field(default_factory=lambda: datetime(2026, 7, 1, 9, tzinfo=UTC))

    def now(self) -> datetime:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@contextmanager
def on_clock(clock: Clock) -> Iterator[None]:
    """Let the services read this clock."""
    with (
        patch("ctxengine.service.assemble.utc_now", clock.now),
        patch("ctxengine.service.take_response.utc_now", clock.now),
    ):
        yield


class Replaying:
    """One session of a provider and a model, driven by what a transcript says."""

    def __init__(
        self,
        actor: Actor,
        provider: str,
        model: str,
        *,
        name: str,
        instructions: str = "",
        tools: Sequence[ToolSpec] = (),
        policy: PolicySpec | None = None,
        occasion: str = "interactive",
        clock: Clock | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Open the session; `extra` goes into every request body, as a runtime's own settings do."""
        self.actor, self.provider, self.model, self.name = actor, provider, model, name
        self.clock = clock or Clock()
        self.extra = extra or {}
        self.strict = StrictProvider(clock=AdvancingClock(lambda: self.clock.now().timestamp()))
        spec = OpenSession(
            model=ModelRef(provider=provider, name=model),
            agent=AgentRef(name=f"replay-{name}"[:200], version="1", instructions=instructions),
            tools=tuple(tools),
            policy=policy,
            occasion=occasion,  # type: ignore[arg-type]
        )
        self.session = open_session(actor=actor, spec=spec).id
        self.run: UUID | None = None
        self.pending: list[str] = []
        self.compared: list[Compared] = []
        self.refused: list[tuple[int, str]] = []

    @property
    def row(self) -> SessionRow:
        return SessionRow.objects.get(tenant_id=self.actor.tenant_id, id=self.session)

    def ask(self, message: Content) -> None:
        """A user's message: a new run, or late input of the open one."""
        self._close_calls()
        if self.run is None:
            spec = StartRun(message=message)
            self.run = start_run(actor=self.actor, session_id=self.session, spec=spec).id
        else:
            take_input(actor=self.actor, run_id=self.run, spec=TakeInput(message=message))

    def answer(self, reply: Reply) -> None:
        """One step: assemble, send, compare, report."""
        if self.run is None:
            self.ask(Content(raw="Go on."))
        self._close_calls()
        assert self.run is not None
        built = assemble(actor=self.actor, run_id=self.run, spec=Assemble())
        self.strict.script.clear()
        self.strict.script.add([reply])
        body = built.body
        if self.extra:
            body = json.dumps(json.loads(body) | self.extra).encode()
        response = self.strict.handle(Call("POST", PATHS[self.provider], _HEADERS, body))
        if response.status != 200:
            self.refused.append((response.status, response.body.decode()[:300]))
            raise RuntimeError(f"{response.status}: {response.body.decode()[:300]}")
        self.strict.begin(response)
        # The answer may end the run, and its reasoning leaves with it: what was sent is looked at before.
        sent = RequestRow.objects.get(tenant_id=self.actor.tenant_id, id=built.request_id)
        request = rebuild_request(self.row, sent)
        spec = TakeResponse(response_raw=response.body.decode())
        taken = take_response(actor=self.actor, run_id=self.run, spec=spec)
        self._compare(request, built.request_id)
        self.pending = [call.id for call in taken.calls if call.action == "execute"]
        if taken.next == "finish":
            self.run = None

    def result(self, place: int, content: Content, *, is_error: bool = False) -> None:
        """The result of a pending call, by its place among those still open."""
        if not self.pending:
            return
        call_id = self.pending.pop(min(place, len(self.pending) - 1))
        self._report((ToolResult(call_id=call_id, content=content, is_error=is_error),))

    def _close_calls(self) -> None:
        if self.pending:
            nothing = Content(raw="No result was recorded.")
            self._report(tuple(ToolResult(call_id=c, content=nothing) for c in self.pending))
            self.pending = []

    def _report(self, results: tuple[ToolResult, ...]) -> None:
        assert self.run is not None
        spec = TakeToolResults(results=results)
        take_tool_results(actor=self.actor, run_id=self.run, spec=spec)

    def _compare(self, rebuilt: ModelRequest, request_id: UUID) -> None:
        row = RequestRow.objects.get(tenant_id=self.actor.tenant_id, id=request_id)
        rules = cache_rules(rebuilt.renderer.api, self.provider, self.model)
        self.compared.append(
            Compared(
                self.name,
                row.number,
                _expected(rebuilt, row, rules, self.strict, self.extra),
                int(row.usage["cache_read"] or 0),
                rules.step,
                row.cache["predicted"]["why"],
                row.cache["predicted"]["cause"],
                row.verdict,
                rules.minimum,
            )
        )


def replay(
    foreign: ForeignSession, driver: Replaying, *, most_steps: int | None = None
) -> Iterator[Compared]:
    """Live a transcript's entries; gives each step as it was compared."""
    for entry in foreign.entries:
        if most_steps is not None and len(driver.compared) >= most_steps:
            return
        if entry.type in (EntryType.USER, EntryType.INPUT, EntryType.SUMMARY):
            driver.ask(_content(entry))
        elif entry.type is EntryType.ASSISTANT:
            driver.answer(reply_of(entry))
            yield driver.compared[-1]
        elif entry.type is EntryType.RESULT:
            driver.result(0, _content(entry), is_error=entry.is_error)


def tools_of(foreign: ForeignSession) -> list[ToolSpec]:
    """The transcript's tools, as a runtime would declare them."""
    return [
        ToolSpec(
            name=tool.name[:200] or "unnamed",
            description=tool.description[:4_000],
            input_schema_raw=tool.input_schema,
        )
        for tool in foreign.tools
    ]


def reply_of(entry: Entry) -> Reply:
    """What the transcript's model said, for the provider to say it again."""
    items = _decoded(entry, "assistant")
    texts = [part.text for item in items for part in item.parts if isinstance(part, TextPart)]
    calls = tuple(
        ScriptedCall(item.name or "unnamed", _object(item.arguments))
        for item in items
        if item.kind is ItemKind.TOOL_CALL
    )
    text = "\n".join(text for text in texts if text.strip())
    return Reply(text=text or (None if calls else "Done."), calls=calls, plain=True)


def _object(arguments: str | None) -> str:
    try:
        return arguments if isinstance(json.loads(arguments or "{}"), dict) else "{}"  # type: ignore[return-value]
    except ValueError:
        return "{}"


def _decoded(entry: Entry, role: Any) -> Sequence[DecodedItem]:
    try:
        return decode(entry.format, entry.body, role=role).items
    except ContentError:
        return ()


def _content(entry: Entry) -> Content:
    items = _decoded(entry, "user")
    texts = [part.text for item in items for part in item.parts if isinstance(part, TextPart)]
    return Content(raw="\n".join(texts)[:_MOST_RESULT_CHARS] or "(nothing)")


# --- the provider's count of a place ----------------------------------------------------------------------------------


def _expected(
    built: ModelRequest,
    row: RequestRow,
    rules: CacheRules,
    strict: StrictProvider,
    extra: dict[str, Any],
) -> int:
    predicted, at = row.cache["predicted"], row.cache["at"]
    if not predicted["read"] or not at:
        return 0
    trail = trail_of(built)
    index = next(i for i, place in enumerate(trail.places) if at in (place.digest, place.bare))
    fragments = built.fragments[: trail.places[index].fragments]
    prefix = built.prefix
    if index < trail.prefix:
        prefix = WirePrefix(system=(), tools=prefix.tools)
    body = built.renderer.body(prefix, fragments, built.params, ())
    if extra:
        body = json.dumps(json.loads(body) | extra).encode()
    tokens = provider_tokens(strict, built.renderer.api, body)
    return rules.stepped(tokens) if rules.step > 1 else tokens


def provider_tokens(strict: StrictProvider, api: WireApi, body: bytes) -> int:
    """Tokens of a body by the provider's own counter, without the checks that a body cut off would fail."""
    state: State = strict._state
    call = Call("POST", "", _HEADERS, body)
    if api is WireApi.ANTHROPIC:
        message = anthropic_request.read(call, state.windows)
        window = anthropic_compaction.open_window(
            message, anthropic_prompt.flatten(message), state.seal
        )
        prompt = anthropic_prompt.build(
            message, window.blocks, state.counter, state.seal, window.adopted
        )
        return prompt.tokens
    if api is WireApi.OPENAI_CHAT:
        request = openai_request.read(call, state.windows, openai_chat._FIELDS)
        if not request.body["messages"] and not request.tools:
            return 0
        return openai_chat._prompt(request, state.counter).tokens
    request = openai_request.read(call, state.windows, FIELDS)
    items = responses_items.items_of(request, state) if request.body["input"] else []
    window = responses_items.window_of(request, items, state)
    return responses_prompt.build(request, window.items, state).tokens
