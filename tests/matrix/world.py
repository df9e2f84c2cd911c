"""One tenant with one of everything, and how each address of the console is filled in with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from django.test import Client, override_settings
from django.urls import URLPattern, reverse

from ctxengine.engine.capacity.profile import metadata_profile
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import ImportRow, ItemRow, Job, ReplayRow, Tenant
from ctxengine.ledger.queries.paging import Cursor
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.replay.start_replay import start_replay
from ctxengine.service.replay.wanted import ReplayWanted
from ctxengine.service.specs import Actor
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.service.working_state import working_state_view
from inspector import urls
from tests.cast import Runtime
from tests.factories import LiveSession, make_tenant
from tests.inspector.sessions import PRINCIPAL, compaction_of, kept_session
from tests.made_once import made_once
from tests.service.boundary.talking import session as boundary_session
from tests.work_off import work_off

POSTS = {
    "prove",
    "prove-newest",
    "logout",
    "persona-preview",
    "save-view",
    "remove-view",
    "load-samples",
}
"""Addresses that take nothing but a POST."""
WITHOUT_TENANT = {"home", "login", "logout"}
FAR = "?newest=" + Cursor(datetime(2100, 1, 1, tzinfo=UTC), UUID(int=0)).text()
ASKS = {
    "tool-act": "?tool=shell.run",
    "mark": "?target=3",
    "json-part": "?part=messages.0",
    "overview-news": FAR,
    "sessions-news": FAR,
    "requests-news": FAR,
}
SHA = "ab" * 32
SET_ASIDE = {
    "action": "set_aside",
    "code": "unknown_item",
    "where": "line 1",
    "detail": "It is of no known kind.",
    "items": 1,
    "raw": "{}",
    "raw_chars": 2,
}
MODEL = "ollama/measured:1b"


class Bounded(NamedTuple):
    """A session of the engine `boundary`, and the event of its one checkpoint."""

    session: UUID
    event: int


class World:
    """One tenant with a session, and the keys of every address in it."""

    def __init__(self) -> None:
        self.tenant = make_tenant()
        self.session = kept_session(self.tenant)
        self.furnish()

    def furnish(self) -> None:
        """Everything of a tenant that is no session."""
        self.constraint = "?id=" + constraint_of(self.session)
        self.job = make_job(self.tenant)
        make_import(self.tenant)
        make_profile(self.tenant)
        self.replay = make_replay(self.session)
        self.evidence = evidence_of(self.session)
        self.model = MODEL

    @cached_property
    def bounded(self) -> Bounded:
        """Made where it is asked for alone: no other engine has checkpoints."""
        return make_bounded(self.tenant)

    def values(self, name: str) -> dict[str, object]:
        """What stands in the address of a page; one of a name that is not here has no recipe."""
        filled: dict[str, object] = {
            "slug": self.tenant.slug,
            "session_id": self.session.id,
            "request_id": self.session.requests[0],
            "before_id": self.session.requests[0],
            "after_id": self.session.requests[1],
            "sequence": 3,
            "event": compaction_of(self.session),
            "principal": PRINCIPAL,
            "key": self.model,
            "item_id": "3.0",
            "sha256": SHA,
            "place": 1,
            "job_id": self.job.id,
            "view_id": self.job.id,
            "replay_id": self.replay.id,
            "number": 1,
            "step": 1,
            "twin": "html",
        }
        if name == "evidence":
            filled["item_id"] = self.evidence
        if name == "undo-checkpoint":
            filled |= {"session_id": self.bounded.session, "event": self.bounded.event}
        return filled

    def query(self, name: str) -> str:
        """The query without which a page has nothing to show."""
        return {**ASKS, "lift-constraint": self.constraint}.get(name, "")

    def address(self, pattern: URLPattern, **instead: object) -> str:
        """The address of a pattern, filled in with what exists."""
        name = str(pattern.name)
        known = self.values(name) | instead
        lacking = set(pattern.pattern.converters) - set(known)
        assert not lacking, f"say in tests/matrix/world.py what {name} is filled in with: {lacking}"
        values = {part: known[part] for part in pattern.pattern.converters}
        return reverse(f"inspector:{name}", kwargs=values) + self.query(name)


def a_world() -> World:
    """A world with its checkpoint, made once in each process."""
    return made_once("world", _with_checkpoint)


def _with_checkpoint() -> World:
    world = World()
    assert world.bounded
    return world


def constraint_of(session: LiveSession) -> str:
    """Id of the session's first constraint."""
    state = working_state_view(actor=session.actor, session_id=session.id).state
    return state.constraints[0].id


def make_import(tenant: Tenant, name: str = "talk.json", **aside: object) -> None:
    """An imported file of which one line was set aside."""
    ImportRow.objects.create(
        tenant_id=tenant.id,
        sha256=SHA,
        name=name,
        format="openai_chat",
        items_in=1,
        items_kept=0,
        report=[SET_ASIDE | aside],
        created_at=datetime.now(UTC),
    )


def make_job(tenant: Tenant, subject: str = "x.json") -> Job:
    """An import that waits: it has a page among the imports, and one among the jobs."""
    return enqueue(
        actor=Actor(tenant.id, "system"),
        kind="transcript.import",
        subject=subject,
        arguments={"staged": "x", "name": subject, "dry_run": False},
    )


def evidence_of(session: LiveSession) -> str:
    """Id of its first tool result."""
    row = ItemRow.objects.filter(session_id=session.id, kind="tool_result").earliest("sequence")
    return f"{row.sequence}.{row.ordinal}"


def make_replay(session: LiveSession) -> ReplayRow:
    """A replay with one cell, worked off."""
    wanted = ReplayWanted(session=session.id, engines=("suffix",), models=("claude-sonnet-4-6",))
    row = start_replay(actor=session.actor, wanted=wanted)
    work_off(session.tenant.id, kind="replay.run")
    return row


def make_profile(tenant: Tenant, key: str = MODEL) -> None:
    """A model that somebody measured."""
    provider, _, model = key.partition("/")
    known = metadata_profile(provider=provider, model=model, declared_window=8_000, max_output=500)
    keep_profile(tenant_id=tenant.id, profile=known)


def make_bounded(tenant: Tenant, say: str = "it is as long as it is ", note: str = "") -> Bounded:
    """A session whose next request needed a compaction, and got it from a scripted model."""
    with (
        StrictServer(StrictProvider()) as strict,
        override_settings(
            CTX_PROVIDER_URLS={"openai": strict.openai_url},
            CTX_PROVIDER_KEYS={"openai": Secret("k")},
        ),
    ):
        runtime = boundary_session("openai", window=9_000, actor=Actor(tenant.id, "system"))
        _ask_until_due(runtime, say * (4_000 // len(say)))
        strict.provider.script.add([Reply(text=note or "Objective: count. Remaining work: all.")])
        work_off(tenant.id, kind="compaction.boundary")
    (made,) = runtime.events(EventType.COMPACTED)
    return Bounded(runtime.session, made.sequence)


def _ask_until_due(runtime: Runtime, text: str) -> None:
    for number in range(30):
        runtime.ask(f"Item {number}: {text}")
        try:
            runtime.assemble()
        except AnswerLater:
            return
        runtime.say("Remembered, with all of its words. " * 30)
    raise AssertionError("never due")


def tenant_patterns() -> Iterator[URLPattern]:
    """Every address under a tenant."""
    return (pattern for pattern in urls.urlpatterns if pattern.name not in WITHOUT_TENANT)


def client(person: object = None) -> Client:
    """A browser, signed in as a person or as nobody."""
    one = Client()
    if person is not None:
        one.force_login(person)  # type: ignore[arg-type]
    return one
