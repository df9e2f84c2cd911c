"""Persona documents: revisions, the optimistic lock, and when sessions adopt them."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import AuditEntry, PersonaRevision
from ctxengine.service.edit_persona import edit_persona, list_personas, persona_revision
from ctxengine.service.plan_specs import EditPersona, PersonaView
from ctxengine.service.specs import Actor, PrincipalSpec, ServiceError
from tests.cast import Runtime, new_actor

pytestmark = pytest.mark.django_db

MARA = PrincipalSpec(id="mara")


def save(actor: Actor, revision: int, *entries: str) -> PersonaView:
    return edit_persona(
        actor=actor, principal="mara", spec=EditPersona(revision=revision, entries=entries)
    )


def session(actor: Actor, **extra: Any) -> Runtime:
    return Runtime(actor=actor, principal=MARA, extra=extra)


def turn(runtime: Runtime) -> str:
    runtime.ask("Go")
    body = runtime.assemble().body.decode()
    runtime.say("Done.")
    return body


def test_a_document_starts_at_revision_nought_and_grows_by_one() -> None:
    actor = new_actor()
    assert persona_revision(actor=actor, principal="mara").revision == 0
    first = save(actor, 0, "Be brief.")
    assert (first.revision, first.entries, first.saved_by) == (1, ["Be brief."], "system")
    assert save(actor, 1, "Be kind.", "nul \0 here").revision == 2
    assert persona_revision(actor=actor, principal="mara", revision=1).entries == ["Be brief."]
    assert [p.revision for p in list_personas(actor=actor)] == [2]
    assert AuditEntry.objects.filter(tenant_id=actor.tenant_id, action="persona.saved").count() == 2


def test_saving_over_a_revision_that_has_moved_on_is_refused() -> None:
    actor = new_actor()
    save(actor, 0, "one")
    for stale in (0, 2):
        with pytest.raises(ServiceError) as caught:
            save(actor, stale, "two")
        assert (caught.value.code, caught.value.status) == ("persona_stale", 409)
        assert caught.value.extra["revision"] == 1
    assert PersonaRevision.objects.filter(tenant_id=actor.tenant_id).count() == 1


@pytest.mark.parametrize("entries", [("x",) * 31, ("word " * 2_500,)])
def test_a_document_over_its_caps_is_refused_naming_the_class(entries: tuple[str, ...]) -> None:
    with pytest.raises(ServiceError) as caught:
        save(new_actor(), 0, *entries)
    assert (caught.value.code, caught.value.extra["budget_class"]) == ("plan_overflow", "persona")


def test_documents_of_two_tenants_are_two_documents() -> None:
    one, two = new_actor(), new_actor()
    save(one, 0, "mine")
    assert persona_revision(actor=two, principal="mara").revision == 0


def test_a_session_pins_the_revision_it_was_opened_with() -> None:
    actor = new_actor()
    save(actor, 0, "Be brief.")
    runtime = session(actor)
    assert runtime.opened.plan.persona_revision == 1
    assert "Be brief." in turn(runtime)


def test_an_edit_reaches_no_open_run_and_rotates_the_next_one_once() -> None:
    actor = new_actor()
    runtime = session(actor)
    runtime.ask("Go")
    before = runtime.assemble()
    save(actor, 0, "Be brief.")
    runtime.look("c1", "text")
    assert runtime.assemble().wire_prefix_sha256 == before.wire_prefix_sha256
    runtime.say("Done.")
    assert "Be brief." in turn(runtime)
    turn(runtime)
    (rotated,) = runtime.events(EventType.EPOCH_ROTATED)
    assert rotated.payload["reasons"] == ["persona_changed"]
    assert rotated.payload["persona_revision"] == 1
    assert rotated.payload["recached_tokens"] > 0
    assert float(rotated.payload["price_usd"]) > 0


def test_a_revision_that_says_the_same_rotates_nothing() -> None:
    actor = new_actor()
    save(actor, 0, "Be brief.")
    runtime = session(actor)
    save(actor, 1, "Be brief.")
    turn(runtime)
    assert runtime.events(EventType.EPOCH_ROTATED) == []


def test_entries_given_with_the_session_are_its_own_and_follow_no_document() -> None:
    actor = new_actor()
    save(actor, 0, "From the document.")
    runtime = session(actor, persona=("Given.",))
    save(actor, 1, "Edited.")
    body = turn(runtime)
    assert "Given." in body
    assert "document" not in body
    assert runtime.events(EventType.EPOCH_ROTATED) == []


@pytest.mark.parametrize("entries", [(), ("", "  ")])
def test_an_empty_persona_renders_no_bytes(entries: tuple[str, ...]) -> None:
    actor = new_actor()
    plain = session(actor).opened.plan
    save(actor, 0, *entries)
    empty = session(actor).opened.plan
    assert empty.prefix_tokens == plain.prefix_tokens
    assert "Persona:" not in turn(session(actor))


def test_a_session_without_a_principal_has_no_document() -> None:
    runtime = Runtime()
    assert runtime.opened.plan.persona_revision is None
