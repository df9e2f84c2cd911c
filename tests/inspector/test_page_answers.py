"""What somebody on call asks stands where they look first: a missed cache, an item left out, a change, the price of a life."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context

from ctxengine.engine.manifest import Form, Reason, Span
from ctxengine.ledger.models import ReplayRow, RequestRow, SessionRow
from inspector.reasons import why
from inspector.templatetags.console import reason_linked
from tests.factories import LiveSession
from tests.inspector.conftest import Cast
from tests.inspector.sessions import compaction_of
from tests.work_off import work_off

pytestmark = pytest.mark.django_db


def test_a_request_says_at_its_head_how_much_was_read_from_the_cache(cast: Cast) -> None:
    request = cast.session.requests[1]
    usage = RequestRow.objects.get(id=request).usage
    read, prompt = usage["cache_read"], usage["prompt_total"]
    page = cast.page(f"requests/{request}/")
    head = page[page.index('class="pills"') : page.index('id="proof"')]
    assert f'<a href="#cache">cache</a> <b>{100 * read / prompt:.1f} %</b> read' in head
    assert page.index('id="cache"') < page.index("ladder</h2>") < page.index("<h2>Budget</h2>")


def test_a_surplus_does_not_hide_what_was_lost(cast: Cast, kept: LiveSession) -> None:
    row = RequestRow.objects.filter(session_id=kept.id, epoch=2).order_by("number").first()
    assert row is not None
    row.cache = {
        "predicted": {"read": 900, "write": 10, "fresh": 1, "cause": "epoch_rotated", "lost": 700}
    }
    row.verdict = {"class": "surplus", "expected_read": 900, "reported_read": 1_500, "cause": ""}
    row.save(update_fields=["cache", "verdict"])
    for path in (f"requests/{row.id}/", f"requests/{row.id}/f/peek/"):
        page = cast.page(path)
        assert "the epoch rotated: the prefix is another one" in page
        assert "nothing was lost" not in page


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"verdict": {"class": "unreported"}}, "somebody&#x27;s content was erased"),
        ({"verdict": {"class": "unreported"}, "cache": {"predicted": None}}, "not known"),
        ({"verdict": {"class": "unpredicted"}, "cache": {"predicted": None}}, "not known"),
        ({"verdict": {}, "cache": {"predicted": None}, "reconstructed": True}, "not known"),
        ({"verdict": {}, "cache": {"predicted": None}}, "none foreseen"),
        ({"verdict": {"class": "agrees", "cause": ""}}, "nothing was lost"),
    ],
)
def test_nothing_is_said_to_be_kept_where_nobody_knows(
    cast: Cast, changes: dict[str, Any], told: str
) -> None:
    row = RequestRow.objects.get(id=cast.session.requests[1])
    row.cache = {"predicted": {"read": 9, "write": 1, "fresh": 1, "cause": "erased", "lost": 7}}
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=["cache", *changes])
    page = cast.page(f"requests/{row.id}/")
    assert re.search(rf"Cause, by our facts</dt><dd>{re.escape(told)}</dd>", page)


def test_the_head_does_not_take_a_cause_for_that_of_what_was_read(cast: Cast) -> None:
    row = RequestRow.objects.get(id=cast.session.requests[1])
    row.verdict = {"class": "shortfall", "expected_read": 9, "reported_read": 1, "cause": "erased"}
    row.save(update_fields=["verdict"])
    page = cast.page(f"requests/{row.id}/")
    assert "read, <small>not more: somebody&#x27;s content was erased</small>" in page
    assert '<li class="pill bad">✕ <a href="#cache">' in page


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_leads_to_what_replaced_its_items(cast: Cast, reason: Reason) -> None:
    numbers = {"event": 1487, "packet": 487}
    span = Span(row=10, form=Form.OUT, reason=reason, items=1, tokens=9, numbers=numbers)
    shell = SimpleNamespace(viewer=SimpleNamespace(slug=cast.slug))
    linked = reason_linked(Context({"shell": shell}), why(span), reason.value, cast.session.id)
    page = {
        Reason.SUMMARISED: "compactions/?at=1487#detail",
        Reason.IN_PACKET: "compactions/?at=1487#detail",
        Reason.IN_NATIVE_WINDOW: "checkpoints/?at=1487#detail",
        Reason.IN_NOTE: "checkpoints/?at=1487#detail",
    }.get(reason, "events/?at=1487#e-1487")
    assert cast.url(f"sessions/{cast.session.id}/{page}") in linked
    assert "packet 487" not in linked


def test_why_items_are_out_stands_above_them_and_leads_to_what_replaced_them(
    cast: Cast, kept: LiveSession
) -> None:
    event = compaction_of(kept)
    address = f"sessions/{kept.id}/compactions/?at={event}#detail"
    request = kept.requests[-1]
    listed = cast.page(f"requests/{request}/items/", form="out")
    fates = re.findall(r'<li class="fate">(.*?)</li>', listed)
    assert len(fates) < listed.count('class="item out"')
    assert any("covered by a summary" in fate and address in fate for fate in fates)
    page = cast.page(f"requests/{request}/")
    assert address in page
    head = page[page.index('class="pills"') : page.index('id="proof"')]
    assert re.search(r'/items/\?form=out">left out</a> <b>[1-9]', head)
    out = re.search(r'id="i-([0-9.]+)"', listed)
    assert out is not None
    assert address in cast.page(f"sessions/{kept.id}/items/{out[1]}/")
    assert f"What compaction {event} made" in cast.page(
        f"sessions/{kept.id}/compactions/", at=event
    )


def test_a_change_whose_bytes_are_gone_is_not_told_as_none(cast: Cast) -> None:
    session = LiveSession(cast.tenant, title="Reasons aloud").ask("Look it up.")
    block = {"type": "thinking", "thinking": "First the log.", "signature": "c2lnbmF0dXJl"}
    call = {"type": "tool_use", "id": "toolu_r1", "name": "shell_run", "input": {"cmd": "ls"}}
    session._respond([block, call], "tool_use", None)
    session.result("toolu_r1", "one file").answer("One.")
    session.ask("And now?").answer("Still one.")
    page = cast.page(f"requests/{session.requests[-1]}/change/")
    assert "bytes no longer kept" in page, "the case that this is about"
    told = page[page.index("First changed byte") : page.index("<dt>Cause")]
    assert "not known" in told and "none" not in told
    assert ("still there" in page) == ("warn" not in told and "▲" not in told)
    assert re.search(r"in row \d+, ", told)
    assert re.search(r'aria-label="Identical up to [\d,]+ tokens, then row ', page)


def test_a_change_of_epoch_leads_to_what_it_pins_and_what_it_cost(
    cast: Cast, kept: LiveSession
) -> None:
    rows = RequestRow.objects.filter(session_id=kept.id).order_by("number")
    first = next(row for row in rows if row.epoch == 2)
    page = html.unescape(cast.page(f"requests/{first.id}/change/"))
    for address in ("epochs/diff/?before=1&after=2", "epochs/#epoch-2"):
        assert f"sessions/{kept.id}/{address}" in page
    strip = cast.page(f"sessions/{kept.id}/")
    assert re.search(r"epoch rotated, (nothing|[\d,]+ prefix tokens) re-cached", strip)


def test_the_way_to_an_epoch_finds_it_in_a_list_of_many_pages(
    cast: Cast, kept: LiveSession
) -> None:
    first, last = (RequestRow.objects.get(id=kept.requests[place]) for place in (0, -1))
    rows = SessionRow.objects.filter(id=kept.id)
    for pair in ((first, last), (last, first)):
        page = html.unescape(cast.page(f"requests/{pair[0].id}/diff/{pair[1].id}/"))
        assert f"epochs/#epoch-{last.epoch}" in page, "the newest heads the list"
    rows.update(epoch=last.epoch + 1)
    page = html.unescape(cast.page(f"requests/{last.id}/diff/{first.id}/"))
    assert f"epochs/?after={last.epoch + 1}#epoch-{last.epoch}" in page


def test_costs_of_unequal_steps_are_not_held_against_each_other(cast: Cast) -> None:
    for ttl in ("5m", "1h"):
        replayed(cast, ttl=ttl)
        if ttl == "5m":
            cast.session.ask("And now?").answer("One step more.")
    page = cast.page(f"lab/{newest_replay(cast).id}/")
    rivals = page[page.index("Under other conditions") :]
    assert '<th class="n">Steps</th>' in rivals and '<th class="n">Refused</th>' in rivals
    assert re.search(r'<td class="n">\$[0-9.]+</td>\s*<td class="n">–</td>', rivals)


def test_the_twins_of_a_replay_say_under_which_conditions(cast: Cast) -> None:
    replayed(cast, ttl="1h", turn_gap="600")
    address = f"lab/{newest_replay(cast).id}"
    (cell,) = cast.data(f"{address}.json")
    answer = cast.operator.get(cast.url(f"{address}.csv"))
    (line,) = csv.DictReader(io.StringIO(answer.getvalue().decode()))
    assert cell["settings"] == json.loads(line["settings"])
    assert (cell["settings"]["ttl"], cell["settings"]["turn_gap"]) == ("1h", 600.0)


def test_an_hour_is_offered_to_who_may_replay_and_has_not_got_it(cast: Cast) -> None:
    way, words = f"sessions/{cast.session.id}/settings/", b"Replay this session with an hour"
    assert words in cast.operator.get(cast.url(way)).content
    assert words not in cast.viewer.get(cast.url(way)).content
    SessionRow.objects.filter(id=cast.session.id).update(settings={"history_ttl": "1h"})
    assert words not in cast.operator.get(cast.url(way)).content


def test_replays_of_one_session_are_listed_as_such(cast: Cast) -> None:
    narrowed = cast.page("lab/", session=str(cast.session.id))
    assert "Replays of this session</h2>" in narrowed and "all replays</a>" in narrowed
    assert "all replays</a>" not in cast.page("lab/")


def test_two_lives_of_the_cache_are_held_against_each_other(cast: Cast) -> None:
    page = cast.page("lab/", session=str(cast.session.id), ttl="1h")
    assert '<option value="1h" selected>' in page
    for ttl in ("5m", "1h"):
        replayed(cast, ttl=ttl, turn_gap="600")
    rows = {row.settings["ttl"]: row for row in ReplayRow.objects.filter(tenant_id=cast.tenant.id)}
    page = cast.page(f"lab/{rows['1h'].id}/")
    rivals = page[page.index("Under other conditions") :]
    assert "cache entries live 5 minutes, 600 s between turns" in rivals
    assert f"lab/{rows['5m'].id}/" in rivals and f"lab/{rows['1h'].id}/" not in rivals
    costs = {ttl: row_cost(cast, row) for ttl, row in rows.items()}
    against = 100 * (costs["5m"] / costs["1h"] - 1)
    assert f"{against:+.1f} %".replace("-", "−") in rivals
    assert '<button class="btn" type="submit" name="ttl" value="5m">' in page
    assert 'name="turn_gap" value="600.0"' in page
    assert cast.viewer.get(cast.url(f"lab/{rows['1h'].id}/")).content.count(b'name="ttl"') == 0
    listed = cast.page("lab/")
    assert "cache entries live an hour" in listed and "cache entries live 5 minutes" in listed


def replayed(cast: Cast, **conditions: str) -> None:
    form = {
        "session": str(cast.session.id),
        "engine": ["suffix"],
        "model": ["anthropic/claude-sonnet-4-6"],
    }
    none = {"ttl": "", "turn_gap": "", "budget": "", "low_water": ""}
    sent = {**form, **none, **conditions}
    assert cast.operator.post(cast.url("lab/"), sent).status_code == 303
    work_off(cast.tenant.id, kind="replay.run")


def newest_replay(cast: Cast) -> ReplayRow:
    return ReplayRow.objects.filter(tenant_id=cast.tenant.id).latest("created_at")


def row_cost(cast: Cast, row: ReplayRow) -> float:
    (cell,) = cast.data(f"lab/{row.id}.json")
    return float(cell["cost"])
