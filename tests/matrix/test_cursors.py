"""Every list either goes on behind a cursor or says why it cannot grow long."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from ctxengine.ledger.models import ImportRow, PersonaRevision, Tenant
from ctxengine.service.specs import ServiceError
from inspector.windows import SHOWN, window
from tests.factories import make_person, make_tenant
from tests.matrix.test_twins import data_pages
from tests.matrix.world import a_world, client

pytestmark = pytest.mark.django_db

CURSORS = {"after", "before", "from", "below"}
BOUNDED = {
    "session-plan": "tools of one plan, whose prefix has a cap",
    "session-state": "entries of one state, each field has a cap",
    "metrics": "one row for each step of time, group or reason",
    "persona": "the newest hundred revisions",
    "providers": "models asked within a week",
    "models": "models that sessions use",
    "agents": "the newest three hundred versions",
    "policies": "the fifty most used",
    "lab-replay": "at most forty cells",
    "alerts": "at most fifty rules",
    "retention": "one row for each kind",
    "api-keys": "keys that people gave out one by one",
    "members": "people",
}
"""Lists that have no cursor, each with what bounds it."""
_HAS = re.compile(r"It has: (.*?)\.<", re.DOTALL)
_NEXT = re.compile(r'<a rel="next" href="([^"]*)"')


def test_every_list_has_a_cursor_or_a_bound() -> None:
    world = a_world()
    member = client(make_person(world.tenant))
    lists = [pattern for pattern in data_pages() if "list_twin" in str(pattern.pattern)]
    lacking, needless = [], []
    for pattern in lists:
        path = world.address(pattern).partition("?")[0]
        refused = _HAS.search(member.get(path, {"colour": "red"}).content.decode())
        goes_on = bool(refused and CURSORS & set(re.findall(r"\w+", refused[1])))
        if not goes_on and pattern.name not in BOUNDED:
            lacking.append(pattern.name)
        if goes_on and pattern.name in set(BOUNDED) - {"metrics"}:
            needless.append(pattern.name)
    assert lacking == [], "give it a cursor, or say in BOUNDED what keeps it short"
    assert needless == []
    assert len(lists) > 20


def test_windows_hold_every_row_once_in_its_order() -> None:
    rows = list(range(137))
    seen: list[int] = []
    after = ""
    while True:
        page = window(rows, after, lambda row: row)
        seen += page.rows
        after = page.after
        if not after:
            break
    assert seen == rows
    assert len(window(rows, "", str).rows) == SHOWN
    with pytest.raises(ServiceError, match="cursor"):
        window(rows, "nobody", str)


def make_imports(tenant: Tenant, many: int) -> None:
    """Files of which several came in the same moment."""
    start = datetime(2026, 5, 1, tzinfo=UTC)
    ImportRow.objects.bulk_create(
        ImportRow(
            tenant_id=tenant.id,
            sha256=f"{number:064x}",
            name=f"file-{number}",
            format="openai_chat",
            items_in=1,
            items_kept=1,
            report=[],
            created_at=start + timedelta(seconds=number // 4),
        )
        for number in range(many)
    )


def make_principals(tenant: Tenant, many: int) -> None:
    """Names that collations order in ways of their own."""
    PersonaRevision.objects.bulk_create(
        PersonaRevision(
            tenant_id=tenant.id,
            principal=f"{'aBcÄ'[number % 4]}-{number}@acme",
            revision=1,
            entries='["x"]',
            tokens=1,
            saved_by="me",
            saved_at=datetime.now(UTC),
        )
        for number in range(many)
    )


@pytest.mark.parametrize("path", ["imports/", "personas/"])
def test_walking_a_list_by_its_cursor_shows_every_row_once(path: str) -> None:
    tenant = make_tenant()
    make = make_imports if path == "imports/" else make_principals
    make(tenant, 130)
    member = client(make_person(tenant))
    rows: list[str] = []
    query = ""
    for _ in range(5):
        page = member.get(f"/t/{tenant.slug}/{path}{query}").content.decode()
        rows += re.findall(r'<td class="main"><a href="([^"]*)"', page)
        following = _NEXT.search(page)
        if following is None:
            break
        query = following[1].replace("&amp;", "&")
    assert len(rows) == len(set(rows)) == 130
    told = member.get(f"/t/{tenant.slug}/{path.rstrip('/')}.csv").getvalue().decode()
    assert len(told.splitlines()) == 131


def test_a_cursor_that_nobody_made_is_refused() -> None:
    world = a_world()
    member = client(make_person(world.tenant))
    for path in ("imports/", f"sessions/{world.session.id}/epochs/", f"sessions/{world.session.id}/compactions/"):  # fmt: skip
        assert member.get(f"/t/{world.tenant.slug}/{path}?after=nobody").status_code == 400, path
