"""A person's data, whole, theirs alone, secrets masked unless somebody answers for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ctxengine.ledger.models import AuditEntry, Tenant
from ctxengine.service.edit_persona import edit_persona
from ctxengine.service.erase import erase_person
from ctxengine.service.plan_specs import EditPersona
from ctxengine.service.specs import PrincipalSpec
from tests.cast import Call, Runtime, new_actor

pytestmark = pytest.mark.django_db
SECRET = "sk-ant-" + "api03-" + "A1b2C3d4" * 11


def told(actor: Any, principal: str, tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    slug = Tenant.objects.get(id=actor.tenant_id).slug
    file = tmp_path / "person.jsonl"
    call_command(
        "export_person", principal, "--note", "asked for", "--tenant", slug, "--output", str(file),
        *words,
    )  # fmt: skip
    return [json.loads(line) for line in file.read_text().splitlines()]


def lived(actor: Any, principal: str, said: str) -> Runtime:
    runtime = Runtime(actor=actor, principal=PrincipalSpec(id=principal))
    runtime.ask(json.dumps(said))
    runtime.assemble()
    runtime.say("on it", Call("c1", "web_fetch", '{"url": "https://example.org"}'))
    return runtime


def test_the_export_holds_what_the_person_said_and_nothing_of_others(tmp_path: Path) -> None:
    actor = new_actor()
    mine = lived(actor, "ada", f"the deadline is Friday, the key is {SECRET}")
    lived(actor, "bo", "something else entirely")
    lived(new_actor(), "ada", "of another tenant")
    records = told(actor, "ada", tmp_path)
    sessions = [record for record in records if record["record"] == "session"]
    assert [record["session"] for record in sessions] == [str(mine.session)]
    text = json.dumps(records)
    assert "the deadline is Friday" in text
    assert "something else" not in text and "another tenant" not in text
    assert SECRET not in text
    assert SECRET in json.dumps(told(actor, "ada", tmp_path, "--raw"))
    entries = AuditEntry.objects.filter(tenant_id=actor.tenant_id, action="person.exported")
    assert [entry.after["raw"] for entry in entries.order_by("at")] == [False, True]
    assert {(entry.target, entry.reason) for entry in entries} == {("ada", "asked for")}


def test_a_persona_alone_is_exported_too(tmp_path: Path) -> None:
    actor = new_actor()
    edit_persona(
        actor=actor,
        principal="ada",
        spec=EditPersona(entries=("likes tea",), revision=0, note="new"),
    )
    assert [record["entries"] for record in told(actor, "ada", tmp_path)] == [["likes tea"]]


def test_what_was_erased_is_not_exported(tmp_path: Path) -> None:
    actor = new_actor()
    lived(actor, "ada", "the deadline is Friday")
    erase_person(actor=actor, principal="ada", note="asked for")
    records = told(actor, "ada", tmp_path)
    assert [record["record"] for record in records] == ["session"]


def test_nobody_is_told_of_as_such(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Nothing is kept"):
        told(new_actor(), "nobody", tmp_path)
