"""Three states of a cache figure, everywhere a figure stands: some, nought, and not reported (ui 3.3)."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from ctxengine.ledger.models import Tenant
from tests.api.door import Door, key_for
from tests.factories import LiveSession, make_person, make_tenant
from tests.matrix.world import client

pytestmark = pytest.mark.django_db

SILENT = {"input_tokens": 900, "output_tokens": 5}
NOUGHT = SILENT | {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
SOME = {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 0}  # fmt: skip


def sessions(tenant: Tenant) -> tuple[LiveSession, LiveSession]:
    """One whose provider says nothing of its cache, and one whose provider first read nothing and then something."""
    silent, telling = LiveSession(tenant, title="Silent"), LiveSession(tenant, title="Telling")
    for usage in (SILENT, SILENT):
        silent.ask("And now?").answer("Nothing.", usage)
    for usage in (NOUGHT, SOME):
        telling.ask("And now?").answer("Nothing.", usage)
    return silent, telling


class Reader:
    """A member's view of the tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.client: Client = client(make_person(tenant))

    def text(self, path: str) -> str:
        answer = self.client.get(f"/t/{self.tenant.slug}/{path}")
        assert answer.status_code == 200, path
        return answer.getvalue().decode()

    def data(self, path: str) -> Any:
        return json.loads(self.text(path))


def test_what_nobody_said_of_the_cache_is_nowhere_nought() -> None:
    tenant = make_tenant()
    silent, telling = sessions(tenant)
    look = Reader(tenant)
    reads = {row["id"]: row["usage"]["read"] for row in look.data("requests.json")}
    assert [reads[str(one)] for one in silent.requests] == [None, None]
    assert [reads[str(one)] for one in telling.requests] == [0, 800]
    lines = csv.DictReader(io.StringIO(look.text("requests.csv")))
    cells = {line["id"]: line["reported_read"] for line in lines}
    assert [cells[str(one)] for one in silent.requests] == ["", ""]
    assert [cells[str(one)] for one in telling.requests] == ["0", "800"]
    for one in silent.requests:
        usage = look.data(f"requests/{one}.json")["frame"]["request"]["usage"]
        assert (usage["read"], usage["write"], usage["fresh"]) == (None, None, 900)
        page = look.text(f"requests/{one}/")
        assert "<b>not reported</b> read" in page
        assert "fresh, not cached" not in page
        assert "not reported read" in look.text(f"requests/{one}/ticket")
    assert "fresh, not cached" in look.text(f"requests/{telling.requests[1]}/")
    strip = look.text(f"sessions/{silent.id}/")
    assert strip.count("not reported") >= 3 and "input, cache not reported" in strip
    first, second = silent.requests
    assert "not reported" in look.text(f"requests/{first}/diff/{second}/")
    assert "2 said nothing of their cache" in look.text("")


def test_sums_of_the_cache_leave_out_and_count_whoever_said_nothing() -> None:
    tenant = make_tenant()
    silent, telling = sessions(tenant)
    look = Reader(tenant)
    totals = look.data("metrics.json")["totals"]
    assert totals["requests"]["reported"] == 4
    assert totals["requests"]["cache_unreported"] == 2
    assert totals["tokens"]["prompt"] == 4 * 900
    assert totals["cached_share"] == {"numerator": 800, "denominator": 1_800, "value": 0.444444}
    assert totals["cached_of_preceding"] == {"numerator": 800, "denominator": 900, "value": 0.888889}  # fmt: skip
    found = {row["id"] for row in look.data("requests.json?usage=no_cache_figures")}
    assert found == {str(one) for one in silent.requests}
    under = {row["id"] for row in look.data("requests.json?q=cache:<0.5")}
    assert under == {str(telling.requests[0])}
    assert {row["id"] for row in look.data("sessions.json?q=cache:<0.5")} == {str(telling.id)}
    assert {row["id"] for row in look.data("requests.json?usage=reported")} == {
        str(one) for one in (*silent.requests, *telling.requests)
    }
    assert "2 without the cache" in look.text("metrics/")


def test_rest_answers_null_for_what_was_not_reported() -> None:
    tenant = make_tenant()
    silent, telling = sessions(tenant)
    door = Door(key_for(tenant.id))
    told = [
        door.send("GET", f"requests/{one}").ok()["usage"]
        for one in (silent.requests[0], telling.requests[0])
    ]
    assert [usage["cache_read"] for usage in told] == [None, 0]
    assert [usage["fresh"] for usage in told] == [900, 900]
