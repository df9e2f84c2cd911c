"""The sample transcripts of this project and the report over them."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.report import as_json, items_in, report_lines
from ctxengine.engine.importers.transcript import EntryType, Transcript
from ctxengine.service.sample_data.long_session import long_session
from tests.engine.importers.accounts import assert_sound, codes, text_of

FOLDER = files("ctxengine.service.sample_data")
NAMES = sorted(f.name for f in FOLDER.iterdir() if f.name.endswith((".json", ".jsonl")))


def sample(name: str) -> Transcript:
    return read(FOLDER.joinpath(name).read_text(encoding="utf-8"), name=name)


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_is_in_the_format_its_name_says(name: str) -> None:
    transcript = sample(name)
    assert transcript.format == name.split(".")[1]
    assert_sound(transcript)
    for session in transcript.sessions:
        times = [entry.at for entry in session.entries if entry.at]
        assert all("2026-10-01" < time < "2026-12-01" for time in times)


def test_samples_are_in_different_formats_and_of_a_size_to_commit() -> None:
    assert len({sample(name).format for name in NAMES}) == len(NAMES) >= 4
    assert all(len(FOLDER.joinpath(name).read_bytes()) < 200_000 for name in NAMES)


def test_the_coding_sample_has_an_interrupted_call_and_a_sub_agent() -> None:
    main, child = sample("coding_agent.claude_code.jsonl").sessions
    assert "interrupted_call" in codes(main)
    assert child.parent is not None
    asked = main.entries[child.parent[1]]
    assert asked.type is EntryType.ASSISTANT and '"Task"' in asked.body


def test_the_research_sample_carries_an_injection_that_stays_untrusted() -> None:
    (session,) = sample("research_agent.anthropic_messages.json").sessions
    carriers = [
        entry for entry in session.entries if "replacing all earlier ones" in text_of(entry)
    ]
    assert [(entry.type, str(entry.trust)) for entry in carriers] == [
        (EntryType.RESULT, "EXTERNAL_UNTRUSTED")
    ]


def test_the_long_session_is_the_same_every_time_and_as_long_as_asked() -> None:
    text = long_session(300)
    assert long_session(300) == text
    assert long_session(300, seed=1) != text
    transcript = read(text, name="long")
    assert_sound(transcript)
    (session,) = transcript.sessions
    assert 300 <= session.items_in < 400
    assert codes(session, None).count("synthesised_tool") == 0


def test_the_report_counts_by_action_and_code_and_names_every_place() -> None:
    transcript = sample("support_agent.openai_chat.json")
    report = json.loads(json.dumps(as_json(transcript)))
    assert report["items_in"] == items_in(transcript)
    counts = {(row["action"], row["code"]): row for row in report["counts"]}
    assert counts["remapped", "duplicate_call_id"]["lines"] == 1
    assert counts["set_aside", "instructions"]["items"] == 1
    (session,) = report["sessions"]
    assert all(row["where"] for row in session["repairs"])
    lines = list(report_lines(transcript))
    assert lines[0].startswith("openai_chat: 1 session(s)")
    assert any("duplicate_call_id" in line for line in lines)
