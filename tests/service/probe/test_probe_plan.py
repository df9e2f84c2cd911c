"""`manage.py probe --plan` prints what a session would show under the profile just measured (capacity spec, Verification)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import CapacityRow, SideCallRow, Tenant
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.server import StrictServer
from tests.cast import Runtime, new_actor

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = "strict/horizon-6000"
TURNS = 14


@pytest.fixture(scope="module")
def strict() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture(autouse=True)
def reached(settings: Any, strict: StrictServer) -> None:
    settings.CTX_PROVIDER_URLS = {"openai": strict.openai_url}
    settings.CTX_PROVIDER_KEYS = {"openai": Secret("k" * 20)}


def lived(engine: str = "working_set") -> Runtime:
    """A session of another model that kept all of its turns whole."""
    player = Runtime(actor=new_actor(), window=200_000, extra={"engine": engine})
    for number in range(TURNS):
        player.turn(
            f"Tell me about harbour number{number} and its lamps.",
            f"Harbour number{number} has {number} lamps. " + "They shine at night. " * 60,
        )
    return player


def probed(player: Runtime, *more: str) -> str:
    """What the command prints."""
    out = StringIO()
    slug = Tenant.objects.get(id=player.actor.tenant_id).slug
    arguments = (f"openai/{MODEL}", "--max=8000", f"--tenant={slug}", *more)
    call_command("probe", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_plan_is_made_under_the_profile_and_tells_every_turn_once() -> None:
    player = lived()
    before = player.row.last_sequence
    data = json.loads(probed(player, f"--plan={player.session}", "--json"))
    plan, room = data["plan"], data["plan"]["room"]
    assert (plan["session"], plan["turns"]) == (str(player.session), TURNS)
    assert room["horizon"] == data["horizon"]["tokens"]
    assert plan["tokens"] <= room["tokens"] <= room["usable"] - room["prefix"]
    assert room["usable"] <= data["horizon"]["tokens"]
    told = [n for form in plan["forms"] for n in range(form["first"], form["last"] + 1)]
    assert told == list(range(1, TURNS + 1))
    assert all(form["turns"] == form["last"] - form["first"] + 1 for form in plan["forms"])
    assert {form["form"] for form in plan["forms"]} >= {"card"}
    assert player.row.last_sequence == before
    assert player.events(EventType.WORKING_SET_PLANNED)[-1].payload["room"]["horizon"] == 200_000


def test_the_probe_stands_behind_the_prefix_of_the_planned_session() -> None:
    player = lived()
    probed(player, f"--plan={player.session}")
    row = CapacityRow.objects.get(tenant_id=player.actor.tenant_id)
    assert row.session_id == player.session


def test_people_read_forms_tokens_and_room() -> None:
    player = lived()
    said = probed(player, f"--plan={player.session}", "--about=And harbour number3?").splitlines()
    assert said[0].startswith(f"openai/{MODEL}: follows instructions up to")
    assert re.match(
        rf"Session {player.session}: {TURNS} closed turns, [\d,]+ tokens of [\d,]+ for them \([\d,]+ usable, less "
        r"[\d,]+ prefix, [\d,]+ fresh rows, [\d,]+ open turn\)\.",
        said[1],
    )
    assert any(re.match(r"  turns \d+ to \d+: card", line) for line in said[2:])
    assert "  turn 4: promoted" in said


def test_without_a_plan_nothing_is_said_of_one() -> None:
    player = lived()
    assert "plan" not in json.loads(probed(player, f"--session={player.session}", "--json"))


def test_an_engine_that_plans_nothing_says_so() -> None:
    player = lived("suffix")
    assert json.loads(probed(player, f"--plan={player.session}", "--json"))["plan"] is None
    said = probed(player, f"--plan={player.session}").splitlines()
    assert said[1] == f"Session {player.session}: its engine plans no turns by a profile."


def test_an_unknown_session_is_told_before_any_model_is_asked() -> None:
    player = lived("suffix")
    with pytest.raises(CommandError):
        probed(player, f"--plan={uuid.uuid4()}", f"--session={player.session}")
    assert not SideCallRow.objects.filter(tenant_id=player.actor.tenant_id).exists()
