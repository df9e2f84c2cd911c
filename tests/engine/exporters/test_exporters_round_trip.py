"""Out and back in: a session exported and imported again says the same things in the same order."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given

from ctxengine.engine.exporters.registry import FORMATS
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import Transcript
from ctxengine.service.sample_data.long_session import long_session
from tests.engine.exporters.conversations import Turn, anthropic_body, chat_body, turns
from tests.engine.exporters.journeys import Journey, round_trip
from tests.engine.importers.accounts import only_session

HARMLESS = {"note_as_user", "repaired_result", "phase", "separate_messages", "time_order"}
"""What an export can leave out without an item of another kind or text coming back."""


def assert_same(journey: Journey, name: str = "") -> None:
    assert journey.before, name
    assert journey.after == journey.before, name
    journey.out.text.encode()
    json.loads(journey.out.text, parse_constant=refuse)


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.fixture(scope="module")
def corpus(corpus_folder: Path) -> list[tuple[str, Transcript]]:
    """Every transcript of the corpus with its name, read once."""
    found = []
    for path in sorted(corpus_folder.glob("*/*")):
        try:
            found.append((path.name, read(path.read_text(encoding="utf-8"), name=path.name)))
        except NotATranscript:
            continue
    return found


@pytest.mark.corpus
def test_every_real_transcript_comes_back_from_its_own_family(
    corpus: list[tuple[str, Transcript]],
) -> None:
    formats = set()
    for name, transcript in corpus:
        # The benchmark's 120 episodes are alike; every tenth is looked at.
        for session in transcript.sessions[:: 10 if len(transcript.sessions) > 20 else 1]:
            journey = round_trip(session)
            assert_same(journey, name)
            assert {line.code for line in journey.out.left_out} <= HARMLESS, name
            formats.add(journey.format)
    assert formats == set(FORMATS)


@pytest.mark.corpus
@pytest.mark.parametrize("format", FORMATS)
def test_a_real_transcript_in_any_format_differs_by_what_the_report_says_alone(
    corpus: list[tuple[str, Transcript]], format: str
) -> None:
    for name, transcript in corpus:
        for session in transcript.sessions[:: 40 if len(transcript.sessions) > 20 else 1]:
            journey = round_trip(session, format)
            if {line.code for line in journey.out.left_out} <= HARMLESS:
                assert_same(journey, name)
            else:
                assert format != "otel_genai", "spans have a place for everything"


@pytest.mark.parametrize(
    "name",
    [
        "coding_agent.claude_code.jsonl",
        "support_agent.openai_chat.json",
        "research_agent.anthropic_messages.json",
        "migration_agent.codex_rollout.jsonl",
    ],
)
def test_every_sample_comes_back(name: str) -> None:
    text = files("ctxengine.service.sample_data").joinpath(name).read_text(encoding="utf-8")
    for session in read(text, name=name).sessions:
        assert_same(round_trip(session))


def test_a_long_session_comes_back_from_spans_that_do_not_repeat_its_history() -> None:
    text = long_session(300)
    session = only_session(read(text, name="long"))
    journey = round_trip(session, "otel_genai")
    assert_same(journey)
    assert len(journey.out.text) < 3 * len(json.dumps(json.loads(text)))


@given(turns(broken=True))
def test_any_chat_session_comes_back_as_chat_and_as_spans(conversation: list[Turn]) -> None:
    session = only_session(read(chat_body(conversation), name="chat"))
    assert_same(round_trip(session))
    assert_same(round_trip(session, "otel_genai"))


@given(turns(broken=False))
def test_any_chat_session_comes_back_as_messages(conversation: list[Turn]) -> None:
    session = only_session(read(chat_body(conversation), name="chat"))
    assert_same(round_trip(session, "anthropic_messages"))


@given(turns(broken=False))
def test_any_messages_session_comes_back_as_messages_and_as_spans(
    conversation: list[Turn],
) -> None:
    session = only_session(read(anthropic_body(conversation), name="messages"))
    assert_same(round_trip(session))
    assert_same(round_trip(session, "otel_genai"))


@given(turns(broken=False))
def test_any_messages_session_comes_back_as_chat_but_for_the_marks_of_failure(
    conversation: list[Turn],
) -> None:
    session = only_session(read(anthropic_body(conversation), name="messages"))
    journey = round_trip(session, "openai_chat")
    unmarked = [said._replace(is_error=False) for said in journey.before]
    assert journey.after == unmarked
    failed = sum(said.is_error for said in journey.before)
    lost = {line.code: line.items for line in journey.out.left_out}
    assert lost == ({"error_flag": failed} if failed else {})
