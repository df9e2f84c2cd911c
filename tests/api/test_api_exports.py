"""Exporting a session over REST and on the command line."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from ctxengine.ledger.models import AuditEntry, Tenant
from tests.api.door import Door, key_for

pytestmark = pytest.mark.django_db

SECRET = "sk-" + "a1b2c3d4" * 4


@pytest.fixture
def session(door: Door) -> str:
    """A finished run: two calls, one of them failed, and an answer."""
    session = door.open(persona=["Likes short answers."])
    run = door.run(session, f"Weather? My key is {SECRET}.")
    door.assemble(run)
    door.calls(run, ("w1", "weather", {"city": "Rome"}), ("w2", "weather", {"city": "Oslo"}))
    results = [
        {"call_id": "w1", "content": "22"},
        {"call_id": "w2", "content": "no such city", "is_error": True},
    ]
    door.post(f"runs/{run}/tool-results", {"results": results}).ok()
    door.assemble(run)
    door.says(run, "22 in Rome.")
    return session


def test_a_live_session_goes_out_as_chat_without_envelopes(door: Door, session: str) -> None:
    answer = door.get(f"sessions/{session}/export?format=openai_chat")
    body = answer.ok()
    assert set(body) == {"model", "messages", "tools"}
    assert answer.headers["Export-Format"] == "openai_chat"
    assert answer.headers["Export-Left-Out"] == "2"
    system, user, call, first, second, last = body["messages"]
    assert system["content"] == "Help.\n\nLikes short answers."
    assert user["role"] == "user" and "untrusted" not in answer.raw.decode()
    assert [c["id"] for c in call["tool_calls"]] == ["w1", "w2"]
    assert (first["content"], second["content"]) == ("22", "no such city")
    assert last == {"role": "assistant", "content": "22 in Rome."}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["weather"]


def test_the_report_lists_what_the_format_could_not_hold(door: Door, session: str) -> None:
    body = door.get(f"sessions/{session}/export?format=openai_chat&report=1").ok()
    assert set(body) == {"format", "left_out", "document"}
    codes = {line["code"]: line for line in body["left_out"]}
    assert set(codes) == {"error_flag", "secret"}
    assert codes["error_flag"]["items"] == 1 and codes["error_flag"]["sequences"]
    kept = door.get(f"sessions/{session}/export?format=anthropic_messages&report=1").ok()
    assert [line["code"] for line in kept["left_out"]] == ["secret"]


def test_the_format_left_out_is_that_of_the_sessions_own_api(door: Door, session: str) -> None:
    answer = door.get(f"sessions/{session}/export")
    assert answer.headers["Export-Format"] == "anthropic_messages"
    assert "system" in answer.ok()


@pytest.mark.parametrize("format", ["openai_chat", "anthropic_messages", "otel_genai"])
def test_an_export_imports_again(door: Door, session: str, format: str) -> None:
    document = door.get(f"sessions/{session}/export?format={format}").raw
    facts = door.send("POST", "imports?name=back.json", raw=document).ok()["import"]
    assert facts["format"] == format
    (back,) = facts["sessions"]
    kinds = [event["type"] for event in door.events(back)]
    assert kinds.count("tool.result.received") == 2
    again = door.get(f"sessions/{back}/export?format={format}")
    assert again.status == 200


def test_secrets_are_masked_unless_an_operator_asks_and_that_is_audited(
    door: Door, tenant: UUID, session: str
) -> None:
    path = f"sessions/{session}/export?format=openai_chat"
    assert SECRET not in door.get(path).raw.decode()
    reader = Door(key_for(tenant, "read"))
    assert reader.get(path).status == 200
    refused = reader.get(f"{path}&raw=1")
    assert (refused.status, refused.code) == (403, "scope_missing")
    assert not AuditEntry.objects.filter(action="session.exported_raw").exists()
    assert SECRET in door.get(f"{path}&raw=1").raw.decode()
    entry = AuditEntry.objects.get(tenant_id=tenant, action="session.exported_raw")
    assert (entry.target, entry.after) == (session, {"format": "openai_chat"})


def test_an_unknown_format_is_refused_by_name(door: Door, session: str) -> None:
    answer = door.get(f"sessions/{session}/export?format=word")
    assert (answer.status, answer.code) == (400, "invalid_parameter")
    assert "openai_chat" in answer.json["detail"]


def test_the_command_writes_the_document_and_says_what_is_left_out(
    tenant: UUID, session: str, tmp_path: Path
) -> None:
    slug = Tenant.objects.get(id=tenant).slug
    out, err = StringIO(), StringIO()
    target = tmp_path / "session.json"
    arguments = [session, "--tenant", slug, "--format", "openai_chat"]
    call_command("export_session", *arguments, "--output", str(target), stdout=out, stderr=err)
    assert len(json.loads(target.read_text())["messages"]) == 6
    assert "left out error_flag: 1" in err.getvalue()
    call_command("export_session", *arguments, "--json", "--raw", stdout=out)
    made = json.loads(out.getvalue())
    assert made["format"] == "openai_chat"
    assert [line["code"] for line in made["left_out"]] == ["error_flag"]
    assert SECRET in json.dumps(made["document"])


def test_the_command_names_a_session_that_is_not_there(tenant: UUID) -> None:
    slug = Tenant.objects.get(id=tenant).slug
    with pytest.raises(CommandError, match="no such session"):
        call_command("export_session", str(tenant), "--tenant", slug)
