"""A boundary session above its trigger, and a strict provider behind a gateway that may change what is to be compacted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import RunRow
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.exchange import Answer, Call
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.boundary.look import look
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import EndRun, ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.service.boundary.talking import session
from tests.work_off import work_off

KIND = "compaction.boundary"
Body = dict[str, Any]
Meddle = Callable[[Body], None]


def told(runtime: Runtime) -> list[tuple[int, str]]:
    """The canonical messages: every content event with what it commits to."""
    kinds = (EventType.USER_MESSAGE, EventType.RESPONSE_COMPLETED, EventType.TOOL_RESULT)
    return [(event.sequence, event.hash) for event in runtime.events(*kinds)]


class Gateway(StrictProvider):
    """The strict provider behind something that changes what is to be compacted."""

    meddle: Meddle | None = None

    def handle(self, call: Call) -> Answer:
        body = json.loads(call.body) if self.meddle and b'"compaction"' in call.body else None
        if self.meddle and isinstance(body, dict) and "compaction" in body:
            self.meddle(body)
            call = replace(call, body=json.dumps(body).encode())
        return super().handle(call)


@dataclass
class Stage:
    """A session whose next request needs a compaction, and what a case may do about it."""

    settings: Any
    patch: pytest.MonkeyPatch
    strict: StrictServer
    runtime: Runtime = field(init=False)
    before: Any = None
    said: int = 0
    """Turns so far."""

    @property
    def gateway(self) -> Gateway:
        provider = self.strict.provider
        assert isinstance(provider, Gateway)
        return provider

    def due(self, provider: str, turns: int = 6, **policy: Any) -> None:
        """A session above its trigger, nothing of it compacted yet."""
        self.runtime = session(provider, window=9_000, **policy)
        self.talk(turns)

    def due_again(self, provider: str = "anthropic") -> None:
        """One that stands on a window already."""
        self.due(provider)
        self.work_off()
        self.runtime.assemble()
        self.runtime.say("Noted.")
        self.talk(5)

    def talk(self, turns: int) -> None:
        """Turns without a request, and a run that waits for one."""
        for number in range(self.said, self.said + turns):
            self.runtime.ask(f"Remember item {number}: " + "it is as long as it is " * 130)
            end_run(
                actor=self.runtime.actor, run_id=self.runtime.run, spec=EndRun(outcome="completed")
            )
        self.said += turns
        self.runtime.ask("And now?")

    def work_off(self) -> None:
        with pytest.raises(AnswerLater):
            self.runtime.assemble()
        self.before = self.standing()
        work_off(self.runtime.actor.tenant_id, kind=KIND)

    def refusal(self) -> ServiceError:
        """What the next request says instead of being made."""
        with pytest.raises(ServiceError) as caught:
            self.runtime.assemble()
        assert not isinstance(caught.value, AnswerLater)
        return caught.value

    def standing(self) -> Any:
        """All that a failure must leave as it was: messages, checkpoints, requests, and what would be shown now."""
        runtime = self.runtime
        run = RunRow.objects.get(tenant_id=runtime.actor.tenant_id, id=runtime.run)
        situation = look(runtime.row, run).situation
        return (
            told(runtime),
            [event.hash for event in runtime.events(EventType.COMPACTED)],
            [row.request_sha256 for row in runtime.requests],
            (situation.checkpoint, situation.projection, situation.active),
        )


@contextmanager
def provided(settings: Any, patch: pytest.MonkeyPatch, **how: Any) -> Iterator[Stage]:
    """A stage with a strict provider of that kind."""
    with StrictServer(Gateway(**how)) as strict:
        settings.CTX_PROVIDER_URLS = {"anthropic": strict.url, "openai": strict.openai_url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k"), "openai": Secret("k")}
        yield Stage(settings, patch, strict)
