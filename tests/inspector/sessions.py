"""A session with everything that operators act on: state, a compaction, two epochs, a revoked tool, a persona."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ctxengine.ledger.models import Event, Tenant
from ctxengine.service.compact import compact
from ctxengine.service.edit_persona import edit_persona, newest_persona
from ctxengine.service.open_session import open_session
from ctxengine.service.pin import set_presentation
from ctxengine.service.plan_specs import EditPersona, PersonaView
from ctxengine.service.revoke_tool import revoke_tool
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import (
    Actor,
    AgentRef,
    Compact,
    ModelRef,
    OpenSession,
    PolicySpec,
    Present,
    PrincipalSpec,
)
from tests.factories import LiveSession

PRINCIPAL = "mara@acme"
PROSE = (
    "The northern depot sent its figures late, so the comparison with last year waits for them. "
    "Nobody knows yet whether the new counting rule changes the total, and by how much. "
)


def save_persona(tenant: Tenant, *entries: str, note: str = "First words") -> PersonaView:
    """The next revision of the principal's document."""
    actor = Actor(tenant.id, "user:mara")
    seen = newest_persona(tenant.id, PRINCIPAL).revision
    spec = EditPersona(revision=seen, entries=entries, note=note)
    return edit_persona(actor=actor, principal=PRINCIPAL, spec=spec)


def note(session: LiveSession, **wish: Any) -> LiveSession:
    """Let the model write working state in a step of its own."""
    session.call(("context.update_working_state", wish))
    return session


def talk(session: LiveSession, turns: int, size: int = 8, say: str = PROSE) -> LiveSession:
    """Closed runs with one tool call each."""
    for number in range(turns):
        session.ask(f"Question {number}: how does src/part{number}/main.py count? {say}")
        session.step("shell.run", f"Listing {number}. " + "Row of a sheet. " * 10 * size)
        session.answer(f"Decision {number}: the limit stays at {number}41. " + say * size)
    return session


def following_session(tenant: Tenant, **fields: Any) -> LiveSession:
    """A session that follows its principal's document."""
    given: dict[str, Any] = {"persona": None, "title": "Count the depots", **fields}
    return LiveSession(tenant, **given)


def kept_session(tenant: Tenant, say: str = PROSE, **fields: Any) -> LiveSession:
    """Worked on for five turns, with one of each act."""
    save_persona(tenant, "Prefers small commits.")
    session = following_session(tenant, policy=PolicySpec(low_water=0.3), **fields)
    session.ask("Count the depots. " + say)
    note(
        session,
        objective="Count every depot once.",
        add_constraints=["Never round a figure."],
        upsert_tasks=[{"title": "Read the northern sheet", "status": "active"}],
        add_facts=[{"statement": "There are four depots.", "source_event_ids": [3]}],
        next_action="Ask for the sheet.",
    )
    session.answer("I begin.")
    talk(session, 4, say=say)
    last = Event.objects.filter(session_id=session.id, type="run.ended").order_by("sequence")[2]
    compact(
        actor=session.actor,
        session_id=session.id,
        spec=Compact(through=last.sequence, note="Make room."),
    )
    rotate_epoch(
        actor=session.actor, session_id=session.id, reason="operator", note="A new beginning."
    )
    revoke_tool(
        actor=session.actor, session_id=session.id, name="web.fetch", note="It leaks addresses."
    )
    seed = Event.objects.filter(session_id=session.id, type="user.message.created").last()
    assert seed is not None
    set_presentation(
        actor=session.actor,
        session_id=session.id,
        spec=Present(target=str(seed.sequence), form="pinned", note="Needed whole."),
    )
    return session.ask("And now?").answer("Now we wait.")


def compaction_of(session: LiveSession) -> int:
    """The event of its compaction."""
    return Event.objects.get(session_id=session.id, type="context.compacted").sequence


def opened_with(tenant: Tenant, **fields: Any) -> UUID:
    """A session of the principal, opened with further fields; nothing was asked yet."""
    spec = OpenSession(
        model=ModelRef(provider="anthropic", name="claude-sonnet-4-6"),
        agent=AgentRef(name="brewer", version="1", instructions="You brew."),
        principal=PrincipalSpec(id=PRINCIPAL),
        **fields,
    )
    return open_session(actor=Actor(tenant.id, "system"), spec=spec).id
