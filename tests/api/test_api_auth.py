"""Keys open the tenant they belong to and nothing else."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from ctxengine.ledger.models import ApiKey
from tests.api.door import Door, key_for

NOBODY = UUID("5f7a3c1e-0000-4000-8000-000000000000")
READS = [
    "sessions",
    f"sessions/{NOBODY}",
    f"sessions/{NOBODY}/events",
    f"requests/{NOBODY}/replay",
]
LOOP = [
    "sessions",
    f"sessions/{NOBODY}/runs",
    f"sessions/{NOBODY}/end",
    f"runs/{NOBODY}/assemble",
    f"runs/{NOBODY}/responses",
    f"runs/{NOBODY}/tool-results",
    f"runs/{NOBODY}/input",
    f"runs/{NOBODY}/end",
]
OPERATIONS = [f"sessions/{NOBODY}/epochs", "imports"]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer nonsense",
        "Bearer \u00e9",
        "Bearer a\x7fb",
        "Bearer " + "x" * 600,
    ],
)
def test_without_a_valid_key_every_address_is_a_401(db: None, header: str) -> None:
    client = Client(raise_request_exception=False)
    for path in ("sessions", f"requests/{NOBODY}"):
        headers = {"authorization": header} if header else {}
        response = client.get(f"/api/v1/{path}", headers=headers)
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == 'Bearer realm="api"'
        assert response.json()["code"] == "unauthenticated"


def test_a_revoked_and_an_expired_key_are_told_alike(tenant: UUID) -> None:
    revoked, expired = Door(key_for(tenant)), Door(key_for(tenant))
    now = timezone.now()
    prefix = revoked.key.split("_")[1]
    ApiKey.objects.filter(prefix=prefix).update(revoked_at=now)
    ApiKey.objects.exclude(prefix=prefix).update(expires_at=now - timedelta(seconds=1))
    answers = [door.get("sessions") for door in (revoked, expired, Door("ctx_unknown"))]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.raw for answer in answers}) == 1


@pytest.mark.parametrize(
    ("scope", "allowed", "refused"),
    [
        ("read", [("GET", READS)], [("POST", LOOP), ("POST", OPERATIONS)]),
        ("runtime", [("GET", READS), ("POST", LOOP)], [("POST", OPERATIONS)]),
        ("operate", [("GET", READS), ("POST", OPERATIONS)], [("POST", LOOP)]),
    ],
)
def test_a_scope_opens_its_own_endpoints_only(
    tenant: UUID,
    scope: str,
    allowed: list[tuple[str, list[str]]],
    refused: list[tuple[str, list[str]]],
) -> None:
    door = Door(key_for(tenant, scope))
    for method, paths in allowed:
        for path in paths:
            assert door.send(method, path).status not in {401, 403}, (method, path)
    for method, paths in refused:
        for path in paths:
            answer = door.send(method, path)
            assert (answer.status, answer.code) == (403, "scope_missing"), (method, path)
            assert answer.json["held"] == [scope]


def test_a_cookie_session_of_the_console_opens_nothing(db: None, nobody: Door) -> None:
    nobody.client.cookies["sessionid"] = "anything"
    assert nobody.get("sessions").status == 401


def test_the_scheme_may_be_written_in_any_case(door: Door) -> None:
    response = Client().get("/api/v1/sessions", headers={"authorization": f"bearer {door.key}"})
    assert response.status_code == 200
