"""P5: one request, the centre of the console."""

from __future__ import annotations

import csv
import json
import re
import uuid
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.engine.ids import parse_item_id
from ctxengine.ledger.models import RequestRow
from ctxengine.service.specs import PolicySpec
from inspector.standing import standings
from tests.cast import Call
from tests.factories import LiveSession
from tests.inspector.conftest import Cast
from tests.shrinking import Shrinker


def last(session: LiveSession) -> uuid.UUID:
    return session.requests[-1]


def yielding(session: LiveSession) -> uuid.UUID:
    """A request of the session for which a yield step ran."""
    rows = RequestRow.objects.filter(session_id=session.id).order_by("-number")
    return next(
        row.id for row in rows if any(s["outcome"] == "ran" for s in row.manifest["yields"])
    )


def test_all_fifteen_rows_are_listed_with_their_reason(cast: Cast) -> None:
    page = cast.page(f"requests/{last(cast.session)}/")
    assert len(re.findall(r'id="row-\d+"', page)) == 15
    assert "the plan pins nothing here" in page
    assert "within the largest suffix that fits" in page


def test_the_rows_of_every_view_add_up_to_the_request(cast: Cast) -> None:
    found = cast.data(f"requests/{last(cast.session)}.json")
    total = found["frame"]["request"]["total_tokens"]
    assert found["sum_a"] + found["sum_b"] == total
    assert sum(figure["tokens"] for figure in found["frame"]["ruler"]["by_trust"]) == total
    assert sum(line["total"]["tokens"] for line in found["region_a"] + found["region_b"]) == total
    assert found["frame"]["ruler"]["unexplained"] == 0


def test_the_ladder_always_has_four_steps(cast: Cast, pressed: LiveSession) -> None:
    for session in (cast.session, pressed):
        found = cast.data(f"requests/{last(session)}.json")
        assert len(found["frame"]["ladder"]) == 4
    page = cast.page(f"requests/{yielding(pressed)}/")
    assert " yielded</li>" in page
    assert "results as pointers" in page


def test_reported_usage_is_reconciled_with_the_rows(cast: Cast) -> None:
    frame = cast.data(f"requests/{last(cast.session)}.json")["frame"]
    usage = frame["request"]["usage"]
    billed = usage["fresh"] + usage["read"] + usage["write"]
    assert frame["accounted"] + frame["unattributed"] == billed


def test_items_are_listed_in_order_and_load_their_bodies(cast: Cast) -> None:
    page = cast.page(f"requests/{last(cast.session)}/items/")
    ids = re.findall(r'id="i-([\d.]+)"', page)
    assert ids == sorted(ids, key=lambda one: tuple(map(int, one.split("."))))
    result = next(i for i in ids if f"f/item/{i}/" in page)
    body = cast.page(f"sessions/{cast.session.id}/f/item/{result}/")
    assert "<html" not in body
    assert '<figure class="env' in body


def test_items_are_narrowed_by_trust_and_kind(cast: Cast) -> None:
    path = f"requests/{last(cast.session)}/items.json"
    found = cast.data(path, trust="EXTERNAL_UNTRUSTED")["items"]
    assert {item["line"]["kind"] for item in found} == {"tool_result"}
    calls = cast.data(path, kind="tool_call")["items"]
    assert {item["line"]["trust"] for item in calls} == {"MODEL"}


def test_pointers_are_told_from_what_stays_whole(cast: Cast, pressed: LiveSession) -> None:
    items = cast.data(f"requests/{yielding(pressed)}/items.json")["items"]
    shortened = [item for item in items if item["form"] == "pointer"]
    assert shortened
    assert {item["line"]["kind"] for item in shortened} == {"tool_result"}
    assert all(item["tokens"] < item["line"]["tokens"] for item in shortened)


def test_left_out_spans_say_what_they_lost_to(cast: Cast) -> None:
    session = LiveSession(
        cast.tenant,
        window=9_000,
        policy=PolicySpec(reserve=1_000, history_floor=1_000),
        title="Long talk",
    )
    for number in range(14):
        session.ask(f"Question {number} " + "and more of it " * 60).answer("An answer. " * 120)
    session.ask("Last one").build()
    page = cast.page(f"requests/{last(session)}/")
    assert "covered by a summary (depth" in page
    assert "it lost to: room" not in page
    out = cast.data(f"requests/{last(session)}/items.json", form="out")["items"]
    assert out[0]["line"]["preview"].startswith("Question 0")


def test_the_provider_json_is_whole_in_raw_and_in_parts_on_the_page(cast: Cast) -> None:
    request = last(cast.session)
    raw = cast.operator.get(cast.url(f"requests/{request}/raw"))
    body = json.loads(raw.content)
    page = cast.page(f"requests/{request}/json/")
    for place in range(len(body["messages"])):
        assert f'id="p-messages.{place}"' in page
    alone = cast.page(f"requests/{request}/json/", part="messages.0")
    assert "Which test is flaky?" in alone
    part = cast.page(f"requests/{request}/f/part/", part="messages.0")
    assert part.startswith('<pre class="json"')
    assert cast.operator.get(cast.url(f"requests/{request}/json/?part=x")).status_code == 404


def test_the_change_tab_names_the_first_changed_row(cast: Cast, pressed: LiveSession) -> None:
    assert "first request of its session" in cast.page(
        f"requests/{cast.session.requests[0]}/change/"
    )
    page = cast.page(f"requests/{cast.session.requests[1]}/change/")
    assert "✓ still there" in page
    broken = cast.page(f"requests/{yielding(pressed)}/change/")
    assert "History cut" in broken
    assert "Truncation" not in broken
    assert "▲ rewritten" in broken


def test_the_events_tab_has_what_led_here(cast: Cast) -> None:
    page = cast.page(f"requests/{cast.session.requests[1]}/events/")
    assert "tool.result.received" in page
    assert "session.opened" not in page


def test_proving_answers_in_place_and_as_a_page(cast: Cast) -> None:
    url = cast.url(f"requests/{last(cast.session)}/prove/")
    part = cast.viewer.post(url, headers={"HX-Request": "true"})
    assert "✓ Rebuilds to the same bytes" in part.content.decode()
    assert b"<html" not in part.content
    assert "no-store" in part["Cache-Control"]
    page = cast.viewer.post(url).content.decode()
    assert "✓ Rebuilds to the same bytes" in page
    assert "<html" in page


def test_a_request_that_no_longer_rebuilds_is_told_so(cast: Cast) -> None:
    RequestRow.objects.filter(id=last(cast.session)).update(request_sha256="0" * 64)
    page = cast.operator.post(cast.url(f"requests/{last(cast.session)}/prove/")).content.decode()
    assert "✕ Rebuilds to other bytes" in page
    assert "0" * 64 in page


def test_proving_changes_nothing_by_get(cast: Cast) -> None:
    assert cast.operator.get(cast.url(f"requests/{last(cast.session)}/prove/")).status_code == 405


def test_any_two_requests_can_be_compared(cast: Cast, pressed: LiveSession) -> None:
    page = cast.page(f"requests/{cast.session.requests[0]}/diff/{last(cast.session)}/")
    assert "Baseline" in page
    other = cast.page(f"requests/{cast.session.requests[0]}/diff/{last(pressed)}/")
    assert "▲ two different sessions" in other


def test_each_tab_asks_a_bounded_number_of_times(
    cast: Cast, pressed: LiveSession, django_assert_max_num_queries: object
) -> None:
    limits = {"": 12, "items/": 13, "json/": 40, "change/": 80, "events/": 14}
    for tab, limit in limits.items():
        with django_assert_max_num_queries(limit):  # type: ignore[operator]
            cast.page(f"requests/{last(pressed)}/{tab}")


def test_a_row_without_tokens_never_says_that_it_keeps_them(cast: Cast) -> None:
    session = LiveSession(cast.tenant, provider="openai-responses", model="gpt-5.4").ask("Look.")
    session.step("shell.run", "Found.").answer("Done.")
    told = {}
    for request in session.requests:
        lines = cast.data(f"requests/{request}.json")["region_b"]
        empty = [line for line in lines if not line["total"]["tokens"]]
        assert not [line for line in empty if "never yields" in line["words"]]
        assert not [line for line in empty if line["total"]["items"]]
        told = {line["row"]["number"]: line["words"] for line in empty}
        assert told[11] == ["nothing for this step"]
    assert told[14] == ["stays where it was sent"]


def test_each_marker_says_what_it_closes(cast: Cast) -> None:
    page = cast.page(f"requests/{last(cast.session)}/")
    assert "the tools" in page
    assert "the prefix" in page


def test_an_item_left_out_by_hand_takes_no_other_of_its_step_along(cast: Cast) -> None:
    runtime = Shrinker(actor=cast.session.actor)
    runtime.ask("Which file holds it?")
    runtime.assemble()
    runtime.say("I look.", Call("c1", "read"))
    runtime.results(("c1", "It is here."))
    runtime.assemble()
    runtime.say("Here.")
    (answer,) = {event.sequence for event in runtime.events(EventType.RESPONSE_COMPLETED)[:1]}
    (asked,) = (event.sequence for event in runtime.events(EventType.USER_MESSAGE))
    for target in (f"{answer}.0", f"{asked}.0"):
        runtime.mark(target, "excluded", scope="item")
    runtime.ask("And?")
    request = UUID(str(runtime.assemble().request_id))
    path = cast.url(f"requests/{request}/items.csv")

    def listed(**query: str) -> dict[str, str]:
        text = cast.operator.get(path, query).getvalue().decode()
        return {line["item"]: line["form"] for line in csv.DictReader(text.splitlines())}

    assert listed(form="out") == {f"{answer}.0": "out", f"{asked}.0": "out"}
    assert listed()[f"{answer}.1"] == "whole"
    for item, form in (listed() | listed(form="out")).items():
        place = parse_item_id(item)
        (told, *_) = standings(cast.tenant.id, runtime.session, place, "tool_call")
        assert told.form_key == form, item
