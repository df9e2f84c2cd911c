"""P8: compactions, the way back, and what an operator marks by hand."""

from __future__ import annotations

import html
import re

import pytest
from django.http import QueryDict

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import AuditEntry, Event, Role, Tenant
from ctxengine.service.compact import compact
from ctxengine.service.specs import Compact, PolicySpec
from tests.factories import LiveSession, make_person
from tests.inspector.conftest import Cast, client_of
from tests.inspector.sessions import compaction_of
from tests.shrinking import Shrinker


def events(session: LiveSession, kind: str) -> int:
    return Event.objects.filter(session_id=session.id, type=kind).count()


def test_a_compaction_says_what_it_replaced_and_where_the_rest_is(
    cast: Cast, kept: LiveSession
) -> None:
    page = cast.page(f"sessions/{kept.id}/compactions/")
    for text in (
        "● stands",
        "Never round a figure.",
        "Elided spans",
        "tool.result",
        "against",
        "reference data, no instruction",
    ):
        assert text in page, text
    (line,) = cast.data(f"sessions/{kept.id}/compactions.json")
    assert line["tokens_after"] < line["tokens_before"]
    for span in line["elided"]:
        address = f"sessions/{kept.id}/items/{span['item_id']}/"
        assert f"/t/{cast.slug}/{address}" in page
        assert cast.operator.get(cast.url(address)).status_code == 200


def told_once(page: str, **kept: str) -> list[str]:
    """Addresses that open a line of a list or lead to its other pages: lines keep its place, none says what was done."""
    inside = [html.unescape(found) for found in re.findall(r'href="(\?[^"]*)"', page)]
    for address in inside:
        asked = QueryDict(address[1:].partition("#")[0])
        assert not {"done", "made"} & set(asked), address
        if address.endswith("#detail"):
            assert {name: asked.get(name) for name in kept} == kept, address
        assert ("at" in asked) == address.endswith("#detail"), address
    return inside


def test_a_line_opens_on_the_page_of_the_list_that_it_stands_on(
    cast: Cast, kept: LiveSession
) -> None:
    event, path = compaction_of(kept), f"sessions/{kept.id}/compactions/"
    seed = Event.objects.filter(session_id=kept.id, type="user.message.created").latest("sequence")
    spec = Compact(through=seed.sequence - 1, note="Make room.")
    compact(actor=kept.actor, session_id=kept.id, spec=spec)
    later = Event.objects.filter(session_id=kept.id, type="context.compacted").latest("sequence")
    place = {"size": "200", "after": str(later.sequence)}
    inside = told_once(cast.page(path, done="undone", at=event, **place), **place)
    assert [address for address in inside if address.endswith("#detail")]
    assert "?size=200" in inside, "the way to the newest"
    assert f"?size=50&after={later.sequence}" in inside
    epochs = cast.page(f"sessions/{kept.id}/epochs/", made="2", after="2", size="50")
    assert "?size=50" in told_once(epochs)


def test_compactions_come_as_csv(cast: Cast, kept: LiveSession) -> None:
    response = cast.viewer.get(cast.url(f"sessions/{kept.id}/compactions.csv"))
    header, line = b"".join(response).decode().splitlines()
    assert header.startswith("event,at,state,first,through,tokens_before,tokens_after")
    assert line.startswith(f"{compaction_of(kept)},")
    assert ",standing," in line


def test_a_session_without_compactions_says_when_one_runs(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/compactions/")
    assert "Nothing was compacted" in page
    assert "Compact now…" in page


def test_undoing_is_previewed_and_brings_history_back(cast: Cast, kept: LiveSession) -> None:
    event = compaction_of(kept)
    address = cast.url(f"sessions/{kept.id}/compactions/{event}/undo/")
    preview = cast.operator.get(address).content.decode()
    assert "Comes back" in preview
    assert "Re-cached, once" in preview
    assert events(kept, "context.compaction.undone") == 0
    assert cast.viewer.post(address, {"reason": "No."}).status_code == 403
    done = cast.operator.post(address, {"reason": "It lost the thread."})
    assert done.status_code == 303
    page = cast.page(f"sessions/{kept.id}/compactions/", done="undone")
    assert "↩ undone" in page
    assert "history again" in page
    assert "Undo…" not in page
    entry = AuditEntry.objects.get(tenant_id=cast.tenant.id, action="compaction.undone")
    assert entry.reason == "It lost the thread."
    assert "It is undone already." in cast.operator.get(address).content.decode()


def test_compacting_now_is_previewed_with_its_net_cost(cast: Cast, kept: LiveSession) -> None:
    seed = Event.objects.filter(session_id=kept.id, type="user.message.created").last()
    assert seed is not None
    address = cast.url(f"sessions/{kept.id}/compactions/new/")
    query = {"through": str(seed.sequence - 1)}
    preview = cast.operator.get(address, query).content.decode()
    for text in ("Each later request", "Net cost", "Re-cached, once"):
        assert text in preview, text
    assert events(kept, "context.compacted") == 1
    assert cast.viewer.post(address, {**query, "reason": "No."}).status_code == 403
    done = cast.operator.post(address, {**query, "reason": "Room for the next one."})
    assert done.status_code == 303
    assert "done=compacted" in done["Location"]
    assert events(kept, "context.compacted") == 2


def test_what_cannot_be_compacted_says_why_and_offers_no_button(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/compactions/new/", merge="1")
    assert "Nothing is left to compact in that range." in page
    assert 'name="reason"' not in page
    bad = cast.operator.get(cast.url(f"sessions/{cast.session.id}/compactions/new/?through=x"))
    assert bad.status_code == 422


@pytest.mark.parametrize("form", ["pinned", "folded", "excluded"])
def test_history_is_marked_with_a_preview_and_released_again(cast: Cast, form: str) -> None:
    result = Event.objects.filter(session_id=cast.session.id, type="tool.result.received").first()
    assert result is not None
    scope = "item" if form == "excluded" else "unit"
    address = cast.url(f"sessions/{cast.session.id}/compactions/mark/")
    query = {"target": f"{result.sequence}.0", "form": form, "scope": scope}
    preview = cast.operator.get(address, query).content.decode()
    assert "What is meant" in preview
    assert events(cast.session, "context.presentation.set") == 0
    assert cast.viewer.post(address, {**query, "reason": "No."}).status_code == 403
    assert cast.operator.post(address, {**query, "reason": "Seen."}).status_code == 303
    page = cast.page(f"sessions/{cast.session.id}/compactions/")
    assert f"<b>{form}</b>" in page
    release = page.split("compactions/mark/?target=")[1].split('"')[0].replace("&amp;", "&")
    assert "form=automatic" in release
    fields = dict(part.split("=") for part in f"target={release}".split("&"))
    assert cast.operator.post(address, {**fields, "reason": "Over."}).status_code == 303
    assert f"<b>{form}</b>" not in cast.page(f"sessions/{cast.session.id}/compactions/")


def test_a_turn_is_marked_from_its_run_and_an_item_from_its_page(cast: Cast) -> None:
    runs = cast.page(f"sessions/{cast.session.id}/")
    assert "Pin turn…" in runs
    assert "form=folded&amp;scope=turn" in runs
    seed = Event.objects.filter(session_id=cast.session.id, type="user.message.created").first()
    assert seed is not None
    item = cast.page(f"sessions/{cast.session.id}/items/{seed.sequence}.0/")
    assert "Exclude…" in item
    turn = cast.page(
        f"sessions/{cast.session.id}/compactions/mark/",
        target=seed.sequence,
        form="folded",
        scope="turn",
    )
    assert "units" in turn
    for path in ("", f"items/{seed.sequence}.0/"):
        seen = cast.viewer.get(cast.url(f"sessions/{cast.session.id}/{path}")).content.decode()
        assert "compactions/mark" not in seen


def test_targets_that_do_not_go_with_a_form_are_told(cast: Cast) -> None:
    address = cast.url(f"sessions/{cast.session.id}/compactions/mark/")
    told = cast.operator.get(address, {"target": "3", "form": "excluded"}).content.decode()
    assert "Only a single item is excluded" in told
    assert cast.operator.get(address, {"target": "9999"}).status_code == 404
    assert cast.operator.get(address, {"target": "3", "form": "burnt"}).status_code == 422


def test_the_strip_shows_the_acts(cast: Cast, kept: LiveSession) -> None:
    found = cast.data(f"sessions/{kept.id}.json")
    titles = {act["title"] for act in found["view"]["acts"]}
    assert {"history compacted", "epoch rotated", "tool revoked", "tokens yielded"} <= titles


def test_the_page_asks_a_bounded_number_of_questions(
    cast: Cast, kept: LiveSession, django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(22):  # type: ignore[operator]
        cast.page(f"sessions/{kept.id}/compactions/")


def test_an_act_that_moves_no_token_is_not_said_to_cost(cast: Cast, kept: LiveSession) -> None:
    seed = Event.objects.filter(session_id=kept.id, type="user.message.created").last()
    assert seed is not None
    query = {"target": str(seed.sequence), "form": "pinned"}
    page = cast.operator.get(cast.url(f"sessions/{kept.id}/compactions/mark/"), query)
    assert "no request grows or shrinks" in page.content.decode()
    assert "does not pay" not in page.content.decode()


def test_a_range_that_is_covered_already_is_told_from_a_history_that_is_short(
    cast: Cast, kept: LiveSession
) -> None:
    address = cast.url(f"sessions/{kept.id}/compactions/new/")
    page = cast.operator.get(address, {"through": "8"}).content.decode()
    assert "up to event 8 no closed turn is left without a summary" in page


def test_undoing_promises_no_more_than_a_request_can_hold(db: None) -> None:
    runtime = Shrinker(window=30_000, policy=PolicySpec(history_floor=1_000))
    while not runtime.events(EventType.COMPACTED):
        runtime.talk(2, size=30)
        assert runtime.row.runs < 40
    (made,) = runtime.events(EventType.COMPACTED)
    tenant = Tenant.objects.get(id=runtime.actor.tenant_id)
    person = client_of(make_person(tenant, Role.OPERATOR))
    address = f"/t/{tenant.slug}/sessions/{runtime.session}/compactions/{made.sequence}/undo/"
    page = person.get(address).content.decode()
    told = re.search(
        r"Each later request.*?([\d,]+) tokens.*?Re-cached.*?([\d,]+) tokens", page, re.DOTALL
    )
    assert told is not None
    room = runtime.requests[-1].budget["body"]
    assert runtime.row.tokens > room
    assert all(0 < int(figure.replace(",", "")) <= room for figure in told.groups())
