"""The browser tests' desk: a signed-in person, what there is to look at, and every page of it by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.db import connections
from django.http import HttpRequest, HttpResponseBase
from django.test import Client
from playwright.sync_api import Browser, Playwright

from ctxengine.ledger.models import Role, Tenant
from tests.e2e.desk import Desk
from tests.e2e.world import furnished
from tests.factories import (
    LiveSession,
    make_person,
    make_tenant,
    pressed_session,
    worked_session,
)
from tests.inspector.sessions import kept_session, opened_with
from tests.made_once import made_once


@pytest.fixture(scope="session", autouse=True)
def _browsers_keep_static_files() -> Iterator[None]:
    """As they do of the product, where a file's name changes with its content; a page has some twenty."""
    patch = pytest.MonkeyPatch()
    serve = StaticFilesHandler.serve

    def kept(self: StaticFilesHandler, request: HttpRequest) -> HttpResponseBase:
        answer = serve(self, request)
        answer["Cache-Control"] = "max-age=3600"
        return answer

    patch.setattr(StaticFilesHandler, "serve", kept)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _connections_end_with_the_browser(playwright: Playwright) -> Iterator[None]:
    """While Playwright's event loop runs, this thread has other connections than before and after: nobody else closes them."""
    yield
    connections.close_all()


@pytest.fixture
def desk(live_server: Any, browser: Browser) -> Iterator[Desk]:
    """An operator at a tenant with three sessions, and a child of a fourth."""
    tenant, worked, pressed, kept, child = made_once("desk", _tenant_with_sessions)
    desk = Desk(live_server.url, tenant, worked, pressed, kept, browser, child)
    desk.state = {"cookies": [signed_in("mara")], "origins": []}
    yield desk
    for context in desk.contexts:
        context.close()
    assert desk.complaints == []


def signed_in(name: str) -> dict[str, Any]:
    """The cookie of a person who has signed in; how they do that, tests/e2e/test_console_in_a_browser.py sees."""
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    return {
        "name": settings.SESSION_COOKIE_NAME,
        "value": value,
        "domain": "localhost",
        "path": "/",
    }


def _tenant_with_sessions() -> tuple[Tenant, LiveSession, LiveSession, LiveSession, UUID]:
    tenant = make_tenant("acme")
    make_person(tenant, Role.OPERATOR, "mara")
    worked, pressed = worked_session(tenant), pressed_session(tenant)
    parent = LiveSession(tenant, title="Hand the depots on").ask("Hand it on.")
    child = opened_with(tenant, occasion="child", parent_run=parent.run)
    return tenant, worked, pressed, kept_session(tenant), child


@pytest.fixture
def whole_desk(desk: Desk, settings: Any) -> Desk:
    """The same with one of everything that has a page: jobs, imports, profiles, replays, checkpoints, alerts, views."""
    desk.more = made_once(f"whole desk {desk.tenant.id}", lambda: furnished(desk, settings))
    return desk
