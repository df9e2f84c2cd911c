"""Every address of the console against everyone who may ask for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from ctxengine.engine.capacity.profile import metadata_profile
from ctxengine.ledger.models import ImportRow, ItemRow, Job, ReplayRow, Role, Tenant
from ctxengine.ledger.queries.paging import Cursor
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.replay.start_replay import start_replay
from ctxengine.service.replay.wanted import ReplayWanted
from ctxengine.service.specs import Actor
from ctxengine.service.working_state import working_state_view
from inspector import urls
from tests.factories import LiveSession, make_person, make_tenant
from tests.inspector.sessions import PRINCIPAL, compaction_of, kept_session
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

POSTS = {"prove", "prove-newest", "logout", "persona-preview", "save-view", "remove-view"}
OPEN_TO_ALL = {"login"}
OF_OTHER_SESSIONS = {"session-checkpoints", "undo-checkpoint"}
"""Pages that only sessions of the engine `boundary` have; they have tests of their own."""
WITHOUT_TENANT = {"home", "login", "logout"}
ACTS = {
    "rotate": {"epoch": "2", "why": "operator"},
    "tool-act": {"tool": "shell.run", "act": "revoke"},
    "lift-constraint": {},
    "compact-now": {},
    "mark": {"target": "3", "form": "folded"},
    "undo-compaction": {},
    "job": {"act": "cancel"},
    "persona": {"revision": "1", "entry": "Prefers large commits."},
}
"""What operators do on pages that everybody may look at."""
FAR = "?newest=" + Cursor(datetime(2100, 1, 1, tzinfo=UTC), uuid.UUID(int=0)).text()
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


class World:
    """One tenant with a session, and the keys of every address in it."""

    def __init__(self) -> None:
        self.tenant = make_tenant()
        self.session = kept_session(self.tenant)
        self.constraint = "?id=" + constraint_of(self.session)
        self.job = make_job(self.tenant)
        make_import(self.tenant)
        make_profile(self.tenant)
        self.replay = make_replay(self.session)
        self.evidence = evidence_of(self.session)

    def address(self, pattern: URLPattern) -> str:
        """The address of a pattern, filled in with what exists."""
        filled = {
            "slug": self.tenant.slug,
            "session_id": self.session.id,
            "request_id": self.session.requests[0],
            "before_id": self.session.requests[0],
            "after_id": self.session.requests[1],
            "sequence": 3,
            "event": compaction_of(self.session),
            "principal": PRINCIPAL,
            "key": MODEL,
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
        if pattern.name == "evidence":
            filled["item_id"] = self.evidence
        values = {name: filled[name] for name in pattern.pattern.converters}
        address = reverse(f"inspector:{pattern.name}", kwargs=values)
        asks = {**ASKS, "lift-constraint": self.constraint}
        return address + asks.get(str(pattern.name), "")


def constraint_of(session: LiveSession) -> str:
    state = working_state_view(actor=session.actor, session_id=session.id).state
    return state.constraints[0].id


def make_import(tenant: Tenant) -> None:
    ImportRow.objects.create(
        tenant_id=tenant.id,
        sha256=SHA,
        name="talk.json",
        format="openai_chat",
        items_in=1,
        items_kept=0,
        report=[SET_ASIDE],
        created_at=datetime.now(UTC),
    )


def make_job(tenant: Tenant) -> Job:
    """An import that waits: it has a page among the imports, and one among the jobs."""
    actor = Actor(tenant.id, "system")
    return enqueue(
        actor=actor,
        kind="transcript.import",
        subject="x.json",
        arguments={"staged": "x", "name": "x.json", "dry_run": False},
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


def make_profile(tenant: Tenant) -> None:
    provider, _, model = MODEL.partition("/")
    known = metadata_profile(provider=provider, model=model, declared_window=8_000, max_output=500)
    keep_profile(tenant_id=tenant.id, profile=known)


def tenant_pages() -> Iterator[URLPattern]:
    for pattern in urls.urlpatterns:
        if pattern.name not in WITHOUT_TENANT | OF_OTHER_SESSIONS:
            yield pattern


def client(person: object = None) -> Client:
    one = Client()
    if person is not None:
        one.force_login(person)  # type: ignore[arg-type]
    return one


def ask(one: Client, pattern: URLPattern, address: str) -> int:
    status: int = (one.post if pattern.name in POSTS else one.get)(address).status_code
    return status


def test_foreign_ids_are_404_under_ones_own_tenant() -> None:
    world, own = World(), make_tenant()
    member = client(make_person(own, Role.ADMIN))
    for pattern in tenant_pages():
        if set(pattern.pattern.converters) <= {"slug", "twin"}:
            continue
        if "principal" in pattern.pattern.converters:
            # A principal's name is no id: under another tenant it is another, unknown person.
            continue
        address = world.address(pattern).replace(f"/t/{world.tenant.slug}/", f"/t/{own.slug}/")
        assert ask(member, pattern, address) == 404, pattern.name


def test_another_tenant_s_operator_cannot_act() -> None:
    world, own = World(), make_tenant()
    other = client(make_person(own, Role.ADMIN))
    for pattern in tenant_pages():
        if pattern.name not in ACTS or "principal" in pattern.pattern.converters:
            continue
        address = world.address(pattern)
        moved = address.replace(f"/t/{world.tenant.slug}/", f"/t/{own.slug}/")
        for one in (address, moved):
            status = other.post(one, {"reason": "Mine."}).status_code
            assert status == 404, (pattern.name, status)


@pytest.mark.parametrize(
    ("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 400), (Role.ADMIN, 400)]
)
def test_only_operators_may_import(role: Role, status: int) -> None:
    tenant = make_tenant()
    member = client(make_person(tenant, role))
    assert member.post(f"/t/{tenant.slug}/imports/").status_code == status


def test_pages_are_never_kept_by_caches_and_carry_a_strict_policy() -> None:
    world = World()
    member = client(make_person(world.tenant))
    for pattern in tenant_pages():
        if pattern.name in POSTS:
            continue
        response = member.get(world.address(pattern))
        assert "no-cache" in response["Cache-Control"] or "no-store" in response["Cache-Control"]
        policy = response["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "style-src 'self'" in policy
        assert "unsafe" not in policy


def test_posts_need_the_forms_token() -> None:
    world = World()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_person(world.tenant))
    address = f"/t/{world.tenant.slug}/requests/{world.session.requests[0]}/prove/"
    assert strict.post(address).status_code == 403
    assert strict.post(f"/t/{world.tenant.slug}/imports/").status_code == 403
    for pattern in tenant_pages():
        if pattern.name in ACTS:
            assert strict.post(world.address(pattern)).status_code == 403, pattern.name


def test_ids_that_never_were_are_404() -> None:
    tenant = make_tenant()
    member = client(make_person(tenant))
    for path in (f"sessions/{uuid.uuid4()}/", f"requests/{uuid.uuid4()}/", f"imports/{'0' * 64}/"):
        assert member.get(f"/t/{tenant.slug}/{path}").status_code == 404
