"""Real transcripts of other people's tools: each is read, accounted for, and read the same twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxengine.engine.importers.registry import FORMATS, detect, read
from ctxengine.engine.importers.report import as_json, report_lines
from tests.engine.importers.accounts import assert_sound, codes, only_session, types

pytestmark = pytest.mark.corpus


def text_of_file(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_file_of_a_format_is_read_and_accounted_for(
    corpus_folder: Path, format_name: str
) -> None:
    paths = sorted((corpus_folder / format_name).iterdir())
    assert paths
    for path in paths:
        text = text_of_file(path)
        transcript = read(text, name=path.name)
        assert transcript.format == format_name, path.name
        assert_sound(transcript)
        assert read(text, name="another name") == transcript
        assert detect(text) == format_name
        assert list(report_lines(transcript))
        assert as_json(transcript)["items_in"] > 0


def test_benchmark_episodes_are_sessions_and_reused_ids_stay_two_calls(corpus_folder: Path) -> None:
    (path,) = (corpus_folder / "openai_chat").glob("tau-airline*")
    transcript = read(text_of_file(path), name=path.name)
    assert len(transcript.sessions) == 120
    remapped = [s for s in transcript.sessions if "duplicate_call_id" in codes(s)]
    assert len(remapped) == 36
    entries = [entry for session in transcript.sessions for entry in session.entries]
    assert sum(entry.type == "result" for entry in entries) == 810
    assert not any(entry.synthetic for entry in entries)


def test_lines_of_one_message_are_one_answer_with_its_usage_once(corpus_folder: Path) -> None:
    text = text_of_file(corpus_folder / "claude_code" / "agentcmd-full-session-four.jsonl")
    session = only_session(read(text, name="session"))
    answers = [entry for entry in session.entries if entry.type == "assistant"]
    assert len(answers) == 30
    assert sum(a.usage.output or 0 for a in answers if a.usage) == 228
    assert types(session)[:4] == ["input", "input", "input", "user"]


def test_calls_at_the_end_of_an_interrupted_file_are_closed(corpus_folder: Path) -> None:
    text = text_of_file(corpus_folder / "claude_code" / "agentcmd-full-session-three.jsonl")
    session = only_session(read(text, name="session"))
    synthetic = [entry for entry in session.entries if entry.synthetic]
    assert len(synthetic) == 3
    assert session.entries[-3:] == synthetic
    assert all(entry.is_error for entry in synthetic)


def test_compaction_is_billed_by_its_iterations(corpus_folder: Path) -> None:
    name = "anthropic_compaction_usage_with_cache.exchanges.json"
    text = text_of_file(corpus_folder / "anthropic_messages" / name)
    session = only_session(read(text, name=name))
    assert types(session) == ["user", "summary", "assistant"]
    usage = session.entries[-1].usage
    assert usage is not None
    assert (usage.fresh, usage.cache_write) == (329, 55_096)


def test_a_server_tool_that_is_still_open_is_no_broken_pair(corpus_folder: Path) -> None:
    name = "in_flight_native_tool_call_history_is_accepted.exchanges.json"
    session = only_session(
        read(text_of_file(corpus_folder / "anthropic_messages" / name), name=name)
    )
    assert not any(entry.synthetic for entry in session.entries)
    assert codes(session) == []


def test_a_rewritten_history_is_another_session_and_a_refused_request_has_no_answer(
    corpus_folder: Path,
) -> None:
    name = "openai_responses_thinking_with_modified_history.exchanges.json"
    transcript = read(text_of_file(corpus_folder / "openai_responses" / name), name=name)
    assert [types(session) for session in transcript.sessions] == [
        ["user", "assistant"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant"],
    ]
    assert "failed_exchange" in codes(transcript.sessions[1])


def test_an_explicit_compaction_continues_its_conversation(corpus_folder: Path) -> None:
    name = "openai_responses_compact_messages.exchanges.json"
    session = only_session(read(text_of_file(corpus_folder / "openai_responses" / name), name=name))
    assert types(session) == [
        "user",
        "assistant",
        "user",
        "assistant",
        "summary",
        "user",
        "assistant",
    ]


def test_a_rollout_keeps_each_thing_once_though_events_say_it_again(corpus_folder: Path) -> None:
    text = text_of_file(corpus_folder / "codex_rollout" / "rollout-2025-09-24-A.jsonl")
    session = only_session(read(text, name="rollout"))
    answers = [entry for entry in session.entries if entry.type == "assistant"]
    assert len(answers) == 132
    assert all(answer.usage is not None and answer.model == "gpt-5-codex" for answer in answers)
    assert not any("encrypted_content" in entry.body for entry in session.entries)
    assert {r.code: r.items for r in session.repairs}["reasoning"] == 125
