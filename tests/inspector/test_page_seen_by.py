"""P8: packets as brackets over turns, the values of the plan in force, and the session as another model would see it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from ctxengine.engine.capacity.profile import Horizon, metadata_profile
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Membership, Tenant
from ctxengine.service.probe.profiles import keep_profile
from tests.cast import AT, Runtime
from tests.service.working_set.test_loop import live, opened, plans

pytestmark = pytest.mark.django_db

LARGE = "claude-opus-4-8"
TURNS = 18


@pytest.fixture
def long() -> Runtime:
    """A session of a small model, most of whose turns stand in a packet."""
    runtime = opened(6_500)
    live(runtime, TURNS, lines=30)
    return runtime


def viewer_of(runtime: Runtime, users: Any) -> Client:
    """Somebody who may look."""
    user = users.objects.create_user("vera", password="x")
    Membership.objects.create(
        tenant_id=runtime.actor.tenant_id, user=user, role="viewer", created_at=AT
    )
    client = Client()
    client.force_login(user)
    return client


def address(runtime: Runtime, name: str, twin: str = "html") -> str:
    slug = Tenant.objects.get(id=runtime.actor.tenant_id).slug
    return reverse(f"inspector:{name}", args=[slug, runtime.session, twin])


def listed(viewer: Client, runtime: Runtime) -> Any:
    """The list of turns as data."""
    answer = viewer.get(address(runtime, "session-turns", "json"))
    return json.loads(b"".join(answer.streaming_content))  # type: ignore[arg-type]


def seen(viewer: Client, runtime: Runtime, **asked: str) -> Any:
    answer = viewer.get(address(runtime, "turns-seen-by", "json"), asked)
    assert answer.status_code == 200
    return answer.json()


def test_a_long_session_is_looked_at(long: Runtime, django_user_model: Any) -> None:
    """One session for all, since it is long in the making."""
    viewer = viewer_of(long, django_user_model)
    turns_carry_the_values_of_the_plan_in_force(viewer, long)
    a_packet_is_a_bracket_over_the_turns_it_covers(viewer, long)
    the_page_works_as_plain_html(viewer, long)
    the_directive_decides_what_is_brought_back(viewer, long)
    another_models_view_is_planned_on_its_profile_and_nothing_is_written(viewer, long)


def another_models_view_is_planned_on_its_profile_and_nothing_is_written(
    viewer: Client, long: Runtime
) -> None:
    small = plans(long)[-1]
    assert small["packet"] is not None
    events, requests = len(long.events()), len(long.requests)
    own = seen(viewer, long)
    assert own["seen"]["record"]["packet"] == small["packet"] and not own["seen"]["packet_missing"]
    facts = metadata_profile(
        provider="anthropic", model=LARGE, declared_window=1_000_000, max_output=8_192
    )
    keep_profile(tenant_id=long.actor.tenant_id, profile=facts)
    large = seen(viewer, long, model=f"anthropic/{LARGE}")
    assert large["seen"]["record"]["packet_through"] == 0
    assert large["seen"]["record"]["profile"]["horizon"] == 1_000_000
    forms = {turn["form"] for turn in large["turns"]}
    assert forms <= {"full", "promoted", "sent"} and len(large["turns"]) == TURNS
    assert sum(count["turns"] for count in large["counts"]) == TURNS
    assert any(turn["differs"] for turn in large["turns"])
    tiny = facts.model_copy(
        update={"model": "tiny", "horizon": Horizon(tokens=4_000, confidence=1)}
    )
    keep_profile(tenant_id=long.actor.tenant_id, profile=tiny)
    less = seen(viewer, long, model="anthropic/tiny")["seen"]
    assert less["record"]["tokens"] <= max(0, less["record"]["room"]["tokens"])
    assert (len(long.events()), len(long.requests)) == (events, requests)


def the_directive_decides_what_is_brought_back(viewer: Client, long: Runtime) -> None:
    found = seen(viewer, long, **{"for": "What did part3.txt hold?"})
    (turn,) = [turn for turn in found["turns"] if turn["card"]["number"] == 4]
    assert turn["relevance"] == 1.0


def the_page_works_as_plain_html(viewer: Client, long: Runtime) -> None:
    page = viewer.get(address(long, "turns-seen-by")).content.decode()
    assert f'<option value="anthropic/{long.model}" selected>' in page
    assert "nothing is written" in page and "is stored and would be used again" in page
    turns = viewer.get(address(long, "session-turns")).content.decode()
    assert address(long, "turns-seen-by") in turns


@pytest.mark.parametrize("model", ["nobody/<b>none", "anthropic", "\x01", "anthropic/" + "x" * 900])
def test_an_unknown_model_is_said_to_be_none(model: str, django_user_model: Any) -> None:
    long = opened()
    viewer = viewer_of(long, django_user_model)
    answer = viewer.get(address(long, "turns-seen-by"), {"model": model})
    assert answer.status_code in {400, 404}
    assert "<b>none" not in answer.content.decode()


def turns_carry_the_values_of_the_plan_in_force(viewer: Client, long: Runtime) -> None:
    values = plans(long)[-1]["values"]
    assert values
    page = listed(viewer, long)
    for turn in page:
        recorded = values.get(str(turn["card"]["number"]))
        shown = [turn["recency"], turn["relevance"], turn["anaphora"]]
        assert shown == ([None] * 3 if recorded is None else [part / 1000 for part in recorded])


def a_packet_is_a_bracket_over_the_turns_it_covers(viewer: Client, long: Runtime) -> None:
    plan = plans(long)[-1]
    turns = listed(viewer, long)
    places = [turn["brackets"][0] for turn in turns]
    last = plan["packet_turn"]
    assert places == ["start", *["inside"] * (last - 2), "end", *[""] * (len(turns) - last)]
    page = viewer.get(address(long, "session-turns")).content.decode()
    assert f"packet {plan['packet']}</a> over turns 1 to {last}, in force" in page
    made = long.events(EventType.COMPACTED)
    assert plan["packet"] in {event.sequence for event in made}


def test_a_session_of_another_engine_says_where_to_look(django_user_model: Any) -> None:
    other = Runtime()
    viewer = viewer_of(other, django_user_model)
    other.turn("Hello?", "Hello.")
    page = viewer.get(address(other, "turns-seen-by"))
    assert page.status_code == 200 and "Replay it in the lab" in page.content.decode()
    assert "turns/seen-by" not in viewer.get(address(other, "session-turns")).content.decode()
