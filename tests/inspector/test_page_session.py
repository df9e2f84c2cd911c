"""P3: a session's strip, runs, plan and events."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.db import connection

from ctxengine.ledger.models import Event, RequestRow
from ctxengine.service.end_run import end_run
from ctxengine.service.erase import erase_person
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import EndRun
from inspector.pages import session_events
from tests.factories import LiveSession
from tests.inspector.conftest import Cast


def test_runs_say_what_was_asked_called_and_answered(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/")
    for text in ("Find out why.", "web", "It waits for a fixed time.", "Run 3"):
        assert text in page


def test_what_was_erased_is_not_told_as_nothing(cast: Cast) -> None:
    erase_person(actor=cast.session.actor, principal="mara@acme", note="asked")
    page = cast.page(f"sessions/{cast.session.id}/")
    assert "its text is gone" in page
    assert "a child run" not in page
    assert ">nothing" not in page


def test_each_request_is_one_column_whose_layers_add_up(cast: Cast) -> None:
    found = cast.data(f"sessions/{cast.session.id}.json")
    columns = found["strip"]["columns"]
    assert [column["id"] for column in columns] == [str(one) for one in cast.session.requests]
    for column, line in zip(columns, request_lines(cast), strict=True):
        layers = ("prefix", "summary", "conversation", "results", "fresh", "input")
        assert sum(column[layer] for layer in layers) == line["total_tokens"]


def request_lines(cast: Cast) -> list[dict[str, int]]:
    lines = cast.data("requests.json")
    mine = [line for line in lines if line["session_id"] == str(cast.session.id)]
    return sorted(mine, key=lambda line: line["number"])


def test_acts_stand_at_the_request_that_they_shaped(cast: Cast, pressed: LiveSession) -> None:
    found = cast.data(f"sessions/{pressed.id}.json")
    yielded = [act for act in found["view"]["acts"] if act["title"] == "tokens yielded"]
    labels = {place["label"] for place in yielded[0]["places"]}
    ran = {
        step["label"] for run in found["runs"]["runs"] for step in run["steps"] if step["yields"]
    }
    assert labels
    assert labels <= ran


def test_a_rotation_starts_a_band_and_shows_its_reason(cast: Cast) -> None:
    rotate_epoch(
        actor=cast.session.actor, session_id=cast.session.id, reason="operator", note="A trial."
    )
    cast.session.ask("Again?").answer("Yes.")
    found = cast.data(f"sessions/{cast.session.id}.json")
    assert [band["epoch"] for band in found["view"]["bands"]] == [1, 2]
    plan = cast.page(f"sessions/{cast.session.id}/plan/")
    assert "Epoch 2: what is pinned" in plan
    assert "operator" in plan
    assert "Epoch 1: what is pinned" in cast.page(f"sessions/{cast.session.id}/plan/", epoch=1)


def test_the_plan_shows_texts_and_the_roster(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/plan/")
    for text in (
        "You mend failing tests",
        "Prefers small commits.",
        "web.fetch",
        "web_fetch",
        "Skipped, 0",
    ):
        assert text in page


def test_events_are_verified_and_open_at_an_address(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/events/", at=2)
    assert "✓ verified on this page" in page
    assert 'id="e-2" class="lit"' in page
    assert "prefix_sha256" in page


def altered(cast: Cast, sequence: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE event SET trust = CASE trust WHEN 'PLATFORM' THEN 'MODEL' ELSE 'PLATFORM' END"
            " WHERE session_id = %s AND sequence = %s",
            [cast.session.id, sequence],
        )
        cursor.execute("SET session_replication_role = DEFAULT")


def test_an_altered_event_is_shown_as_altered(cast: Cast) -> None:
    altered(cast, 3)
    page = cast.page(f"sessions/{cast.session.id}/events/")
    assert "✕ altered" in page
    assert "the chain breaks at 3" in page
    assert "✓ verified" not in page


def test_a_break_that_a_part_finds_joins_those_that_stand_there(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/events/", follow=1)
    head = Event.objects.filter(session_id=cast.session.id).latest("sequence").sequence
    altered(cast, head)
    part = cast.page(f"sessions/{cast.session.id}/f/events/", after=head - 1)
    assert f"✕ the chain breaks at {head}<" in part
    # All that a part puts elsewhere has its place, and what is said of the chain is added to, never replaced.
    places = re.findall(r'hx-swap-oob="beforeend:#([\w-]+)"', part)
    places += re.findall(r'id="([\w-]+)"[^>]* hx-swap-oob="true"', part)
    assert set(places) == {"chain", "chain-holds", "follow"}
    for place in places:
        assert page.count(f'id="{place}"') == 1, place
    assert "✓" not in part.partition('id="chain-holds"')[2]


def test_what_is_recorded_while_the_page_is_made_comes_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head of the log is read before its events; a follower asks from the head on."""
    path, framed = f"sessions/{cast.session.id}/", session_events.frame_of

    def late(*given: Any) -> Any:
        cast.session.ask("Meanwhile.").build()
        return framed(*given)

    monkeypatch.setattr(session_events, "frame_of", late)
    page = cast.page(f"{path}events/", follow=1)
    monkeypatch.undo()
    asks = re.search(r"after=(\d+)", page)
    assert asks
    part = cast.page(f"{path}f/events/", after=asks[1])
    shown, came = (set(re.findall(r'<tr id="e-(\d+)"', text)) for text in (page, part))
    assert came and not shown & came
    every = Event.objects.filter(session_id=cast.session.id).values_list("sequence", flat=True)
    assert shown | came == set(map(str, every))


def test_events_are_filtered_by_type_and_exported_whole(cast: Cast) -> None:
    count = Event.objects.filter(session_id=cast.session.id).count()
    rows = cast.data(f"sessions/{cast.session.id}/events.json")
    assert [row["sequence"] for row in rows] == list(range(count, 0, -1))
    page = cast.page(f"sessions/{cast.session.id}/events/", type="run.ended")
    assert page.count("<tr id=") == 3


def test_a_body_is_shown_and_downloaded_byte_for_byte(cast: Cast) -> None:
    event = Event.objects.filter(session_id=cast.session.id, type="user.message.created").first()
    assert event is not None
    path = f"sessions/{cast.session.id}/events/{event.sequence}/"
    assert "Which test is flaky?" in cast.page(path)
    raw = cast.operator.get(cast.url(path + "raw"))
    assert raw.content == b"Which test is flaky?"
    assert raw["Content-Type"] == "application/octet-stream"
    assert raw["Content-Disposition"].startswith("attachment")
    assert raw["X-Content-Type-Options"] == "nosniff"


def test_what_is_not_there_is_404(cast: Cast) -> None:
    for path in (
        f"sessions/{uuid.uuid4()}/",
        f"sessions/{cast.session.id}/events/999/",
        f"sessions/{cast.session.id}/plan/?epoch=9",
        f"sessions/{cast.session.id}/items/999.0/",
    ):
        assert cast.operator.get(cast.url(path)).status_code == 404, path


def test_a_page_of_a_longer_session_asks_no_more(
    cast: Cast, django_assert_max_num_queries: object
) -> None:
    for number in range(25):
        cast.session.ask(f"Question {number}").answer("Yes.")
    with django_assert_max_num_queries(19):  # type: ignore[operator]
        page = cast.page(f"sessions/{cast.session.id}/")
    assert "Older runs" in page
    assert "Question 4" not in page
    assert "Question 4" in cast.page(f"sessions/{cast.session.id}/", before=9)


def test_a_long_text_says_that_it_goes_on_and_where_the_whole_is(cast: Cast) -> None:
    cast.session.ask("Look at every depot. " * 30).answer("Every depot was seen. " * 30)
    cast.session.ask("Thanks.").answer("Gladly.")
    page = cast.page(f"sessions/{cast.session.id}/")
    assert page.count("…</bdi>") == 2
    assert "Thanks.</bdi>" in page
    run = cast.data(f"sessions/{cast.session.id}.json")["runs"]["runs"][1]
    for sequence in (run["seed_sequence"], run["answered_sequence"]):
        address = f"sessions/{cast.session.id}/events/{sequence}/"
        assert f"/t/{cast.slug}/{address}" in page
        assert cast.operator.get(cast.url(address)).status_code == 200


def test_what_no_provider_reported_is_no_nought(cast: Cast) -> None:
    path = f"sessions/{cast.session.id}/"
    rows = RequestRow.objects.filter(session_id=cast.session.id)
    silent = {"fresh": 900, "output": 5}
    silent |= dict.fromkeys(("cache_read", "cache_write_5m", "cache_write_1h"))
    rows.update(usage=silent)
    page = cast.page(path)
    for bucket in ("Read from", "Written to"):
        assert f'<td>{bucket} cache</td><td class="n"><small>not reported</small></td>' in page
    assert "writes not reported" in cast.page(f"{path}f/peek/")
    row = rows[0]
    row.usage |= {"cache_write_5m": 0}
    row.save(update_fields=["usage"])
    assert '<td>Written to cache</td><td class="n">0</td>' in cast.page(path)


def test_a_run_that_is_over_waits_for_no_answer(cast: Cast) -> None:
    session = LiveSession(cast.tenant, title="Given up").ask("Go on.")
    assert "not yet" in cast.page(f"sessions/{session.id}/")
    assert session.run is not None
    for outcome, words in (
        ("failed", "nothing: the run failed"),
        ("cancelled", "nothing: the run was cancelled"),
    ):
        end_run(actor=session.actor, run_id=session.run, spec=EndRun(outcome=outcome))  # type: ignore[arg-type]
        page = cast.page(f"sessions/{session.id}/")
        assert words in page
        assert "not yet" not in page
        assert "no request</span>" in page
        assert "0 requests, peak" not in page
        session.ask("Once more.")
