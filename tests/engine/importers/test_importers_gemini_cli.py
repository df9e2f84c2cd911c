"""Gemini CLI's log of a chat: records that grow, rewinds, checkpoints, and results in more than one place."""

from __future__ import annotations

from typing import Any

from ctxengine.engine.importers.transcript import Transcript
from ctxengine.engine.items import ImagePart
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    items_of,
    only_session,
    read_records,
    read_value,
    text_of,
    types,
)

HEAD = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}
RESPONSE = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "hello"}}}


def said(key: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:00:0{len(key)}Z"
    return {"id": key, "timestamp": at, "type": kind, "content": content, **more}


def called(**more: Any) -> dict[str, Any]:
    return {"id": "c1", "name": "read", "args": {"path": "a"}, "status": "success", **more}


def chat(*records: dict[str, Any]) -> Transcript:
    transcript = read_records([HEAD, *records])
    assert transcript.format == "gemini_cli"
    assert_sound(transcript)
    return transcript


def test_a_record_that_grows_is_one_answer_in_its_last_version() -> None:
    tokens = {"input": 100, "cached": 60, "output": 5, "thoughts": 7, "tool": 11, "total": 123}
    session = only_session(
        chat(
            said("u", "user", [{"text": "Read a."}]),
            {"$set": {"lastUpdated": "2026-01-01T00:00:01Z"}},
            said("g", "gemini", "Yes.", tokens=None, model="m"),
            said("g", "gemini", "Yes.", tokens=tokens, model="m"),
            said("g", "gemini", "Yes.", tokens=tokens, model="m", toolCalls=[called(result=None)]),
            said(
                "g",
                "gemini",
                "Yes.",
                tokens=tokens,
                model="m",
                toolCalls=[called(result=[RESPONSE])],
            ),
            said("gg", "gemini", "It says hello."),
            {"$set": {"summary": "What a says"}},
        )
    )
    assert types(session) == ["user", "assistant", "result", "assistant"]
    assert session.title == "What a says"
    usage = session.entries[1].usage
    assert usage is not None and (usage.fresh, usage.cache_read, usage.output) == (51, 60, 12)
    by_code = {repair.code: repair.items for repair in session.repairs}
    assert (by_code["earlier_version"], by_code["session_head"]) == (3, 3)


def test_what_a_rewind_takes_back_is_a_child_session() -> None:
    transcript = chat(
        said("u", "user", "One."),
        said("g", "gemini", "First."),
        said("uu", "user", "Wrong."),
        said("gg", "gemini", "Lost."),
        {"$rewindTo": "uu"},
        said("uuu", "user", "Right."),
        said("ggg", "gemini", "Kept."),
        {"$rewindTo": "nobody knows"},
        said("uuuu", "user", "Anew."),
    )
    main, first, second = transcript.sessions
    assert [text_of(entry) for entry in main.entries] == ["Anew."]
    assert [text_of(entry) for entry in first.entries] == ["Wrong.", "Lost."]
    assert [text_of(entry) for entry in second.entries] == ["One.", "First.", "Right.", "Kept."]
    assert first.parent == second.parent == ("s", 0)


def test_a_checkpoint_is_a_summary_between_what_it_covers_and_what_it_keeps() -> None:
    call = {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}}
    session = only_session(
        chat(
            said("u", "user", "One."),
            said("g", "gemini", "First."),
            said("uu", "user", "Read a."),
            said("gg", "gemini", "", toolCalls=[called(result=[RESPONSE])]),
            {
                "$set": {
                    "messages": [
                        said("s", "user", [{"text": "<state_snapshot>x</state_snapshot>"}]),
                        said("uu", "user", [{"text": "Read a."}]),
                        said("gg", "gemini", [call], toolCalls=[called(result=[RESPONSE])]),
                        said("r", "user", [RESPONSE]),
                    ]
                }
            },
            said("ggg", "gemini", "It says hello."),
        )
    )
    assert types(session) == [
        "user", "assistant", "summary", "user", "assistant", "result", "assistant",
    ]  # fmt: skip
    assert {"repeated_call", "repeated_result"} <= set(codes(session))
    assert not any(entry.synthetic for entry in session.entries)


def test_results_of_a_whole_turn_in_every_call_are_taken_once_with_their_images() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "_-8"}}
    other = {"functionResponse": {"id": "c2", "name": "look", "response": {"output": ""}, "parts": [image]}}  # fmt: skip
    both = [RESPONSE, other]
    calls = [called(result=both), {**called(result=both), "id": "c2", "name": "look"}]
    session = only_session(
        chat(said("u", "user", "Both."), said("g", "gemini", "", toolCalls=calls))
    )
    assert types(session) == ["user", "assistant", "result", "result"]
    assert text_of(session.entries[2]) == "hello"
    (item,) = items_of(session.entries[3])
    # Google's clients write base64 in the letters that addresses allow.
    assert item.parts == (ImagePart("image/png", "/+8=", None),)


def test_a_history_kept_under_a_name_is_read_too() -> None:
    history = [
        {"role": "user", "parts": [{"text": "Hello."}]},
        {"role": "model", "parts": [{"text": "Good day."}]},
    ]
    for given in (history, {"history": history, "authType": "x"}):
        transcript = read_value(given)
        assert transcript.format == "google_generate_content"
        assert types(only_session(transcript)) == ["user", "assistant"]
        assert_sound(transcript)


def test_two_messages_of_one_id_are_two_messages() -> None:
    records = [
        said("1", "user", "One."),
        said("1", "gemini", "First."),
        said("", "user", "Two."),
        said("", "user", "Three."),
        said("", "gemini", "Second."),
    ]
    document = read_value({**HEAD, "messages": records})
    assert_sound(document)
    for transcript in (chat(*records), document):
        told = [text_of(entry) for entry in only_session(transcript).entries]
        assert told == ["One.", "First.", "Two.", "Three.", "Second."]


def test_a_document_has_no_versions() -> None:
    records = [said("a", "user", "One."), said("a", "user", "Two.")]
    transcript = read_value({**HEAD, "messages": records})
    assert [text_of(entry) for entry in only_session(transcript).entries] == ["One.", "Two."]


def test_a_version_that_says_something_else_is_kept_in_the_report() -> None:
    other = {**RESPONSE["functionResponse"], "response": {"output": "cut"}}
    session = only_session(
        chat(
            said("u", "user", "A secret wish."),
            said("u", "user", "Read a."),
            said("g", "gemini", "I", toolCalls=[called(result=None)]),
            said("g", "gemini", "I read.", toolCalls=[called(result=[RESPONSE])]),
            said(
                "g", "gemini", "I read.", toolCalls=[called(result=[{"functionResponse": other}])]
            ),
            said("g", "gemini", "I read."),
        )
    )
    kept = [(r.where, r.raw) for r in session.repairs if r.code == "replaced_version"]
    assert [where for where, _ in kept] == ["line 2", "line 5", "line 6"]
    assert "A secret wish." in kept[0][1] and "hello" in kept[1][1]
    assert codes(session).count("earlier_version") == 1


def test_a_rewind_takes_the_newest_message_of_an_id_and_leaves_the_older_ones() -> None:
    transcript = chat(
        said("a", "user", "One."),
        said("a", "gemini", "First."),
        {"$rewindTo": "a"},
        said("b", "user", "Two."),
        {"$rewindTo": "a"},
        said("b", "user", "Three."),
    )
    told = [[text_of(entry) for entry in session.entries] for session in transcript.sessions]
    assert told == [["Three."], ["First."], ["One.", "Two."]]


def test_who_speaks_of_a_summary_makes_none() -> None:
    session = only_session(
        chat(
            said("u", "user", "What is a <state_snapshot> good for?"),
            said("g", "gemini", "To go on."),
            said(
                "uu", "user", "And </state_snapshot>, or <state_snapshot>x</state_snapshot>, then?"
            ),
        )
    )
    assert types(session) == ["user", "assistant", "user"]


def test_nothing_that_stands_in_an_answer_is_lost() -> None:
    call = {"functionCall": {"id": "c1", "name": "read", "args": {}}}
    own = only_session(
        chat(said("u", "user", "Go."), said("g", "gemini", [call, RESPONSE, {"videoMetadata": {}}]))
    )
    assert types(own) == ["user", "assistant", "result"] and "setting" in codes(own)
    assert text_of(own.entries[2]) == "hello"
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    other = {"functionResponse": {"id": "c2", "name": "look", "response": {"output": "x"}}}
    calls = [called(result=[RESPONSE, other, image]), called(id="c2", name="look", result=[other])]
    both = only_session(chat(said("u", "user", "Go."), said("g", "gemini", "", toolCalls=calls)))
    (unplaced,) = [r for r in both.repairs if r.code == "unplaced_part"]
    assert "aGk=" in unplaced.raw
