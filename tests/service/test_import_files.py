"""Files at the import door: once per content, nothing on a dry run, refusals with their reason."""

from __future__ import annotations

import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ctxengine.ledger.models import Event, ImportRow, SessionRow
from ctxengine.service.import_transcript import ImportOutcome, import_file
from ctxengine.service.specs import Actor
from ctxengine.service.verify import verify_chains
from tests.cast import Runtime, new_actor

pytestmark = pytest.mark.django_db

CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in it?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "one two"},
        {"role": "assistant", "content": "Two files."},
    ]
}  # fmt: skip
ITEMS = 5
"""The file's instructions are one of them."""
DATA = json.dumps(CHAT).encode()


def counts() -> tuple[int, int, int]:
    return SessionRow.objects.count(), Event.objects.count(), ImportRow.objects.count()


def taken(actor: Actor, data: bytes, **fields: Any) -> ImportOutcome:
    return import_file(actor=actor, name="given.json", data=data, **fields)


def test_the_same_content_is_imported_once_whatever_its_name() -> None:
    actor = new_actor()
    first = taken(actor, DATA)
    before = counts()
    again = import_file(actor=actor, name="copy of it.json", data=DATA)
    assert (first.status, again.status) == ("imported", "unchanged")
    assert again.session_ids == first.session_ids
    assert again.report == first.report
    assert counts() == before


def test_another_tenant_imports_the_same_content_for_itself() -> None:
    first, second = taken(new_actor(), DATA), taken(new_actor(), DATA)
    assert second.status == "imported"
    assert set(first.session_ids).isdisjoint(second.session_ids)


def test_a_dry_run_reports_and_writes_nothing() -> None:
    actor = new_actor()
    before = counts()
    told = taken(actor, DATA, dry_run=True)
    assert (told.status, told.items_in) == ("imported", ITEMS)
    assert counts() == before
    assert taken(actor, DATA).items_in == told.items_in


def test_gzip_is_unpacked() -> None:
    outcome = taken(new_actor(), gzip.compress(DATA))
    assert (outcome.status, outcome.format, outcome.items_in) == ("imported", "openai_chat", ITEMS)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"  \n\t ", "empty"),
        (gzip.compress(DATA)[:-12], "truncated"),
        (b"\x1f\x8b\x08\x00broken", "damaged|truncated"),
        (bytes(range(256)) * 8, "binary"),
        (b"\x00\x01\x02{}", "binary"),
        (b"just some words", "no transcript: it begins with"),
        (b"null", "no transcript: it begins with"),
        (DATA[: len(DATA) // 2], "JSON"),
        (b'{"hello": "world"}', ""),
        (b"[]", ""),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value or "unknown",
)
def test_anything_else_is_refused_with_its_reason_and_nothing_changes(
    data: bytes, reason: str
) -> None:
    before = counts()
    outcome = taken(new_actor(), data)
    assert outcome.status == "refused"
    assert outcome.session_ids == []
    assert any(word in outcome.reason for word in reason.split("|"))
    assert len(outcome.reason) > 10
    assert counts() == before


def test_half_an_emoji_in_the_instructions_is_no_obstacle() -> None:
    messages = [{"role": "system", "content": "Be \ud83d brief."}, *CHAT["messages"][1:]]
    outcome = taken(new_actor(), json.dumps({"messages": messages}).encode())
    assert (outcome.status, outcome.reason) == ("imported", "")


def test_an_imported_session_is_marked_verifies_and_teaches_nothing() -> None:
    (session_id,) = taken(new_actor(), DATA).session_ids
    session = SessionRow.objects.get(id=session_id)
    assert session.import_format == "openai_chat"
    assert session.requests == 2
    (report,) = verify_chains(session_id=session_id)
    assert report.problem is None


def test_continuing_an_import_live_begins_a_normal_epoch() -> None:
    actor = new_actor()
    (session_id,) = taken(actor, DATA).session_ids
    runtime = object.__new__(Runtime)
    runtime.actor, runtime.session, runtime.provider = actor, session_id, "openai"
    runtime.ask("And the third?")
    built = runtime.assemble()
    runtime.say("There is none.")
    newest = runtime.requests[-1]
    assert newest.epoch == 2
    assert not newest.reconstructed
    assert built.prefix_sha256 == newest.prefix_sha256
    (rotated,) = [e for e in runtime.events() if e.type == "context.epoch.rotated"]
    assert rotated.payload["reasons"] == ["import_continued"]
    assert "What is in it?" in built.body.decode()


def test_the_command_imports_folders_and_ends_non_zero_on_a_refusal(tmp_path: Path) -> None:
    from ctxengine.ledger.models import Tenant

    actor = new_actor()
    slug = Tenant.objects.get(id=actor.tenant_id).slug
    (tmp_path / "a.json").write_bytes(DATA)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "b.json.gz").write_bytes(gzip.compress(DATA + b" "))
    out = StringIO()
    call_command("import_transcripts", str(tmp_path), "--tenant", slug, "--json", stdout=out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["status"] for line in lines] == ["imported", "imported"]
    (tmp_path / "c.txt").write_text("no transcript")
    plain = StringIO()
    with pytest.raises(SystemExit):
        call_command("import_transcripts", str(tmp_path), "--tenant", slug, stdout=plain)
    assert "c.txt: refused." in plain.getvalue()
    assert "2 unchanged" in plain.getvalue()
