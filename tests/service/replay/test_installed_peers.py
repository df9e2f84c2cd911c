"""Peer libraries as policies: left out where they are missing, held against the documented policy where they are there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.util import find_spec

import pytest

from ctxengine.engine.history.peers.conversation import PeerMessage, Shown
from ctxengine.engine.history.peers.policies import SlidingWindow
from ctxengine.engine.importers.registry import read
from ctxengine.service.replay import engines, installed_peers
from ctxengine.service.replay.cell import replay_cell
from ctxengine.service.replay.engines import LabEngine
from ctxengine.service.replay.figures import Cell
from ctxengine.service.replay.from_transcript import source_of_transcript
from ctxengine.service.replay.models import lab_model
from ctxengine.service.replay.reading import reading_of
from ctxengine.service.replay.wanted import ReplaySettings

AT = datetime(2026, 7, 1, tzinfo=UTC)


def cell(engine: str, *messages: tuple[str, str], budget: int) -> Cell:
    said = [{"role": role, "content": text} for role, text in messages]
    text = json.dumps({"model": "gpt-5.4", "messages": said})
    (foreign,) = read(text, name="chat.json").sessions
    reading = reading_of(source_of_transcript(foreign, name="chat"))
    settings = ReplaySettings(budget=budget)
    return replay_cell(reading, engine, lab_model("gpt-5.4"), settings, at=AT)


def test_a_library_that_is_missing_leaves_its_row_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_peers, "find_spec", lambda name: None)
    assert installed_peers.installed_peers() == {}


def test_the_table_holds_exactly_the_libraries_that_are_here() -> None:
    there = find_spec("langchain_core") is not None
    assert ("langchain_trim_messages" in engines.LAB_ENGINES) is there


def test_langchain_itself_keeps_what_its_documentation_says() -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed here")
    library, ours = installed_peers.LangChainTrim(), SlidingWindow()
    history: list[PeerMessage] = []
    for place in range(120):
        role = ("user", "assistant", "result", "assistant")[place % 4]
        history.append(PeerMessage(place, role, 40 + place * 7 % 90, "", role != "result"))  # type: ignore[arg-type]
        shown = [m.place for m in library.show(history, 1_500).messages]
        assert shown == [m.place for m in ours.show(history, 1_500).messages]
    assert not library.show([PeerMessage(0, "user", 2_000, "", True)], 1_500).messages


def test_a_policy_with_nothing_left_to_send_is_refused_and_not_priced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Nothing(SlidingWindow):
        def show(self, history: object, room: int) -> Shown:
            return Shown([])

    table = {"nothing": LabEngine("nothing", "gives nothing back", peer=Nothing)}
    monkeypatch.setattr(engines, "LAB_ENGINES", {**engines.LAB_ENGINES, **table})
    found = cell("nothing", ("user", "Hello?"), ("assistant", "Yes."), budget=20_000).totals
    assert found.refusals == {"nothing_left": 1} and found.steps == found.cost == 0


def test_a_refusal_says_which_class_did_not_fit() -> None:
    long = "What does /srv/app/main.py hold? " * 4_000
    found = cell("suffix", ("user", long), ("assistant", "Nothing."), budget=24_000)
    assert not found.skipped
    assert found.totals.refusals == {"budget_exceeded: user_input": 1}
    assert found.steps[0].refused == "budget_exceeded"
