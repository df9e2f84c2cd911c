"""Empty lists teach: each says what would be here, and shows a call that REST takes as it stands (ui 1.16)."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from ctxengine.ledger.models import ImportRow, Job, Role, Tenant
from ctxengine.service.issue_key import issue_key
from ctxengine.service.specs import Actor
from tests.factories import LiveSession, make_person, make_tenant, worked_session
from tests.inspector.conftest import client_of
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

LISTS = ("sessions/", "requests/", "agents/", "models/", "jobs/", "imports/", "personas/", "lab/")
TALK = '[{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello to you."}]'


def calls(page: str) -> list[str]:
    return [html.unescape(call) for call in re.findall(r'"Example call">(.*?)</pre>', page, re.S)]


def test_every_empty_list_shows_a_call() -> None:
    tenant = make_tenant()
    viewer = client_of(make_person(tenant, Role.VIEWER))
    for path in LISTS:
        page = viewer.get(f"/t/{tenant.slug}/{path}").content.decode()
        assert calls(page), path
        assert "Load the sample sessions" not in page, "it is no button of those who only look"


def test_the_calls_are_taken_as_they_stand() -> None:
    empty, tenant = make_tenant(), make_tenant()
    viewer = client_of(make_person(empty, Role.VIEWER))
    pages = [viewer.get(f"/t/{empty.slug}/{path}").content.decode() for path in LISTS]
    scopes = ("runtime", "operate", "read")
    key = issue_key(actor=Actor(tenant.id, "user:x"), name="k", scopes=scopes).key
    session, asked = LiveSession(tenant), LiveSession(tenant).ask("What now?")
    worked = worked_session(tenant)
    for call in sorted({call for page in pages for call in calls(page)}):
        named = call.replace("$SESSION", str(session.id)).replace("$RUN", str(asked.run))
        words = shlex.split(named.replace('"SESSION"', f'"{worked.id}"'))
        method, address = words[words.index("-X") + 1], words[words.index("-X") + 2]
        if "-d" in words:
            body, kind = words[words.index("-d") + 1], "application/json"
        else:
            assert "--data-binary" in words
            body, kind = TALK, "application/octet-stream"
        answer = Client().generic(
            method,
            address.removeprefix("http://testserver"),
            body.encode(),
            content_type=kind,
            headers={"Authorization": f"Bearer {key}"},
        )
        assert answer.status_code < 300, (call, answer.content)


def test_an_operator_loads_the_samples_from_an_empty_list() -> None:
    tenant = make_tenant()
    operator = client_of(make_person(tenant, Role.OPERATOR))
    viewer = client_of(make_person(tenant, Role.VIEWER))
    page = operator.get(f"/t/{tenant.slug}/sessions/").content.decode()
    address = re.search(r'action="([^"]+/samples/load/)"', page)
    assert address
    assert viewer.post(address[1]).status_code == 403
    assert not Job.objects.exists()
    answer = operator.post(address[1])
    assert answer.status_code == 303
    jobs = operator.get(answer["Location"]).content.decode()
    assert Job.objects.filter(tenant_id=tenant.id).count() == 5
    assert "long_session.openai_chat.json" in jobs
    assert work_off(tenant.id, kind="transcript.import", most=1)[0][1] == "done"
    assert ImportRow.objects.filter(tenant_id=tenant.id).count() == 1


def test_samples_that_are_there_or_under_way_are_not_asked_for_again(
    settings: Settings, tmp_path: Path
) -> None:
    settings.CTX_DATA_DIR = tmp_path
    tenant, other = make_tenant(), make_tenant()
    jobs = Job.objects.filter(tenant_id=tenant.id, kind="transcript.import")

    def presses(at: Tenant) -> None:
        person = client_of(make_person(at, Role.OPERATOR))
        assert person.post(f"/t/{at.slug}/samples/load/").status_code == 303

    presses(tenant)
    presses(tenant)
    uploads = tmp_path / "uploads"
    assert (jobs.count(), len(list(uploads.iterdir()))) == (5, 5)
    work_off(tenant.id, kind="transcript.import", most=1)
    presses(tenant)
    assert (jobs.count(), len(list(uploads.iterdir()))) == (5, 4)
    presses(other)
    assert Job.objects.filter(tenant_id=other.id, kind="transcript.import").count() == 5
