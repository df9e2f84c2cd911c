"""A runtime that really asks the strict provider: every request goes out, every answer comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import httpx2

from ctxengine.ledger.models import SideCallRow
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply, ScriptedCall, View
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.prove import prove_all
from ctxengine.service.specs import Actor, PolicySpec
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime, new_actor
from tests.work_off import work_off

MODELS = {"anthropic": "claude-sonnet-4-6", "openai-responses": "gpt-5.4", "openai": "gpt-5.4"}
PATHS = {
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai": "/v1/chat/completions",
}


_CLIENT = httpx2.Client(timeout=30)
"""One for all: each would read the certificates anew."""


class Served(Protocol):
    """A provider that runs, here or in another process."""

    @property
    def url(self) -> str:
        """Where."""
        ...


@contextmanager
def strict_provider(settings: Any, *, secret: bytes = b"one") -> Iterator[StrictServer]:
    """A running strict provider that the product knows.

    Args:
        secret: what it signs with; another one makes another provider of it.
    """
    with StrictServer(StrictProvider(answer=looks_things_up, secret=secret)) as running:
        settings.CTX_PROVIDER_URLS = {"anthropic": running.url, "openai": running.openai_url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k"), "openai": Secret("k")}
        yield running


def session(
    provider: str,
    *,
    window: int = 16_000,
    actor: Actor | None = None,
    principal: Any = None,
    **policy: Any,
) -> Runtime:
    """A session of the boundary engine."""
    return Runtime(
        actor=actor or new_actor(),
        principal=principal,
        provider=provider,
        model=MODELS[provider],
        window=window,
        max_output=1_000,
        policy=PolicySpec(native_compaction_max_output_tokens=1_000, history_floor=0, **policy),
        extra={"engine": "boundary"},
    )


def looks_things_up(view: View) -> Reply | None:
    """A model that reads a file for every question; what it is not asked is left to the rules."""
    last = view.turns[-1] if view.turns else None
    asked = last is not None and last.role == "user" and not last.results
    if asked and any(text.startswith("Look up") for text in last.texts if last):
        return Reply(calls=(ScriptedCall("read", '{"path":"notes.txt"}'),))
    return None


def said(number: int, words: int = 60) -> str:
    """A user's message."""
    return f"Question {number}: " + f"what about item {number}, and why not the other one? " * (
        words // 10
    )


def take_turn(runtime: Runtime, strict: Served, number: int, words: int = 60) -> None:
    """One whole turn through the provider."""
    runtime.ask(said(number, words))
    answer_all(runtime, strict)


def look_up(runtime: Runtime, strict: Served, number: int, words: int = 400) -> None:
    """One turn with a tool whose result is large; the provider must be one that looks things up."""
    runtime.ask(f"Look up number {number}.")
    answer_all(runtime, strict, result=f"Line {number} of the notes says a lot. " * (words // 8))


def take_turns(runtime: Runtime, strict: Served, first: int, last: int, *, words: int) -> None:
    """Turns by number: every eighth looks something up, and that is `words` long."""
    for number in range(first, last):
        if number % 8 == 0:
            look_up(runtime, strict, number, words=words)
        else:
            take_turn(runtime, strict, number, words=10)


def answer_all(runtime: Runtime, strict: Served, *, result: str = "") -> None:
    """Steps until the run is over."""
    while True:
        built = assembled(runtime)
        status, answer = send(runtime, strict, built.body)
        assert status == 200, answer
        taken = runtime.hear(answer)
        if taken.next == "finish":
            return
        pending = [call for call in taken.calls if call.action == "execute"]
        runtime.results(*((call.id, result) for call in pending))


def assembled(runtime: Runtime) -> Any:
    """The next request, its compaction made by a worker where one is due."""
    try:
        return runtime.assemble()
    except AnswerLater:
        work_off(runtime.actor.tenant_id)
        return runtime.assemble()


def send(runtime: Runtime, strict: Served, body: bytes) -> tuple[int, str]:
    """The request as an SDK sends it: beta names become a header."""
    asked = json.loads(body)
    betas = asked.pop("betas", None)
    headers = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2026-10-21"}
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    answer = _CLIENT.post(
        strict.url + PATHS[runtime.provider],
        content=json.dumps(asked).encode(),
        headers=headers | {"content-type": "application/json"},
    )
    return answer.status_code, answer.text


def calls(runtime: Runtime, purpose: str) -> list[SideCallRow]:
    """Our own calls of that purpose, oldest first."""
    rows = SideCallRow.objects.filter(tenant_id=runtime.actor.tenant_id, purpose=purpose)
    return list(rows.order_by("at"))


def unproven(runtime: Runtime) -> list[Any]:
    """Recorded requests that do not rebuild to their hash."""
    return [found for found in prove_all(session_id=runtime.session) if not found.identical]
