"""Keeping times over REST: reading and changing them, and what a request and an item say once something has expired."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ctxengine.ledger.models import AuditEntry, RequestRow, SessionRow
from ctxengine.service.retention.apply import apply_retention
from ctxengine.service.specs import Actor
from tests.api.door import Door, key_for

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def times(answer: dict[str, Any]) -> dict[str, int]:
    return {item["kind"]: item["days"] for item in answer["items"]}


def test_keeping_times_are_read_and_changed_one_by_one(door: Door, tenant: UUID) -> None:
    before = door.get("retention").ok()
    assert times(before)["content"] == 0 and times(before)["jobs"] == 30
    changed = door.send("PATCH", "retention", {"content": 90, "note": "the contract"}).ok()
    assert times(changed) == times(before) | {"content": 90}
    changed = door.send("PATCH", "retention", {"jobs": 7, "note": "the contract"}).ok()
    assert times(changed) == times(before) | {"content": 90, "jobs": 7}
    acts = AuditEntry.objects.filter(tenant_id=tenant, action="retention.changed").order_by("at")
    assert [(act.before, act.after) for act in acts] == [
        ({"content": 0}, {"content": 90}),
        ({"jobs": 30}, {"jobs": 7}),
    ]
    assert all(item["goes"] and item["stays"] for item in changed["items"])


def test_a_change_that_cannot_be_is_refused_and_changes_nothing(door: Door) -> None:
    before = door.get("retention").ok()
    for body, status, code in (
        ({"content": 90}, 422, "missing_field"),
        ({"content": 90, "note": " "}, 422, "reason_required"),
        ({"manifests": 1, "content": 90, "note": "x"}, 422, "invalid_field"),
        ({"content": -1, "note": "x"}, 422, "invalid_field"),
        ({"content": 10**9, "note": "x"}, 422, "invalid_field"),
        ({"content": "90", "note": "x"}, 422, "invalid_field"),
        ({"events": 90, "note": "x"}, 400, "unknown_field"),
    ):
        answer = door.send("PATCH", "retention", body)
        assert (answer.status, answer.code) == (status, code), body
    assert door.get("retention").ok() == before


def test_only_a_key_that_operates_changes_them(tenant: UUID) -> None:
    for scopes in (("read",), ("runtime",)):
        door = Door(key_for(tenant, *scopes))
        answer = door.send("PATCH", "retention", {"content": 1, "note": "x"})
        assert (answer.status, answer.code) == (403, "scope_missing")


def test_what_has_expired_is_told_and_the_rest_is_still_served(door: Door, tenant: UUID) -> None:
    session = door.open()
    run = door.run(session, "zinnober is my word")
    door.assemble(run)
    door.says(run, "Noted: zinnober.")
    (request,) = door.get(f"sessions/{session}/requests").ok()["items"]
    SessionRow.objects.filter(id=session).update(active_at=LONG_AGO)
    RequestRow.objects.filter(id=request["id"]).update(created_at=LONG_AGO)
    door.send("PATCH", "retention", {"content": 30, "manifests": 30, "note": "x"}).ok()
    due = {item["kind"]: item["due"] for item in door.get("retention").ok()["items"]}
    assert (due["content"], due["manifests"]) == (1, 1)
    apply_retention(actor=Actor(tenant, "system"))
    whole = door.get(f"requests/{request['id']}").ok()
    assert whole["manifest"]["spans"] == [] and whole["manifest"]["expired_at"]
    assert whole["manifest"]["rows"] and whole["budget"]
    replay = door.get(f"requests/{request['id']}/replay").ok()
    assert replay["recorded_sha256"] == replay["rebuilt_sha256"]
    events = door.get(f"sessions/{session}/events?bodies=1")
    assert b"zinnober" not in events.raw
    assert events.ok()["items"][-1]["type"] == "content.expired"
    assert door.get(f"requests/{request['id']}/body").status == 410
