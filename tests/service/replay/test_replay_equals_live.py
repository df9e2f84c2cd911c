"""A live session replayed in the lab as it was: the same bytes at every step, whatever stood in its way."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.pin import set_presentation
from ctxengine.service.replay.cell import replay_cell
from ctxengine.service.replay.from_ledger import source_of_session
from ctxengine.service.replay.models import LabModel
from ctxengine.service.replay.reading import reading_of
from ctxengine.service.replay.wanted import ReplaySettings
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import MemoryLine, PolicySpec, Present
from tests.cast import PROVIDERS, Runtime
from tests.service.boundary.talking import session, strict_provider, take_turns

pytestmark = pytest.mark.django_db

SMALL = PolicySpec(policy_cap=20_000, history_floor=0, summary_tokens=600)


def lived(runtime: Runtime, turns: int = 4, words: int = 900) -> Runtime:
    """Some turns with tools, results of which are long."""
    for turn in range(turns):
        runtime.ask(f"Look into /srv/app/part_{turn}.py and say what `limit_{turn}` is.")
        for step in range(2):
            name = f"call-{turn}-{step}"
            runtime.look(name, f"limit_{turn} = {turn}{step}42 " + f"line {turn} {step} " * words)
        runtime.assemble()
        runtime.say(f"It is {turn}142, as /srv/app/part_{turn}.py says.")
    return runtime


def hashes(runtime: Runtime) -> list[str]:
    return [row.request_sha256 for row in runtime.requests]


def replayed(runtime: Runtime, settings: ReplaySettings | None = None) -> list[str]:
    source = source_of_session(actor=runtime.actor, session_id=runtime.session)
    model = LabModel(runtime.provider, runtime.model)
    cell = replay_cell(reading_of(source), source.engine, model, settings or ReplaySettings())
    return [step.request_sha256 for step in cell.steps]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_session_within_its_budget_has_the_same_hashes_in_the_lab(provider: str) -> None:
    runtime = lived(Runtime(provider=provider))
    assert replayed(runtime) == hashes(runtime)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_cuts_and_summaries_under_pressure_are_the_same_in_the_lab(provider: str) -> None:
    runtime = lived(Runtime(provider=provider, policy=SMALL), turns=6, words=1_500)
    assert runtime.row.pressure_count, "nothing yielded: the test shows nothing"
    assert replayed(runtime) == hashes(runtime)


def test_a_working_set_that_shrinks_turns_to_cards_is_the_same_in_the_lab() -> None:
    runtime = lived(Runtime(policy=SMALL, extra={"engine": "working_set"}), turns=10, words=120)
    planned = runtime.events(EventType.WORKING_SET_PLANNED)
    assert planned[-1].payload["full_from"] > 1, "every turn is full: the test shows nothing"
    assert replayed(runtime) == hashes(runtime)


def test_a_boundary_session_below_its_trigger_is_the_same_in_the_lab() -> None:
    runtime = lived(Runtime(extra={"engine": "boundary"}), turns=4, words=120)
    assert replayed(runtime) == hashes(runtime)


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5"])
def test_fresh_rows_that_stay_where_they_were_sent_are_the_same_in_the_lab(model: str) -> None:
    runtime = lived(Runtime(model=model, policy=SMALL), turns=5, words=1_200)
    assert replayed(runtime) == hashes(runtime)


def test_recall_lines_and_corrections_of_a_step_are_those_that_were_read() -> None:
    runtime = Runtime()
    runtime.ask("What do I like?")
    runtime.assemble(recall=(MemoryLine(id="m1", text="Likes tea."),))
    runtime.say("Tea.")
    runtime.ask("And?")
    runtime.assemble(corrections=(MemoryLine(id="c1", text="Coffee, in fact."),))
    runtime.say("Coffee.")
    assert replayed(runtime) == hashes(runtime)


def test_acts_of_an_operator_and_a_new_epoch_stay_where_they_stood() -> None:
    runtime = lived(Runtime(), turns=3)
    first = runtime.events(EventType.USER_MESSAGE)[0]
    spec = Present(target=str(first.sequence), scope="turn", form="folded")
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
    rotate_epoch(actor=runtime.actor, session_id=runtime.session, reason="operator", note="Why.")
    lived(runtime, turns=2)
    assert replayed(runtime) == hashes(runtime)


def test_a_boundary_session_behind_its_providers_own_window_is_the_same_in_the_lab(
    settings: Any,
) -> None:
    with strict_provider(settings) as strict:
        runtime = session("anthropic")
        take_turns(runtime, strict, 0, 20, words=1_600)
    made = runtime.events(EventType.COMPACTED)
    assert {event.payload["kind"] for event in made} == {"native"}, "no window: it shows nothing"
    assert replayed(runtime) == hashes(runtime)
