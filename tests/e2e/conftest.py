"""The browser tests' desk: a signed-in person, what there is to look at, and every page of it by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from ctxengine.ledger.models import Role
from tests.e2e.desk import Desk
from tests.e2e.world import furnish
from tests.factories import (
    PASSWORD,
    LiveSession,
    make_person,
    make_tenant,
    pressed_session,
    worked_session,
)
from tests.inspector.sessions import kept_session, opened_with


@pytest.fixture
def desk(live_server: Any, browser: Browser) -> Iterator[Desk]:
    """An operator at a tenant with three sessions, and a child of a fourth."""
    tenant = make_tenant("acme")
    make_person(tenant, Role.OPERATOR, "mara")
    worked, pressed = worked_session(tenant), pressed_session(tenant)
    parent = LiveSession(tenant, title="Hand the depots on").ask("Hand it on.")
    child = opened_with(tenant, occasion="child", parent_run=parent.run)
    desk = Desk(live_server.url, tenant, worked, pressed, kept_session(tenant), browser, child)
    context = browser.new_context()
    page = context.new_page()
    desk.watch(page)
    page.goto(live_server.url + "/")
    page.get_by_label("Name").fill("mara")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/t/acme/")
    desk.state = context.storage_state()
    context.close()
    yield desk
    for context in desk.contexts:
        context.close()
    assert desk.complaints == []


@pytest.fixture
def whole_desk(desk: Desk, settings: Any) -> Desk:
    """The same with one of everything that has a page: jobs, imports, profiles, replays, checkpoints, alerts, views."""
    furnish(desk, settings)
    return desk
