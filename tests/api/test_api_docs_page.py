"""The documentation page in a real browser, under the site's own Content-Security-Policy."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def test_the_page_shows_every_operation_and_asks_no_other_origin(
    live_server: LiveServer, page: Page
) -> None:
    faults: list[str] = []
    asked: list[str] = []
    page.on(
        "console", lambda message: faults.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{live_server.url}/api/docs/")
    expect(page.locator(".opblock-summary-path").first).to_be_visible()
    assert page.locator(".opblock").count() >= 23
    page.locator(".opblock-summary-control").first.click()
    expect(page.locator(".opblock-body").first).to_be_visible()
    assert all(url.startswith((live_server.url, "data:", "blob:")) for url in asked), asked
    assert faults == []
