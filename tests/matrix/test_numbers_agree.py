"""One number, wherever it stands (ui 8): ruler, table, JSON and CSV of every request, and the sums over sessions and tenant."""

from __future__ import annotations

import csv
import io
import json
import re
from importlib.resources import files
from typing import Any

import pytest
from django.test import Client

from ctxengine.ledger.models import RequestRow, Tenant
from ctxengine.service.import_transcript import import_file
from ctxengine.service.specs import Actor
from inspector.figures import number, signed
from tests.factories import LiveSession, make_person, make_tenant, pressed_session, worked_session
from tests.inspector.sessions import kept_session
from tests.matrix.test_cache_not_reported import sessions as telling_and_silent
from tests.matrix.world import client

pytestmark = pytest.mark.django_db

SAMPLES = (
    "coding_agent.claude_code.jsonl",
    "support_agent.openai_chat.json",
    "research_agent.anthropic_messages.json",
    "migration_agent.codex_rollout.jsonl",
)
OF_EACH = 2
"""Requests looked at of each session, the newest: their pages are many and alike."""
BUCKETS = ("fresh", "read", "write")
_ROW = re.compile(r'<tr id="row-(\d+)".*?</tr>', re.DOTALL)
_CELL = re.compile(r'<td class="n">\D*?([\d,]+)')
_LEGEND = re.compile(r'<ul class="legend">(.*?)</ul>', re.DOTALL)
_BOLD = re.compile(r"<b>([\d,]+)</b>")


def furnish(tenant: Tenant) -> None:
    """Every kind of session that the tests have, and every sample that is shipped."""
    worked_session(tenant)
    pressed_session(tenant)
    kept_session(tenant)
    telling_and_silent(tenant)
    LiveSession(tenant, provider="openai", model="gpt-5.4", title="Unanswered").ask("Well?").build()
    for name in SAMPLES:
        data = files("ctxengine.service.sample_data").joinpath(name).read_bytes()
        assert import_file(actor=Actor(tenant.id, "x"), name=name, data=data).session_ids, name


class Look:
    """A member's view of the tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self.here = f"/t/{tenant.slug}/"
        self.client: Client = client(make_person(tenant))

    def text(self, path: str) -> str:
        answer = self.client.get(self.here + path)
        assert answer.status_code == 200, path
        return answer.getvalue().decode()

    def data(self, path: str) -> Any:
        return json.loads(self.text(path))

    def rows(self, path: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.text(path))))


def whole(text: str) -> int:
    return int(text.replace(",", ""))


def newest_of_each(tenant: Tenant) -> list[RequestRow]:
    found: list[RequestRow] = []
    kept: dict[Any, int] = {}
    for row in RequestRow.objects.filter(tenant_id=tenant.id).order_by("-number"):
        kept[row.session_id] = kept.get(row.session_id, 0) + 1
        if kept[row.session_id] <= OF_EACH:
            found.append(row)
    return found


def wrong_totals(look: Look, row: RequestRow, line: dict[str, Any], cells: dict[str, str]) -> Any:
    """What any view of a request's tokens says otherwise than its twin."""
    found = look.data(f"requests/{row.id}.json")
    page = look.text(f"requests/{row.id}/")
    total = found["frame"]["request"]["total_tokens"]
    legend = _LEGEND.search(page)
    # The first figure of a row is its number, the second what it takes.
    table = {int(m[1]): whole(_CELL.findall(m[0])[1]) for m in _ROW.finditer(page)}
    lines = found["region_a"] + found["region_b"]
    told = {
        "regions": found["sum_a"] + found["sum_b"],
        "ruler": sum(figure["tokens"] for figure in found["frame"]["ruler"]["by_trust"]),
        "ruler on the page": sum(whole(n) for n in _BOLD.findall(legend[1] if legend else "")),
        "rows": sum(one["total"]["tokens"] for one in lines),
        "rows on the page": sum(table.values()),
        "list, JSON": line["total_tokens"],
        "list, CSV": int(cells["tokens"]),
    }
    assert len(table) == 15
    assert {one["row"]["number"]: one["total"]["tokens"] for one in lines} == table
    off = {view: tokens for view, tokens in told.items() if tokens != total}
    return off or wrong_usage(row, found["frame"], page, line, cells)


def wrong_usage(
    row: RequestRow, frame: dict[str, Any], page: str, line: dict[str, Any], cells: dict[str, str]
) -> Any:
    """What of a request's bill does not add up, or is told otherwise elsewhere."""
    usage = frame["request"]["usage"]
    columns = {"fresh": "reported_fresh", "read": "reported_read", "write": "reported_write"}
    for bucket, column in columns.items():
        cell = "" if usage[bucket] is None else str(usage[bucket])
        if line["usage"][bucket] != usage[bucket] or cells[column] != cell:
            return bucket, usage, line["usage"], cells[column]
    told = [usage[bucket] for bucket in BUCKETS if usage[bucket] is not None]
    if told and sum(told) != row.usage["prompt_total"]:
        return "billed", usage, row.usage
    if told and number(sum(told)) not in page:
        return "billed is not on the page", sum(told)
    if told and not row.reconstructed:
        if frame["accounted"] + frame["unattributed"] != sum(told):
            return "unattributed", frame["accounted"], frame["unattributed"], told
        if f"<b>{signed(frame['unattributed'])}</b>" not in page:
            return "unattributed is not on the page", frame["unattributed"]
    return None


def test_every_view_of_every_request_has_the_same_numbers() -> None:
    tenant = make_tenant()
    furnish(tenant)
    look = Look(tenant)
    rows = newest_of_each(tenant)
    for row in rows:  # an outline of an import becomes a request when it is looked at
        look.text(f"requests/{row.id}/")
    lines = {line["id"]: line for line in look.data("requests.json")}
    cells = {line["id"]: line for line in look.rows("requests.csv")}
    assert lines.keys() == cells.keys()
    wrong = {}
    for row in rows:
        row.refresh_from_db()
        key = str(row.id)
        if found := wrong_totals(look, row, lines[key], cells[key]):
            wrong[key, row.provider, row.reconstructed] = found
    assert wrong == {}
    assert len({row.session_id for row in rows}) >= 10
    assert any(not row.usage for row in rows) and any(row.reconstructed for row in rows)
    sums_are_those_of_the_requests(look, tenant)


def sums_are_those_of_the_requests(look: Look, tenant: Tenant) -> None:
    """Over each session and over the tenant, on every page that has a sum."""
    live = [row for row in RequestRow.objects.filter(tenant_id=tenant.id) if not row.reconstructed]
    sums = {"fresh": 0, "read": 0, "write": 0, "output": 0}
    by_session: dict[Any, dict[str, int]] = {}
    lines = {line["id"]: line["usage"] for line in look.data("requests.json")}
    for row in live:
        own = by_session.setdefault(row.session_id, dict.fromkeys(sums, 0))
        for bucket in sums:
            tokens = lines[str(row.id)][bucket] or 0
            sums[bucket] += tokens
            own[bucket] += tokens
    overview = look.data("overview.json")["bill"]
    totals = look.data("metrics.json")["totals"]["tokens"]
    assert {bucket: overview[bucket] for bucket in sums} == sums
    assert {bucket: totals[bucket] for bucket in sums} == sums
    assert totals["prompt"] == sums["fresh"] + sums["read"] + sums["write"]
    for session, own in by_session.items():
        bill = look.data(f"sessions/{session}.json")["bill"]
        assert {bucket: bill[bucket] for bucket in own} == own
        page = look.text(f"sessions/{session}/")
        assert f'<td class="n">{number(own["fresh"] + own["read"] + own["write"])}</td>' in page
    peaks = {line["id"]: line["peak_tokens"] for line in look.data("sessions.json")}
    for session in by_session:
        most = max(row.total_tokens for row in live if row.session_id == session)
        assert peaks[str(session)] == most
