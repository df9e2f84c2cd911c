"""P12: every figure of the metrics page leads to what it counts, and every table leaves as CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from typing import Any

import pytest

from ctxengine.ledger.models import RequestRow
from tests.factories import LiveSession
from tests.inspector.conftest import Cast


def links(page: str, start: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'href="([^"]+)"', page) if start in found]


def test_totals_agree_with_the_json_twin_and_the_overview(cast: Cast) -> None:
    document = cast.data("metrics.json")
    overview = cast.data("overview.json")
    built = len(cast.session.requests)
    assert document["totals"]["requests"]["total"] == built
    assert document["totals"]["tokens"]["prompt"] == sum(
        overview["bill"][name] for name in ("fresh", "read", "write")
    )
    tile = next(tile for tile in overview["tiles"] if tile["title"] == "Requests")
    assert tile["figure"] == str(built)


def test_every_link_of_the_page_answers(cast: Cast, pressed: LiveSession) -> None:
    page = cast.page("metrics/", by="agent")
    addresses = {address for address in links(page, f"/t/{cast.slug}/") if "metrics" not in address}
    assert len(addresses) > 10
    for address in sorted(addresses):
        assert cast.operator.get(address).status_code == 200, address


def test_a_figure_counts_what_its_link_lists(cast: Cast, pressed: LiveSession) -> None:
    RequestRow.objects.filter(id=pressed.requests[-1]).update(
        status="failed", error={"status": 529, "code": "overloaded"}
    )
    table = cast.data("metrics.json", table="endings")
    page = cast.page("metrics/")
    (failed,) = {a for a in links(page, "requests/") if "code=overloaded" in a}
    listed = cast.operator.get(failed.replace("/requests/?", "/requests.json?"))
    wanted = next(row["requests"] for row in table if "overloaded" in row["ending"])
    assert listed.getvalue().count(b'"request_sha256"') == wanted == 1


def test_yields_lead_to_the_requests_that_yielded(cast: Cast, pressed: LiveSession) -> None:
    rows = cast.data("metrics.json", table="yields")
    for row in rows:
        name = {"Tool results": "tool_results", "History": "history"}[row["class"]]
        assert len(cast.data("requests.json", yielded=name, origin="live")) == row["requests"]


def test_every_table_leaves_as_csv_and_json(cast: Cast, pressed: LiveSession) -> None:
    page = cast.page("metrics/", by="model")
    names = set(re.findall(r"metrics\.csv\?[^\"]*table=([a-z_]+)", page))
    assert {"groups", "cached", "buckets", "yields", "worst_cost"} <= names
    for name in names:
        sheet = cast.operator.get(cast.url("metrics.csv"), {"by": "model", "table": name})
        rows = list(csv.DictReader(io.StringIO(sheet.getvalue().decode())))
        twin = cast.data("metrics.json", by="model", table=name)
        assert len(rows) == len(twin) > 0, name
        assert set(rows[0]) == set(twin[0])


def test_a_ratio_leaves_with_its_numerator_and_denominator(cast: Cast) -> None:
    (first, *_) = [row for row in cast.data("metrics.json", table="cached") if row["of_billed"]]
    assert first["of_billed"] == pytest.approx(
        first["of_billed_numerator"] / first["of_billed_denominator"], abs=1e-6
    )


def test_grouping_narrows_its_links_to_the_group(cast: Cast) -> None:
    page = cast.page("metrics/", by="agent")
    assert any("agent=coder%4012" in address for address in links(page, "requests/"))


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"w": "99y"}, "24h, 7d, 30d, 90d"),
        ({"by": "colour"}, "provider, model, agent, engine"),
        ({"sort": "cost"}, "no filter"),
        ({"from": "yesterday"}, "a day such as"),
        ({"from": "2026-11-02", "to": "2026-11-01"}, "end after it begins"),
        ({"w": "7d", "from": "2026-11-01"}, "Keep one"),
        ({"engine": "steam"}, "suffix"),
        ({"table": "yields"}, ".csv"),
    ],
)
def test_an_odd_question_is_400_with_what_there_is(
    cast: Cast, query: dict[str, Any], word: str
) -> None:
    response = cast.operator.get(cast.url("metrics/"), query)
    assert response.status_code == 400
    assert word in unescape(response.content.decode())


def test_an_unknown_table_is_400_and_names_those_there_are(cast: Cast) -> None:
    response = cast.operator.get(cast.url("metrics.json"), {"table": "zzz"})
    assert response.status_code == 400
    assert "worst_cost" in response.json()["detail"]


def test_nothing_reported_is_a_dash_and_not_nought(cast: Cast) -> None:
    cast.session.ask("And?").build()
    RequestRow.objects.filter(session_id=cast.session.id).update(usage={})
    page = cast.page("metrics/")
    assert "nothing to compare yet" in page
    assert "0.0 %</b>" not in page
    assert "No provider reported usage" in page


def test_imported_requests_count_only_when_asked_for(cast: Cast) -> None:
    RequestRow.objects.filter(session_id=cast.session.id).update(reconstructed=True)
    assert cast.data("metrics.json")["totals"]["requests"]["total"] == 0
    assert cast.data("metrics.json", imported="1")["totals"]["requests"]["total"] > 0
