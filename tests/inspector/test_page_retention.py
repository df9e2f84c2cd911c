"""Retention in the console: what is kept, what is over its time, and who may change it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from ctxengine.ledger.models import Job, RequestRow, RetentionRule, Role, SessionRow
from ctxengine.service.retention.apply import apply_retention
from tests.factories import make_person
from tests.inspector.conftest import Cast, client_of

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def admin(cast: Cast) -> Client:
    return client_of(make_person(cast.tenant, Role.ADMIN, "boss"))


def test_an_admin_changes_a_time_and_applies_it(cast: Cast, admin: Client) -> None:
    SessionRow.objects.filter(id=cast.session.id).update(active_at=LONG_AGO)
    assert "Take it away" not in admin.get(cast.url("retention/")).content.decode()
    form = {"act": "change", "kind": "content", "days": "90", "reason": "The contract says so."}
    answer = admin.post(cast.url("retention/"), form)
    assert answer.status_code == 303
    page = admin.get(answer.headers["Location"]).content.decode()
    assert "The keeping time is changed" in page
    assert "1 sessions of" in page and "Take it away" in page
    assert admin.post(cast.url("retention/"), {"act": "apply"}).status_code == 303
    assert Job.objects.filter(tenant_id=cast.tenant.id, kind="upkeep.retain").exists()
    (line,) = [line for line in cast.data("retention.json") if line["kind"] == "content"]
    assert (line["days"], line["due"]) == (90, 1)
    (act,) = cast.data("audit.json", action="retention.changed")
    assert act["changes"] == [["content", 0, 90]]


@pytest.mark.parametrize(
    ("typed", "kind"),
    [("", "content"), ("-1", "content"), ("9999999", "content"), ("1.5", "content"), ("3", "manifests"),
     ("٣", "content"), ("1", "events")],
)  # fmt: skip
def test_a_time_that_cannot_be_is_said_on_the_page(
    cast: Cast, admin: Client, typed: str, kind: str
) -> None:
    form = {"act": "change", "kind": kind, "days": typed, "reason": "x"}
    answer = admin.post(cast.url("retention/"), form)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()
    assert not RetentionRule.objects.exists()


def test_who_is_no_admin_reads_and_may_not_change(cast: Cast) -> None:
    assert "needs the role admin" in cast.page("retention/")
    form = {"act": "change", "kind": "content", "days": "1", "reason": "x"}
    assert cast.operator.post(cast.url("retention/"), form).status_code == 403


def test_pages_of_what_has_expired_say_so_and_stand(cast: Cast) -> None:
    actor = cast.session.actor
    SessionRow.objects.filter(id=cast.session.id).update(active_at=LONG_AGO)
    RequestRow.objects.filter(session_id=cast.session.id).update(created_at=LONG_AGO)
    for kind in ("content", "manifests"):
        RetentionRule.objects.create(
            tenant_id=cast.tenant.id, kind=kind, days=30, set_by="user:boss", set_at=LONG_AGO
        )
    gone = apply_retention(actor=actor)
    assert gone["content"] == 1 and gone["manifests"] >= 1
    thin = RequestRow.objects.filter(session_id=cast.session.id, manifest__has_key="expired_at")
    request = thin.order_by("number")[0]
    page = cast.page(f"requests/{request.id}/items/")
    assert "has passed its keeping time" in page
    here = f"sessions/{cast.session.id}/"
    for path in (
        f"requests/{request.id}/", f"requests/{request.id}/json/", f"requests/{request.id}/change/",
        f"requests/{request.id}/take-away/", here, f"{here}events/", f"{here}turns/", f"{here}plan/",
        f"{here}epochs/", f"{here}state/", f"{here}compactions/", "sessions/", "metrics/", "search/?q=file",
    ):  # fmt: skip
        cast.page(path)
