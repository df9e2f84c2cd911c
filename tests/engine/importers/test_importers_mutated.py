"""Whatever stands in the place of a value, in any record of any format: what a reader gives can be decoded and adds up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import EntryType
from ctxengine.engine.trust.levels import Trust
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    only_session,
    read_records,
    text_of,
    types,
)
from tests.engine.importers.test_importers_nulls import FILES

Path = tuple[str | int, ...]


def record(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    about = {"uuid": f"u{number}", "sessionId": "s", "timestamp": "2026-10-14T09:00:00.000Z"}
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m{number // 2}", "model": "claude", "usage": {"output_tokens": 3}}
    return {"type": kind, "parentUuid": f"u{number - 1}" if number else None, **about, "message": message, **more}  # fmt: skip


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"n": 1}}
QUEUED = {"type": "queued_command", "prompt": [text("Also this.")], "commandMode": "prompt"}
AGENT = {"type": "agent_progress", "agentId": "scout", "message": record(90, "user", "Look.")}
LINES = [
    record(0, "user", [text("Earlier we went on.")], isCompactSummary=True),
    record(1, "user", [text("<ide_selection>x</ide_selection>"), IMAGE, text("Go.")]),
    record(2, "assistant", [{"type": "thinking", "thinking": "h", "signature": "c2ln"}, text("I.")]),
    record(3, "assistant", [USE]),
    {"type": "progress", "sessionId": "s", "uuid": "u80", "data": AGENT, "parentToolUseID": "t"},
    record(4, "user", [{"type": "tool_result", "tool_use_id": "t", "content": [text("out")]}],
           toolUseResult={"stdout": "out"}),
    {"type": "attachment", "uuid": "u5", "parentUuid": "u4", "sessionId": "s", "attachment": QUEUED},
    record(6, "user", "Stop hook feedback", isMeta=True),
    record(7, "assistant", [text("Done.")]),
    {"type": "summary", "summary": "Going on", "leafUuid": "u7"},
]  # fmt: skip

GIVEN: list[Any] = [None, True, 7, "words", [], {}, ["words"], [7], [None], [[]], {"text": "t"},
    [{"text": "t"}], text("t"), [text("t"), IMAGE], [IMAGE], [text("t"), {"type": "text", "text": 7}],
    {"type": "text"}, [USE], USE, [{"type": "tool_result", "tool_use_id": "t", "content": "again"}],
    {"type": "tool_result", "tool_use_id": 7, "is_error": 1, "content": 7}, {"type": "thinking", "thinking": "h"},
]  # fmt: skip
"""What may stand where something else belongs."""


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()  # fmt: skip
    for key, below in inner:
        yield from places(below, (*at, key))


def with_given(value: Any, at: Path, given: Any) -> Any:
    if not at:
        return given
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = with_given(copy[at[0]], at[1:], given)
    return copy


def assert_can_be_taken_in(written: str) -> None:
    try:
        transcript = read(written, name="given")
    except NotATranscript:
        return
    assert_sound(transcript)


SUMMED = st.sampled_from([at for at in places(LINES) if at[0] in (0, len(LINES) - 1)])


@given(st.sampled_from(list(places(LINES))) | SUMMED, st.sampled_from(GIVEN))
def test_every_record_of_a_coding_session_can_be_taken_in(at: Path, given: Any) -> None:
    lines = with_given(LINES, at, given)
    assert_can_be_taken_in("".join(json.dumps(line) + "\n" for line in lines))


@given(st.data())
def test_every_document_of_every_api_can_be_taken_in(data: st.DataObject) -> None:
    document = FILES[data.draw(st.sampled_from(sorted(FILES)))]
    at = data.draw(st.sampled_from(list(places(document))))
    changed = with_given(document, at, data.draw(st.sampled_from(GIVEN)))
    lines = isinstance(changed, list) and data.draw(st.booleans())
    written = "".join(json.dumps(v) + "\n" for v in changed) if lines else json.dumps(changed)
    assert_can_be_taken_in(written)


def summary_of(content: Any, *, flagged: bool) -> dict[str, Any]:
    if flagged:
        return record(0, "user", content, isCompactSummary=True)
    return {"type": "summary", "summary": content, "sessionId": "s"}


@pytest.mark.parametrize("flagged", [True, False])
@pytest.mark.parametrize(
    ("content", "is_mended"),
    [("Before.", False), ([text("Before.")], False), ([text("Before."), IMAGE], False),
     (text("Before."), True), ([{"text": "Before."}], True), ({"text": "Before."}, True), (["Before.", IMAGE], True)],
)  # fmt: skip
def test_a_summary_in_any_form_is_one(content: Any, is_mended: bool, flagged: bool) -> None:
    transcript = read_records([summary_of(content, flagged=flagged), record(1, "user", "Go.")])
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["summary", "user"]
    assert session.entries[0].trust is Trust.EXTERNAL_UNTRUSTED
    assert text_of(session.entries[0]).startswith("Before.")
    assert codes(session) == (["mended_message"] if is_mended else [])


@pytest.mark.parametrize("flagged", [True, False])
def test_a_part_of_a_summary_that_nobody_can_read_leaves_it_alone(flagged: bool) -> None:
    odd = {"type": "text", "text": 7}
    session = only_session(
        read_records(
            [summary_of([text("Before."), odd], flagged=flagged), record(1, "user", "Go.")]
        )
    )
    assert types(session) == ["summary", "user"] and text_of(session.entries[0]) == "Before."
    assert "unreadable_part" in codes(session)


@pytest.mark.parametrize("flagged", [True, False])
@pytest.mark.parametrize("content", [[USE], [text("x"), LINES[5]["message"]["content"][0]],
                                     LINES[5]["message"]["content"], 7, [], [[]]])  # fmt: skip
def test_a_summary_calls_and_answers_nothing(content: Any, flagged: bool) -> None:
    lines = [record(0, "user", "Go."), record(1, "assistant", [USE]), summary_of(content, flagged=flagged)]  # fmt: skip
    transcript = read_records(lines)
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result"]
    assert session.entries[2].synthetic and "unreadable_record" in codes(session)
    assert not any(entry.type is EntryType.SUMMARY for entry in session.entries)
