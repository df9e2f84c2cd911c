"""The monitor's address, and refusals before any page: another host, a browser's icon."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import make_tenant, pressed_session, worked_session

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-thirty-two-characters"


def scraped(client: Client, token: str = TOKEN) -> Any:
    return client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


def test_there_is_no_such_address_without_a_token(client: Client, settings: Any) -> None:
    settings.CTX_METRICS_TOKEN = None
    assert scraped(client).status_code == 404
    assert scraped(client, "None").status_code == 404


@pytest.mark.parametrize(
    "given", ["", "Bearer wrong", TOKEN, "Bearer ", "Basic " + TOKEN, "Bearer é"]
)
def test_any_other_bearer_is_401_and_learns_nothing(
    client: Client, settings: Any, given: str
) -> None:
    settings.CTX_METRICS_TOKEN = TOKEN
    worked_session(make_tenant("secretive"))
    answer = client.get("/metrics", headers={"Authorization": given})
    assert answer.status_code == 401
    assert b"secretive" not in answer.content


def test_the_exposition_holds_every_tenants_day_and_no_content(
    client: Client, settings: Any
) -> None:
    settings.CTX_METRICS_TOKEN = TOKEN
    first, second = make_tenant("first"), make_tenant("second")
    session = worked_session(first, title="A secret title", agent="secret-agent")
    pressed_session(second)
    text = scraped(client).content.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    requests = families["ctxengine_day_requests"].samples
    built = [s.value for s in requests if s.labels["tenant"] == "first"]
    assert sum(built) == len(session.requests)
    pressure = families["ctxengine_day_pressure"].samples
    assert {s.labels["tenant"]: s.value > 0 for s in pressure} == {"first": False, "second": True}
    labels = {key for family in families.values() for s in family.samples for key in s.labels}
    assert labels <= {"tenant", "provider", "model", "engine", "status", "bucket", "depth", "class"}
    assert "secret" not in text
    assert "mara@acme" not in text


def test_an_unknown_price_gives_no_sample(client: Client, settings: Any) -> None:
    settings.CTX_METRICS_TOKEN = TOKEN
    worked_session(make_tenant("odd"), model="nobody-has-priced-this")
    text = scraped(client).content.decode()
    assert "ctxengine_day_cost_usd{" not in text
    assert 'ctxengine_day_unpriced_requests{engine="suffix",model="nobody-has-priced-this"' in text


def test_another_host_is_a_problem_under_api_and_a_page_elsewhere(client: Client) -> None:
    answer = client.get("/api/v1/sessions", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "invalid_host"
    assert "evil.example" not in answer.content.decode()
    page = client.get("/login/", headers={"Host": "evil.example"})
    assert page.status_code == 400
    assert page.headers["Content-Type"].startswith("text/html")


def test_browsers_find_an_icon_beside_raw_json(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert answer.status_code == 302
    assert answer.headers["Location"].endswith("icon.svg")
