"""Hostile content on every page: inert on the page, lossless in raw."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from ctxengine.ledger.models import Event, ItemRow, SessionRow, Tenant
from ctxengine.service.working_state import working_state_view
from tests.factories import LiveSession, make_person, make_tenant, tool
from tests.inspector.sessions import PRINCIPAL, compaction_of, kept_session, note

pytestmark = pytest.mark.django_db

MARKUP = (
    "</pre></td></script><script>alert(1)</script><img src=x onerror=alert(1)>"
    '<svg onload=alert(1)><a href="javascript:alert(1)">x</a>'
    "' onmouseover='alert(1) {{ 7|add:7 }} {% now 'Y' %} </untrusted:00> &lt;b&gt;"
)
STEERING = "abc\u202edef\u2066ghi\u200b\ufeff\x1b[31m\U000e0041"
HOSTILE = MARKUP + STEERING

ALLOWED_SCRIPTS = {
    "/static/js/theme.js",
    "/static/js/keys.js",
    "/static/js/live.js",
    "/static/js/focus.js",
    "/static/js/refusals.js",
    "/static/django_htmx/htmx-2.min.js",
}


class Audit(HTMLParser):
    """Everything in a page that could act."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "script" and found.get("src") not in ALLOWED_SCRIPTS:
            self.problems.append(f"script {found}")
        if tag in {"img", "iframe", "object", "embed", "base", "style"}:
            self.problems.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style" or name.startswith("hx-on"):
                self.problems.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action", "hx-get", "hx-post"} and not _ours(value or ""):
                self.problems.append(f"{tag} {name}={value}")


def _ours(address: str) -> bool:
    return address.startswith(("/", "?", "#")) and not address.startswith("//")


def audit(page: str) -> list[str]:
    reader = Audit()
    reader.feed(page)
    steering = [
        f"U+{ord(c):04X}"
        for c in set(re.findall("[\u202e\u2066\u200b\ufeff\x1b\x00\U000e0041]", page))
    ]
    return reader.problems + steering + (["template ran"] if "14" in _near(page) else [])


def _near(page: str) -> str:
    """What stands where `{{ 7|add:7 }}` would have been computed."""
    found = re.search(r"alert\(1\) (.{0,12})", html.unescape(page))
    return found[1] if found else ""


def hostile_session(tenant: Tenant) -> LiveSession:
    session = LiveSession(
        tenant,
        title=HOSTILE,
        agent="agent" + MARKUP[:60],
        instructions=HOSTILE,
        persona=(HOSTILE,),
        tools=(tool("web.fetch", HOSTILE), tool("x" + MARKUP[:40])),
    )
    session.ask(HOSTILE)
    (call,) = session.call(("web.fetch", {"url": "javascript:alert(1)", "x": HOSTILE}))
    session.result(call, HOSTILE + "\x00\n" + "A" * 70_000)
    session.answer(HOSTILE)
    return session.ask("ok").answer("fine")


def test_hostile_content_is_inert_on_every_page() -> None:
    tenant = make_tenant(name=MARKUP)
    session = hostile_session(tenant)
    client = Client()
    client.force_login(make_person(tenant))
    sequences = Event.objects.filter(session_id=session.id, body_id__isnull=False)
    items = ItemRow.objects.filter(session_id=session.id)
    paths = [
        "",
        "sessions/",
        "requests/",
        "imports/",
        "keys/",
        *(f"{tab}/?{urlencode({'q': HOSTILE})}" for tab in ("sessions", "requests")),
    ]
    paths += [
        "alerts/",
        "audit/",
        "members/",
        "retention/",
        "api-keys/",
        f"lab/?session={session.id}",
    ]
    paths += [f"search/?{urlencode({'q': words})}" for words in ("alert", HOSTILE)]
    paths += [f"sessions/{session.id}/{tab}" for tab in ("", "events/", "plan/")]
    paths += [f"sessions/{session.id}/{tab}/" for tab in ("turns", "checkpoints", "settings")]
    paths += [f"sessions/{session.id}/turns/?{urlencode({'for': HOSTILE})}"]
    paths += [f"sessions/{session.id}/events/{event.sequence}/" for event in sequences]
    for item in items:
        name = f"{item.sequence}.{item.ordinal}"
        paths += [f"sessions/{session.id}/{kind}/{name}/" for kind in ("items", "f/item")]
        if item.kind == "tool_result":
            paths += [
                f"sessions/{session.id}/evidence/{name}/{part}" for part in ("", "?lines=1-2")
            ]
    for request in session.requests:
        tabs = (
            "",
            "items/",
            "json/",
            "change/",
            "events/",
            "take-away/",
            "f/part/?part=messages.0",
        )
        paths += [f"requests/{request}/{tab}" for tab in tabs]
    for path in paths:
        response = client.get(f"/t/{tenant.slug}/{path}")
        assert response.status_code in {200, 400}, path
        assert audit(response.content.decode()) == [], path


def test_hostile_content_is_inert_on_the_pages_of_acts() -> None:
    """Texts of users, models, tools and operators on plans, state, compactions, personas and previews."""
    tenant = make_tenant(name=MARKUP)
    session = kept_session(
        tenant,
        say=HOSTILE,
        title=HOSTILE,
        agent="agent" + MARKUP[:60],
        instructions=HOSTILE,
        tools=(tool("shell.run", HOSTILE), tool("web.fetch"), tool("x" + MARKUP[:40])),
    )
    note(
        session.ask("Note it."),
        objective=HOSTILE,
        add_constraints=[HOSTILE],
        upsert_tasks=[{"title": HOSTILE}],
        next_action=HOSTILE,
    )
    client = Client()
    client.force_login(make_person(tenant))
    here = f"/t/{tenant.slug}/sessions/{session.id}"
    act = {"epoch": "2", "why": "operator", "reason": HOSTILE}
    assert client.post(f"{here}/epochs/rotate/", act).status_code == 303
    mark = {"target": "3", "form": "pinned", "reason": HOSTILE}
    assert client.post(f"{here}/compactions/mark/", mark).status_code == 303
    form = {"revision": "1", "entry": [HOSTILE, MARKUP], "reason": HOSTILE}
    persona = reverse("inspector:persona", args=[tenant.slug, PRINCIPAL, "html"])
    assert client.post(persona, form).status_code == 303
    constraints = working_state_view(actor=session.actor, session_id=session.id).state.constraints
    removed = urlencode({"why": "tool_removed_for_security", "tool": "x" + MARKUP[:40]})
    paths = [f"{here}/{tab}/" for tab in ("plan", "state", "epochs", "compactions")]
    paths += [
        f"{here}/epochs/diff/",
        f"{here}/epochs/rotate/?{removed}",
        f"{here}/plan/tool/?{urlencode({'tool': 'x' + MARKUP[:40]})}",
        f"{here}/state/lift/?id={constraints[-1].id}",
        f"{here}/compactions/new/",
        f"{here}/compactions/{compaction_of(session)}/undo/",
        f"{here}/compactions/mark/?target=3",
        f"{persona}?before=1&after=2",
        f"/t/{tenant.slug}/personas/",
        f"/t/{tenant.slug}/agents/?{urlencode({'name': 'agent' + MARKUP[:60], 'version': '12'})}",
    ]
    for path in paths:
        response = client.get(path)
        assert response.status_code == 200, path
        assert audit(response.content.decode()) == [], path
    for path, data in ((persona, form | {"preview": "1"}), (persona, form)):
        assert audit(client.post(path, data).content.decode()) == [], path


def test_content_is_lossless_in_raw() -> None:
    tenant = make_tenant()
    session = hostile_session(tenant)
    client = Client()
    client.force_login(make_person(tenant))
    seed = Event.objects.get(
        session_id=session.id, type="user.message.created", payload__run_number=1
    )
    raw = client.get(f"/t/{tenant.slug}/sessions/{session.id}/events/{seed.sequence}/raw")
    assert raw.content.decode() == HOSTILE
    result = Event.objects.get(session_id=session.id, type="tool.result.received")
    raw = client.get(f"/t/{tenant.slug}/sessions/{session.id}/events/{result.sequence}/raw")
    assert raw.content.decode() == HOSTILE + "\x00\n" + "A" * 70_000


def test_a_long_text_says_how_much_is_not_shown() -> None:
    tenant = make_tenant()
    session = hostile_session(tenant)
    client = Client()
    client.force_login(make_person(tenant))
    item = ItemRow.objects.get(session_id=session.id, kind="tool_result")
    address = f"/t/{tenant.slug}/sessions/{session.id}/items/{item.sequence}.{item.ordinal}/"
    page = client.get(address).content.decode()
    assert "characters are not shown here" in page
    assert page.count("A" * 60_000) == 0
    whole = client.get(address + "?whole=1").content.decode()
    assert "A" * 70_000 in whole
    assert "delimiter look-alike" in page


def test_nobody_s_title_reaches_a_header() -> None:
    tenant = make_tenant()
    session = hostile_session(tenant)
    SessionRow.objects.filter(id=session.id).update(title="x\r\nSet-Cookie: a=b")
    client = Client()
    client.force_login(make_person(tenant))
    response = client.get(f"/t/{tenant.slug}/requests/{session.requests[0]}/raw")
    assert "Set-Cookie: a=b" not in str(response.headers)
