"""Hostile content on every page: inert on the page, lossless in raw.

The pages come from the URL table itself: one that is filled in with nothing here fails, so that no page is forgotten.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from ctxengine.ledger.models import Event, ItemRow, SessionRow, Tenant
from tests.factories import LiveSession, make_person, make_tenant, tool
from tests.inspector.sessions import PRINCIPAL
from tests.matrix.hostile import HOSTILE, LINE, MARKUP, NAME, RESULT, HostileWorld, audit, visits
from tests.matrix.world import POSTS

pytestmark = pytest.mark.django_db

DOWNLOADS = {
    "event-raw",
    "request-raw",
    "request-curl",
    "lab-step-raw",
    "request-ticket",
    "request-markdown",
}
"""Files: kept by the browser, never shown by it."""
NOTHING_TO_SAY = {302, 204}
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
TICKET_OWN = {"style"}
"""What a file that loads nothing brings along itself."""


def text_of(answer: HttpResponse) -> str:
    """The body of an answer, streamed or not."""
    return answer.getvalue().decode("utf-8", "surrogatepass")


def problems_of(name: str, answer: HttpResponse) -> list[str]:
    """What is wrong with one answer."""
    if name in POSTS:
        return [] if answer.status_code == 405 else [f"status {answer.status_code}"]
    if answer.status_code in NOTHING_TO_SAY:
        return [] if "xss" not in answer.get("Location", "") else ["content leads elsewhere"]
    if answer.status_code != 200:
        return [f"status {answer.status_code}"]
    if name in DOWNLOADS:
        found = [] if answer["Content-Disposition"].startswith("attachment") else ["shown"]
        found += [] if answer["X-Content-Type-Options"] == "nosniff" else ["sniffed"]
        told = audit(text_of(answer)) if name == "request-ticket" else []
        return found + [problem for problem in told if problem not in TICKET_OWN]
    if name.endswith("-twin") and name != "overview-twin":
        return twin_problems("json", answer)
    if not answer["Content-Type"].startswith("text/html"):
        return [f"type {answer['Content-Type']}"]
    # A megabyte is loaded when it is asked for.
    page = text_of(answer)
    return audit(page) + (["a megabyte at once"] if LINE in page else [])


def twin_problems(kind: str, answer: HttpResponse) -> list[str]:
    """What is wrong with a JSON or CSV twin."""
    text = text_of(answer)
    if kind == "json":
        json.loads(text)
        return [] if answer["Content-Type"] == "application/json" else [answer["Content-Type"]]
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    return [cell for cell in cells if cell.startswith(FORMULAS) and not cell[1:].isdigit()]


def test_hostile_content_is_inert_on_every_page() -> None:
    world = HostileWorld()
    wrong: dict[str, Any] = {}
    seen = ""
    for visit in visits(world):
        answer = world.client.get(visit.address)
        if found := problems_of(visit.name, answer):
            wrong[visit.address] = (visit.name, found)
        if answer.status_code == 200 and "html" in answer["Content-Type"]:
            seen += text_of(answer)
        path, _, query = visit.address.partition("?")
        for kind in visit.twins:
            twin = world.client.get(f"{path.removesuffix('/')}.{kind}?{query}")
            if found := twin_problems(kind, twin):
                wrong[f"{path}.{kind}"] = (visit.name, found)
    assert wrong == {}
    assert "&lt;xss xss=1&gt;" in seen, "nothing hostile was shown at all"
    assert "=HYPERLINK" in seen
    inert_where_it_is_typed(world)
    lossless_in_raw(world)


def inert_where_it_is_typed(world: HostileWorld) -> None:
    """What a link or a form carries comes back as text."""
    here, session = f"/t/{world.tenant.slug}", f"sessions/{world.session.id}"
    asked = [
        (page, {"q": HOSTILE})
        for page in ("sessions/", "requests/", "search/", "jump/", "personas/", "audit/", "jobs/")
    ]
    asked += [
        ("search/", {"q": "alert"}),
        ("sessions/", {"agent": NAME, "model": NAME}),
        ("metrics/", {"model": NAME, "agent": NAME}),
        (f"{session}/turns/", {"for": HOSTILE}),
        (f"{session}/turns/seen-by/", {"model": NAME, "for": HOSTILE}),
        (f"{session}/evidence/{world.evidence}/", {"lines": "1-2"}),
        (f"{session}/epochs/rotate/", {"why": "tool_removed_for_security", "tool": NAME}),
        (f"{session}/plan/tool/", {"tool": NAME}),
        (f"personas/of/{PRINCIPAL}/", {"before": "1", "after": "2"}),
        ("agents/", {"name": NAME, "version": "12"}),
        ("lab/", {"session": str(world.session.id), "models": NAME}),
        ("lab/", {"session": NAME}),
    ]
    wrong = {}
    for path, query in asked:
        answer = world.client.get(f"{here}/{path}?{urlencode(query)}")
        assert answer.status_code in {200, 302, 400, 404}, (path, query, answer.status_code)
        if found := audit(text_of(answer)):
            wrong[path, *query] = found
    persona = {"revision": "1", "entry": [HOSTILE, MARKUP], "reason": HOSTILE}
    preview = reverse("inspector:persona-preview", args=[world.tenant.slug, PRINCIPAL])
    forms: list[tuple[str, dict[str, Any]]] = [
        (f"{here}/personas/of/{PRINCIPAL}/", persona | {"preview": "1"}),
        (f"{here}/personas/of/{PRINCIPAL}/", persona),
        (preview, persona),
        (f"{here}/alerts/", {"act": "add", "name": HOSTILE, "measure": HOSTILE, "bound": "x"}),
        (f"{here}/members/", {"act": "add", "name": HOSTILE, "role": HOSTILE, "password": NAME}),
        (f"{here}/{session}/settings/", {"ttl": NAME, "compaction": NAME, "summary_model": NAME}),
        (f"{here}/lab/", {"session": HOSTILE, "engine": NAME, "models": NAME, "reason": HOSTILE}),
        (f"{here}/models/probe/{world.model}/", {"most": NAME, "reason": HOSTILE}),
        ("/login/", {"username": HOSTILE, "password": HOSTILE}),
    ]
    for path, form in forms:
        answer = (Client() if path == "/login/" else world.client).post(path, form)
        assert answer.status_code in {200, 303, 400, 409, 422}, (path, answer.status_code)
        if found := audit(text_of(answer)):
            wrong[path, *form] = found
    assert wrong == {}


def lossless_in_raw(world: HostileWorld) -> None:
    """What was said stands in its raw download to the last character, and in the request the model was sent."""
    here = f"/t/{world.tenant.slug}"
    events = Event.objects.filter(session_id=world.session.id, body_id__isnull=False)
    raws = {
        text_of(world.client.get(f"{here}/sessions/{world.session.id}/events/{event.sequence}/raw"))
        for event in events
    }
    assert {HOSTILE, RESULT} <= raws
    body = text_of(world.client.get(f"{here}/requests/{world.session.requests[0]}/raw"))
    assert MARKUP[:200] in "".join(strings_of(json.loads(body)))


def strings_of(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from strings_of(entry)


def hostile_session(tenant: Tenant) -> LiveSession:
    """One with a long result, and little else."""
    session = LiveSession(tenant, title=HOSTILE, tools=(tool("web.fetch", HOSTILE),))
    session.ask(HOSTILE)
    (call,) = session.call(("web.fetch", {"url": "javascript:alert(1)", "x": HOSTILE}))
    session.result(call, HOSTILE + "\x00\n" + "A" * 70_000)
    return session.answer(HOSTILE)


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
