"""Pages of a long session: no larger and no more queries than those of a short one (ui 3.13, 8).

Times are compared by `python -m bench.console_pages`, which takes the same pages at 500 and at 50,000 items.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bench.console_pages import MOST_BYTES, PAGES, long_session
from tests.factories import make_person, make_tenant
from tests.inspector.conftest import client_of

pytestmark = pytest.mark.django_db

SHORT, LONG = 500, 5_000
COMPACTIONS = "sessions/{session}/compactions/"
OF_ONE_COMPACTION = 2
"""Queries that a compaction takes; the long session had to make one, the short one had not."""


def test_no_page_grows_with_its_session() -> None:
    tenant = make_tenant()
    client = client_of(make_person(tenant))
    worlds = {size: long_session(tenant.id, size) for size in (SHORT, LONG)}
    wrong = {}
    for name, path in {**PAGES, "compactions": COMPACTIONS}.items():
        queries, sizes = {}, {}
        for size, (session, request) in worlds.items():
            address = f"/t/{tenant.slug}/" + path.format(session=session, request=request)
            client.get(address)
            with CaptureQueriesContext(connection) as seen:
                answer = client.get(address)
            assert answer.status_code == 200, address
            queries[size], sizes[size] = len(seen.captured_queries), len(answer.content)
        more = OF_ONE_COMPACTION if path == COMPACTIONS else 0
        if queries[SHORT] + more != queries[LONG] or max(sizes.values()) >= MOST_BYTES:
            wrong[name] = (queries, sizes)
    assert wrong == {}


def test_a_large_body_is_shown_when_it_is_asked_for_with_and_without_javascript() -> None:
    tenant = make_tenant()
    client = client_of(make_person(tenant))
    _, request = long_session(tenant.id, 1_200)
    path = f"/t/{tenant.slug}/requests/{request}/json/"
    first = client.get(path).content.decode()
    assert 'href="?show=1">Show the body' in first
    assert 'hx-get="?show=1"' in first
    whole = client.get(path, {"show": "1"})
    text = whole.content.decode()
    assert 'id="p-model"' in text
    assert "Later parts" in text
    assert len(whole.content) < MOST_BYTES
