"""Whose a block in the user's role is: what says nothing of itself is his who speaks beside it; calls are the model's alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.anthropic_messages import add_anthropic_message, content_turn
from ctxengine.engine.importers.claude_notes import voice_of
from ctxengine.engine.importers.dialect import USER_VOICE
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.transcript import EntryType, ForeignSession
from ctxengine.engine.items import ItemKind, TextPart
from ctxengine.engine.lexeme import parse
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

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
USE = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "seen"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def heard(session: ForeignSession) -> list[tuple[str, str]]:
    return [(str(entry.type), entry.trust.name) for entry in session.entries]


def record(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content}
    return {"type": kind, "message": message, "sessionId": "s", "parentUuid": None, **more}


@pytest.mark.parametrize("block", [IMAGE, DOCUMENT])
@pytest.mark.parametrize(
    "named",
    [{"isMeta": True}, {"origin": {"kind": "task-notification"}}, {"origin": {"kind": "x"}}],
)
def test_what_a_harness_shows_is_not_the_users(
    block: dict[str, Any], named: dict[str, Any]
) -> None:
    transcript = read_records([record("user", [block], **named), record("user", "Go.")])
    assert transcript.format == "claude_code"
    session = only_session(transcript)
    assert heard(session) == [("input", "EXTERNAL_UNTRUSTED"), ("user", "USER")]
    assert_sound(transcript)


def test_an_image_that_was_typed_into_a_running_turn_opens_no_run() -> None:
    queued = {"type": "queued_command", "prompt": [IMAGE], "commandMode": "prompt"}
    lines = [record("user", "Go."), record("attachment", None, attachment=queued)]
    assert heard(only_session(read_records(lines))) == [("user", "USER"), ("input", "USER")]


NOTE = text("<ide_selection>lines 1 to 3</ide_selection>")


@pytest.mark.parametrize("shown", [IMAGE, DOCUMENT])
def test_what_stands_between_a_note_and_the_users_words_goes_with_his_words(
    shown: dict[str, Any],
) -> None:
    def said(*blocks: dict[str, Any], **more: Any) -> list[tuple[str, str, int]]:
        transcript = read_records([record("user", list(blocks), **more)])
        assert_sound(transcript)
        entries = only_session(transcript).entries
        return [(str(e.type), e.trust.name, len(json.loads(e.body))) for e in entries]

    def note(size: int) -> tuple[str, str, int]:
        return ("input", "EXTERNAL_UNTRUSTED", size)

    see = text("See this.")
    assert said(NOTE, shown, see) == [note(1), ("user", "USER", 2)]
    assert said(NOTE, NOTE, shown, shown, see) == [note(2), ("user", "USER", 3)]
    assert said(see, NOTE, shown) == [("user", "USER", 1), note(2)]
    assert said(NOTE, shown, NOTE) == [note(3)]
    assert said(NOTE, shown, see, isMeta=True) == [note(3)]


@pytest.mark.parametrize("shown", [IMAGE, DOCUMENT])
def test_what_a_tool_shows_behind_its_words_is_not_the_users(shown: dict[str, Any]) -> None:
    messages = [
        {"role": "user", "ts": 1, "content": [text("<task>\nGo\n</task>"), IMAGE]},
        {"role": "assistant", "ts": 2, "content": [text("I read.")]},
        {"role": "user", "ts": 3, "content": [text("[read_file] Result:"), shown]},
        {"role": "assistant", "ts": 4, "content": [text("Read.")]},
        {"role": "user", "ts": 5, "content": [shown, text("<feedback>\nMore\n</feedback>")]},
        {"role": "user", "ts": 6, "content": [shown]},
        {
            "role": "user",
            "ts": 7,
            "content": [
                text("[attempt_completion] Result:\nOk"),
                shown,
                text("<feedback>\nNo\n</feedback>"),
            ],
        },
    ]
    transcript = read_value(messages)
    assert transcript.format == "cline_history"
    untrusted = ("input", "EXTERNAL_UNTRUSTED")
    said = [entry for entry in heard(only_session(transcript)) if entry[0] != "assistant"]
    assert said == [*[("user", "USER"), untrusted] * 2, untrusted, ("user", "USER")]
    assert_sound(transcript)


BLOCKS = st.sampled_from(
    [text("Do it."), text("<system-reminder>x</system-reminder>"), IMAGE, DOCUMENT, RESULT]
)


@given(st.lists(BLOCKS, min_size=1, max_size=6), st.booleans())
def test_nothing_is_believed_more_than_the_words_beside_it(
    blocks: list[dict[str, Any]], by_user: bool
) -> None:
    """With no text at all, what the harness says of the whole message decides."""
    draft = SessionDraft("k", "anthropic")
    other = (EntryType.INPUT, voice_of("<system-reminder>")[1])
    alone = USER_VOICE if by_user else other
    add_anthropic_message(
        draft,
        content_turn("user", parse(json.dumps(blocks))),
        "here",
        classify=lambda words: voice_of(words) if words else alone,
    )
    entries = [entry for entry in draft.finish().entries if entry.type is not EntryType.RESULT]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    allowed = {voice_of(words)[1] for words in texts} or {alone[1]}
    assert {entry.trust for entry in entries} <= allowed
    for entry in entries:
        words = [p.text for item in items_of(entry) for p in item.parts if isinstance(p, TextPart)]
        assert {voice_of(said)[1] for said in words} <= {entry.trust}


def test_a_result_inside_an_answer_is_a_result() -> None:
    answer = [text("I look."), USE, RESULT, text("Done.")]
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": answer}]
    transcript = read_value({"messages": messages})
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result", "assistant"]
    assert [text_of(entry) for entry in session.entries[1:]] == ["I look.", "seen", "Done."]
    assert not any(entry.synthetic for entry in session.entries)
    assert_sound(transcript)


CALLED_BY_THE_USER: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": [text("Go."), USE, text("Now.")]}]},
    {"messages": [{"role": "user", "content": "Go."}, {"role": "user", "content": [USE]},
                  {"role": "user", "content": [RESULT]}]},
    {"contents": [{"role": "user", "parts": [{"text": "Go."}, {"functionCall": {"name": "look"}}]}]},
    {"messages": [{"role": "user", "content": [{"text": "Go."},
                                               {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]}]},
]  # fmt: skip


@pytest.mark.parametrize("body", CALLED_BY_THE_USER)
def test_a_call_in_the_users_role_is_set_aside_with_its_text(body: dict[str, Any]) -> None:
    transcript = read_value(body)
    session = only_session(transcript)
    assert types(session) == ["user"] and text_of(session.entries[0]).startswith("Go.")
    items = [item for entry in session.entries for item in items_of(entry)]
    assert ItemKind.TOOL_CALL not in {item.kind for item in items}
    assert not session.tools and "misplaced_call" in codes(session)
    (repair,) = [r for r in session.repairs if r.code == "misplaced_call"]
    assert "look" in repair.raw
    assert_sound(transcript)
