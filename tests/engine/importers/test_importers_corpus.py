"""Real transcripts of other people's tools: each is read, accounted for, and read the same twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import FORMATS, detect, read
from ctxengine.engine.importers.report import as_json, report_lines
from tests.engine.importers.accounts import assert_sound, codes, only_session, types

pytestmark = pytest.mark.corpus


def text_of_file(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


NOT_IN_THE_CORPUS = {"otel_genai", "cline_history"}
SAME_AS_ANOTHER = {"fncall-llm-message.json": "openai_chat"}
"""Files that hold nothing of the tool that wrote them."""
WITHOUT_CONVERSATION = {
    "log_tool_call_error.json": "no message that can be read",
    "log_with_nan.txt": "holds no samples",
}
"""Files that are broken or empty on purpose, and what is said about them."""


@pytest.mark.parametrize("format_name", sorted(set(FORMATS) - NOT_IN_THE_CORPUS))
def test_every_file_of_a_format_is_read_and_accounted_for(
    corpus_folder: Path, format_name: str
) -> None:
    paths = sorted((corpus_folder / format_name).iterdir())
    assert paths
    for path in paths:
        text = text_of_file(path)
        if path.name in WITHOUT_CONVERSATION:
            continue
        expected = SAME_AS_ANOTHER.get(path.name, format_name)
        transcript = read(text, name=path.name)
        assert transcript.format == expected, path.name
        assert_sound(transcript)
        assert read(text, name="another name") == transcript
        assert detect(text) == expected
        assert list(report_lines(transcript))
        assert as_json(transcript)["items_in"] > 0


def test_files_without_a_conversation_are_refused_by_name(corpus_folder: Path) -> None:
    for name, words in WITHOUT_CONVERSATION.items():
        with pytest.raises(NotATranscript) as refusal:
            read(text_of_file(corpus_folder / "inspect_ai_log" / name), name=name)
        assert refusal.value.reason.startswith(name) and words in refusal.value.reason


def test_every_folder_of_the_corpus_has_a_reader(corpus_folder: Path) -> None:
    folders = {path.name for path in corpus_folder.iterdir() if path.is_dir()}
    assert folders <= set(FORMATS)


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


def test_a_trajectory_gives_each_call_once_though_its_steps_repeat_everything(
    corpus_folder: Path,
) -> None:
    name = "marshmallow-function_calling_replace_from_source.traj"
    session = only_session(read(text_of_file(corpus_folder / "swe_agent_traj" / name), name=name))
    assert types(session).count("assistant") == types(session).count("result") == 13
    assert codes(session).count("duplicate_call_id") == 4


def test_observations_in_the_users_role_are_no_directives(corpus_folder: Path) -> None:
    for folder, name in (
        ("swe_agent_traj", "ctf-web-i_got_id_demo.traj"),
        ("mini_swe_agent", "github_issue.traj.json"),
    ):
        session = only_session(read(text_of_file(corpus_folder / folder / name), name=name))
        assert types(session).count("user") == 1


def test_aborted_steps_and_compactions_of_a_long_session(corpus_folder: Path) -> None:
    text = text_of_file(corpus_folder / "pi_session" / "before-compaction.jsonl")
    session = only_session(read(text, name="session"))
    counted = {kind: types(session).count(kind) for kind in ("user", "result", "summary")}
    assert counted == {"user": 55, "result": 454, "summary": 2}
    assert sum(entry.synthetic for entry in session.entries) == 6
    assert codes(session).count("empty_message") == 13


def test_private_thoughts_written_into_texts_are_not_kept(corpus_folder: Path) -> None:
    text = text_of_file(corpus_folder / "openhands_events" / "goal-events.jsonl")
    session = only_session(read(text, name="events"))
    kept = "".join(entry.body + entry.extra for entry in session.entries)
    assert "<think>" not in kept and "Let me analyze" not in kept
    assert codes(session).count("orphan_result") == 1


def test_results_that_only_tool_spans_carry_find_their_calls(corpus_folder: Path) -> None:
    name = "claude-agent-2025-12-22.trace.json"
    text = text_of_file(corpus_folder / "langfuse_otel_trace" / name)
    session = only_session(read(text, name=name))
    assert types(session) == [
        "user", "assistant", "assistant", "result", "assistant", "result", "assistant",
    ]  # fmt: skip
    assert not any(entry.synthetic for entry in session.entries)
