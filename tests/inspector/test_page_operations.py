"""P14: audit, API keys, members, alerts; saved views; the site that only reads."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client

from ctxengine.ledger.models import (
    AlertChange,
    AlertRule,
    ApiKey,
    AuditEntry,
    Event,
    Job,
    JobState,
    Membership,
    Role,
    SavedView,
)
from ctxengine.providers.adapters.addresses import AddressRefused
from ctxengine.providers.webhook import NotDelivered, checked_webhook, deliver
from ctxengine.service.issue_key import authenticate_key
from ctxengine.service.rotate_epoch import rotate_epoch
from tests.factories import PASSWORD, make_person, make_tenant
from tests.inspector.conftest import Cast, client_of
from tests.work_off import work_off


@pytest.fixture
def admin(cast: Cast) -> Client:
    return client_of(make_person(cast.tenant, Role.ADMIN, "boss"))


# --- audit ------------------------------------------------------------------------------------------------------------


def test_the_audit_log_shows_reason_before_and_after(cast: Cast, admin: Client) -> None:
    make_person(cast.tenant, Role.VIEWER, "vera")
    form = {"act": "role", "name": "vera", "role": "operator", "reason": "She is on call."}
    assert admin.post(cast.url("members/"), form).status_code == 303
    page = cast.page("audit/")
    assert "person.role_changed" in page
    assert "She is on call." in page
    assert re.search(r"viewer → operator", page)
    (line,) = cast.data("audit.json", action="person.role_changed")
    assert line["changes"] == [["role", "viewer", "operator"]]
    assert "user:boss" in cast.operator.get(cast.url("audit.csv")).getvalue().decode()


def test_the_audit_log_is_filtered_and_leads_to_the_session(cast: Cast) -> None:
    rotate_epoch(
        actor=cast.session.actor, session_id=cast.session.id, reason="operator", note="For a look."
    )
    actions = {line["action"] for line in cast.data("audit.json")}
    assert "epoch.rotated" in actions
    (line,) = cast.data("audit.json", action="epoch.rotated")
    assert line["reason"] == "For a look."
    assert f"jump/?q={cast.session.id}" in cast.page("audit/", action="epoch.rotated")
    assert cast.data("audit.json", to="2020-01-01") == []
    assert cast.operator.get(cast.url("audit/"), {"after": "!"}).status_code == 400


# --- keys -------------------------------------------------------------------------------------------------------------


def test_an_admin_makes_a_key_that_is_shown_once_and_revokes_it(cast: Cast, admin: Client) -> None:
    form = {"name": "runner", "scope": ["runtime", "read"], "days": "30"}
    page = admin.post(cast.url("api-keys/"), form).content.decode()
    key = re.search(r"ctx_[0-9a-f]{8}_[\w-]{20,}", page)
    assert key is not None
    assert authenticate_key(key[0]).scopes == {"runtime", "read"}
    assert key[0] not in cast.page("api-keys/")
    row = ApiKey.objects.get(name="runner")
    form = {"act": "revoke", "key": str(row.id), "reason": "It leaked."}
    assert admin.post(cast.url("api-keys/"), form).status_code == 200
    assert "revoked" in cast.page("api-keys/")
    with pytest.raises(Exception, match="not valid"):
        authenticate_key(key[0])
    assert AuditEntry.objects.get(action="key.revoked").reason == "It leaked."


def test_a_key_needs_a_name_a_scope_and_a_life_on_offer(cast: Cast, admin: Client) -> None:
    good = {"name": "n", "scope": ["read"], "days": "90"}
    for bad in (
        {"name": ""},
        {"scope": []},
        {"scope": ["all"]},
        {"days": "9999"},
        {"name": "\x00"},
    ):
        assert admin.post(cast.url("api-keys/"), good | bad).status_code == 422, bad
    assert not ApiKey.objects.filter(tenant_id=cast.tenant.id).exists()
    assert cast.operator.post(cast.url("api-keys/"), good).status_code == 403


def test_a_foreign_key_cannot_be_revoked(cast: Cast, admin: Client) -> None:
    other = make_tenant()
    theirs = client_of(make_person(other, Role.ADMIN))
    theirs.post(f"/t/{other.slug}/api-keys/", {"name": "x", "scope": ["read"], "days": ""})
    row = ApiKey.objects.get(name="x")
    form = {"act": "revoke", "key": str(row.id), "reason": "Mine now."}
    assert admin.post(cast.url("api-keys/"), form).status_code == 404
    row.refresh_from_db()
    assert row.revoked_at is None


# --- members ----------------------------------------------------------------------------------------------------------


def test_an_admin_lets_people_in_and_out(cast: Cast, admin: Client) -> None:
    form = {"act": "add", "name": "nina", "role": "operator", "password": PASSWORD}
    assert admin.post(cast.url("members/"), form).status_code == 303
    way_in = {"username": "nina", "password": PASSWORD}
    assert Client().post("/login/", way_in)["Location"] == "/"
    assert "nina" in cast.page("members/")
    form = {"act": "remove", "name": "nina", "reason": "She left."}
    assert admin.post(cast.url("members/"), form).status_code == 303
    assert "nina" not in cast.page("members/")
    assert AuditEntry.objects.get(action="person.removed").before == {"role": "operator"}


def test_a_tenant_keeps_an_admin(cast: Cast, admin: Client) -> None:
    for form in (
        {"act": "remove", "name": "boss", "reason": "Why not."},
        {"act": "role", "name": "boss", "role": "viewer", "reason": "Why not."},
    ):
        response = admin.post(cast.url("members/"), form)
        assert response.status_code == 409
        assert "only admin" in response.content.decode()
    assert Membership.objects.get(user__username="boss").role == "admin"


def test_members_of_another_tenant_cannot_be_touched(cast: Cast, admin: Client) -> None:
    make_person(make_tenant(), Role.VIEWER, "far")
    form = {"act": "role", "name": "far", "role": "admin", "reason": "Mine."}
    assert admin.post(cast.url("members/"), form).status_code == 404
    assert Membership.objects.get(user__username="far").role == "viewer"


# --- alerts -----------------------------------------------------------------------------------------------------------


@contextmanager
def listener(status: int = 204) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    heard: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            heard.append(json.loads(self.rfile.read(length)))
            self.send_response(status)
            if status == 302:
                self.send_header("location", "http://169.254.169.254/latest/")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def failed_job(cast: Cast) -> None:
    from django.utils import timezone

    from ctxengine.service.jobs.enqueue import enqueue
    from ctxengine.service.specs import Actor

    job = enqueue(actor=Actor(cast.tenant.id, "system"), kind="upkeep.expire", arguments={})
    Job.objects.filter(id=job.id).update(state=JobState.FAILED, finished_at=timezone.now())


RULE = {
    "act": "add",
    "name": "Jobs fail",
    "measure": "failed_jobs",
    "bound": "0",
    "window": "60",
    "reason": "On call.",
}


def test_a_rule_fires_tells_and_falls_quiet(cast: Cast, settings: Any) -> None:
    with listener() as (host, heard):
        settings.CTX_WEBHOOK_HOSTS = [host]
        form = RULE | {"webhook": f"http://{host}/hook"}
        assert cast.operator.post(cast.url("alerts/"), form).status_code == 303
        assert AlertChange.objects.count() == 0
        failed_job(cast)
        cast.operator.post(cast.url("alerts/"), {"act": "look"})
        cast.operator.post(cast.url("alerts/"), {"act": "look"})
        assert AlertChange.objects.count() == 1
        assert "✕ firing" in cast.page("alerts/")
        assert "Jobs fail" in cast.page("")
        assert ("alerts.tell", "done") in work_off(cast.tenant.id, kind="alerts.tell")
        assert [(one["state"], one["value"], one["rule"]) for one in heard] == [
            ("firing", 1.0, "Jobs fail")
        ]
        Job.objects.filter(state=JobState.FAILED).update(state=JobState.DONE)
        cast.operator.post(cast.url("alerts/"), {"act": "look"})
        work_off(cast.tenant.id, kind="alerts.tell")
        assert [one["state"] for one in heard] == ["firing", "quiet"]
    assert set(AlertChange.objects.values_list("told", flat=True)) == {"delivered"}


def test_a_redirect_is_not_followed_and_the_job_tries_again(cast: Cast, settings: Any) -> None:
    with listener(302) as (host, heard):
        settings.CTX_WEBHOOK_HOSTS = [host]
        cast.operator.post(cast.url("alerts/"), RULE | {"webhook": f"http://{host}/hook"})
        failed_job(cast)
        cast.operator.post(cast.url("alerts/"), {"act": "look"})
        assert work_off(cast.tenant.id, kind="alerts.tell") == [("alerts.tell", "again")]
        assert len(heard) == 1
    assert AlertChange.objects.get().detail == "answered with 302"


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://elsewhere.example/hook",
        "http://hooks.example/hook",
        "https://user:pw@hooks.example/hook",
        "https://hooks.example/hook?to=x",
        "https://hooks.example:8443/hook",
        "file:///etc/passwd",
        "https://hooks.example.evil/hook",
        "gopher://hooks.example/",
        "https://" + "a" * 600,
    ],
)
def test_only_listed_hosts_are_told(cast: Cast, settings: Any, url: str) -> None:
    settings.CTX_WEBHOOK_HOSTS = ["hooks.example", "169.254.169.254"]
    response = cast.operator.post(cast.url("alerts/"), RULE | {"webhook": url})
    assert response.status_code == 422
    assert "cannot be told" in response.content.decode()
    assert not AlertRule.objects.exists()
    with pytest.raises((AddressRefused, NotDelivered)):
        deliver(url, {}, settings.CTX_WEBHOOK_HOSTS)


def test_a_listed_host_may_be_told_at_its_usual_port() -> None:
    hosts = ["hooks.example", "127.0.0.1:9"]
    assert checked_webhook("https://hooks.example/a/", hosts) == "https://hooks.example/a"
    with pytest.raises(NotDelivered):
        deliver("http://127.0.0.1:9/", {}, hosts)


def test_rules_are_named_switched_and_removed(cast: Cast) -> None:
    assert cast.operator.post(cast.url("alerts/"), RULE).status_code == 303
    assert cast.operator.post(cast.url("alerts/"), RULE).status_code == 409
    for bad in (
        {"bound": "x"},
        {"bound": "nan"},
        {"bound": "-1"},
        {"measure": "x"},
        {"window": "7"},
        {"name": ""},
        {"reason": ""},
    ):
        assert cast.operator.post(cast.url("alerts/"), RULE | bad).status_code == 422, bad
    rule = AlertRule.objects.get()
    form = {"act": "off", "rule": str(rule.id), "reason": "Quiet, please."}
    assert cast.viewer.post(cast.url("alerts/"), form).status_code == 403
    assert cast.operator.post(cast.url("alerts/"), form).status_code == 303
    rule.refresh_from_db()
    assert not rule.enabled
    assert cast.operator.post(cast.url("alerts/"), form | {"act": "remove"}).status_code == 303
    assert not AlertRule.objects.exists()
    acts = set(
        AuditEntry.objects.filter(action__startswith="alert.").values_list("action", flat=True)
    )
    assert acts == {"alert.added", "alert.switched", "alert.removed"}


# --- saved views and walking ------------------------------------------------------------------------------------------


def test_a_view_is_saved_opened_shared_and_removed(cast: Cast) -> None:
    form = {"page": "requests", "name": "Yields", "query": "yielded=any"}
    response = cast.viewer.post(cast.url("views/save/"), form)
    assert response["Location"] == cast.url("requests/?yielded=any")
    assert "requests/?yielded=any" in cast.viewer.get(cast.url("requests/")).content.decode()
    assert "Yields" not in cast.page("requests/")
    assert cast.viewer.post(cast.url("views/save/"), form).status_code == 409
    assert cast.viewer.post(cast.url("views/save/"), form | {"shared": "1"}).status_code == 403
    cast.operator.post(cast.url("views/save/"), form | {"shared": "1", "name": "Team"})
    assert "Team" in cast.viewer.get(cast.url("requests/")).content.decode()
    shared = SavedView.objects.get(shared=True)
    assert cast.viewer.post(cast.url(f"views/{shared.id}/remove/")).status_code == 404
    assert cast.operator.post(cast.url(f"views/{shared.id}/remove/")).status_code == 303
    own = SavedView.objects.get()
    assert cast.operator.post(cast.url(f"views/{own.id}/remove/")).status_code == 404


def test_next_and_previous_stay_inside_the_filter(cast: Cast) -> None:
    listed = [line["id"] for line in cast.data("requests.json", q="epoch:>0")]
    page = cast.page(f"requests/{listed[1]}/", **{"in": "q=epoch%3A%3E0"})
    assert re.search(rf'rel="prev" href="[^"]*{listed[0]}/\?in=q%3D', page)
    assert re.search(rf'rel="next" href="[^"]*{listed[2]}/\?in=q%3D', page)
    assert f"/requests/{listed[1]}/items/?in=q%3D" in page
    alone = cast.page(f"requests/{listed[1]}/", **{"in": "model=none-such"})
    assert 'rel="next"' not in alone
    assert "in the filtered list" in alone
    for bad in ("colour=red", "q=colour:red", "status=odd", "q=%00"):
        asked = cast.operator.get(cast.url(f"requests/{listed[1]}/"), {"in": bad})
        assert asked.status_code == 400, bad


def test_a_filtered_list_leads_into_the_walk(cast: Cast) -> None:
    assert "?in=model%3Dclaude-sonnet-4-6" in cast.page("requests/", model="claude-sonnet-4-6")
    assert "?in=" not in cast.page("requests/")


# --- settings of a session, proof after an act, and how an item stood -----------------------------------------------------


def test_a_session_s_settings_change_with_reason_before_and_after(cast: Cast) -> None:
    here = cast.url(f"sessions/{cast.session.id}/settings/")
    form = {"ttl": "1h", "compaction": "model", "summary_model": "cheapest", "reason": "Long gaps."}
    assert cast.viewer.post(here, form).status_code == 403
    assert cast.operator.post(here, form).status_code == 303
    entry = AuditEntry.objects.filter(action="session.configured").latest("at")
    assert entry.reason == "Long gaps."
    assert (entry.before["compaction"], entry.after["compaction"]) == ("deterministic", "model")
    assert cast.operator.post(here, form | {"ttl": ""}).status_code == 422
    assert cast.operator.post(here, form | {"compaction": "magic"}).status_code == 422
    cast.session.ask("Go on.").answer("Yes.")
    page = cast.operator.get(here).content.decode()
    assert re.search(r'value="model"\s+checked', page)
    assert cast.operator.post(here, form).status_code == 422


def test_earlier_requests_are_proven_after_an_act(cast: Cast) -> None:
    response = cast.viewer.post(cast.url(f"sessions/{cast.session.id}/prove/"))
    page = response.content.decode()
    assert page.count("✓ rebuilds to the same bytes") == 3


def test_an_item_tells_how_it_stood_in_requests(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/items/3.0/")
    assert "How it stood in requests" in page
    assert f"/requests/{cast.session.requests[-1]}/" in page
    last = Event.objects.filter(session_id=cast.session.id, type="model.response.completed").last()
    assert last is not None
    late = cast.page(f"sessions/{cast.session.id}/items/{last.sequence}.0/")
    assert "No request was built after it." in late


# --- read-only --------------------------------------------------------------------------------------------------------


def test_a_read_only_site_refuses_every_write_and_shows_no_button(
    cast: Cast, admin: Client, settings: Any
) -> None:
    settings.CTX_READ_ONLY = True
    page = admin.get(cast.url(f"sessions/{cast.session.id}/")).content.decode()
    assert "read-only" in page
    assert "Rotate…" not in page
    for path, form in (("alerts/", RULE), ("views/save/", {}), ("members/", {"act": "add"})):
        assert admin.post(cast.url(path), form).status_code == 403
    answer = admin.post("/api/v1/sessions", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "read_only")
    proof = admin.post(cast.url(f"requests/{cast.session.requests[0]}/prove/"))
    assert proof.status_code == 200
    assert admin.post("/logout/").status_code == 302
    assert not AlertRule.objects.exists()


# --- words ------------------------------------------------------------------------------------------------------------


def test_a_dotted_word_opens_its_meaning_without_script(cast: Cast) -> None:
    page = cast.page("sessions/")
    for target in re.findall(r'popovertarget="([\w-]+)"', page):
        assert page.count(f'id="{target}" popover') == 1, target
    glossary = cast.page("glossary/")
    assert 'id="epoch"' in glossary
    assert cast.data("glossary.json")["groups"]


def test_the_tour_leads_to_pages_that_exist(cast: Cast) -> None:
    page = cast.page("tour/")
    links = re.findall(rf'href="(/t/{cast.slug}/(?:sessions|requests)/[^"]+)"', page)
    for link in links:
        assert cast.operator.get(link.replace("&amp;", "&")).status_code == 200, link
    assert cast.page("styleguide/")
