"""Transcripts come in over REST, once, with their repair report."""

from __future__ import annotations

import gzip
import json
from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from ctxengine.ledger.models import SessionRow
from tests.api.door import Answer, Door

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "List the ports."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ports", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "22 80"},
    {"role": "assistant", "content": "22 and 80."},
]
FILE = json.dumps(CHAT).encode()


def upload(door: Door, *files: tuple[str, str, bytes], query: str = "", **fields: str) -> Answer:
    data: dict[str, Any] = {name: SimpleUploadedFile(file, body) for name, file, body in files}
    response = Client().post(
        f"/api/v1/imports{query}",
        {**data, **fields},
        headers={"authorization": f"Bearer {door.key}"},
    )
    return Answer(response.status_code, response.content, dict(response.headers))


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/octet-stream", "application/x-www-form-urlencoded", ""],
)
def test_a_raw_body_becomes_a_session_that_proves(door: Door, content_type: str) -> None:
    answer = door.send("POST", "imports?name=ports.json", raw=FILE, content_type=content_type)
    assert answer.status == 201
    assert answer.json["outcome"] == "imported"
    facts = answer.json["import"]
    assert (facts["name"], facts["format"]) == ("ports.json", "openai_chat")
    assert facts["items_in"] == facts["items_kept"] + facts["items_set_aside"]
    (session,) = facts["sessions"]
    requests = door.get(f"sessions/{session}/requests").ok()["items"]
    assert requests
    assert all(line["reconstructed"] and door.replays(line["id"]) for line in requests)
    assert door.get(f"imports/{facts['sha256']}").ok() == facts
    imported = door.get("sessions?format=any").ok()["items"]
    assert [line["id"] for line in imported] == [session]


def test_the_same_content_again_changes_nothing(door: Door, tenant: UUID) -> None:
    first = door.send("POST", "imports?name=a.json", raw=FILE)
    again = door.send("POST", "imports?name=b.json", raw=FILE)
    assert (first.status, again.status) == (201, 200)
    assert again.json == {"outcome": "unchanged", "import": first.json["import"]}
    assert SessionRow.objects.filter(tenant_id=tenant).count() == 1


def test_a_multipart_file_brings_its_name(door: Door) -> None:
    answer = upload(door, ("file", "talk.json", FILE))
    assert answer.status == 201
    assert answer.json["import"]["name"] == "talk.json"


def test_the_name_in_the_query_outranks_the_part(door: Door) -> None:
    answer = upload(door, ("file", "talk.json", FILE), query="?name=other.json")
    assert answer.json["import"]["name"] == "other.json"


def test_a_packed_file_is_unpacked(door: Door) -> None:
    answer = door.send("POST", "imports", raw=gzip.compress(FILE), content_type="application/gzip")
    assert answer.status == 201
    assert answer.json["import"]["name"] == "transcript"


def test_a_multipart_body_holds_one_file_and_nothing_else(door: Door) -> None:
    one = ("file", "a.json", FILE)
    for answer in (
        upload(door),
        upload(door, ("upload", "a.json", FILE)),
        upload(door, one, ("more", "b.json", FILE)),
        upload(door, one, extra="x"),
    ):
        assert (answer.status, answer.code) == (422, "missing_field")


def test_a_broken_multipart_body_is_no_failure_of_the_server(door: Door) -> None:
    for kind, raw in (
        ("multipart/form-data", FILE),
        ("multipart/form-data; boundary=", FILE),
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        ("multipart/form-data; boundary=\u00e9", b"--x"),
    ):
        answer = door.send("POST", "imports", raw=raw, content_type=kind)
        assert answer.status in {400, 422}, kind
        assert answer.code in {"unreadable_body", "missing_field"}


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b"plain words",
        b"\x00\x01\xff",
        b"[" * 5000,
        b"\x1f\x8b\x08nothing",
        b'{"a":1}\n{"b":2}\n',
    ],
)
def test_what_is_no_transcript_is_refused_with_the_reason(door: Door, raw: bytes) -> None:
    answer = door.send("POST", "imports?name=x", raw=raw)
    assert (answer.status, answer.code) == (422, "import_refused")
    assert len(answer.json["detail"]) > 10
    assert door.get("sessions").ok()["items"] == []


def test_an_empty_body_is_refused(door: Door) -> None:
    assert door.send("POST", "imports", raw=b"").code == "missing_field"


def test_a_repeat_under_one_key_is_answered_alike_whatever_the_boundary(door: Door) -> None:
    def send(body: bytes) -> Answer:
        response = Client().post(
            "/api/v1/imports",
            {"file": SimpleUploadedFile("a.json", body)},
            headers={"authorization": f"Bearer {door.key}", "idempotency-key": "k"},
        )
        return Answer(response.status_code, response.content, dict(response.headers))

    first, again, other = send(FILE), send(FILE), send(b"[]")
    assert (again.status, again.raw) == (first.status, first.raw) == (201, first.raw)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert other.code == "idempotency_mismatch"


def test_another_tenant_does_not_see_an_import(door: Door, stranger: Door) -> None:
    sha256 = door.send("POST", "imports", raw=FILE).ok()["import"]["sha256"]
    assert stranger.get(f"imports/{sha256}").code == "not_found"
    assert stranger.send("POST", "imports", raw=FILE).status == 201


def test_an_imported_session_goes_on_over_rest(door: Door) -> None:
    (session,) = door.send("POST", "imports", raw=FILE).ok()["import"]["sessions"]
    answer = door.post(f"sessions/{session}/runs", {"message": "And now?"})
    assert answer.status == 201
    built = door.post(f"runs/{answer.json['id']}/assemble")
    assert built.status == 200
    assert door.replays(built.json["request_id"])
