"""The short way to an item's facts gives what the long one gives, for every message that it takes, however odd."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.transcript import Entry, EntryType
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import parse
from ctxengine.engine.ports import OpenCall
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.imports.import_log import ImportLog
from ctxengine.service.imports.plain import EVENT_OF, PlainItems, said_in_chat, source_of
from ctxengine.service.wiring import counter_of

TAKEN = {"dup": (EventSeq(1), 0), "call_3_0": (EventSeq(1), 0)}
COUNTERS = {
    family: counter_of(*family)
    for family in (
        ("openai", "gpt-5.4"), ("openai", "gpt-4-turbo"), ("anthropic", "claude-sonnet-4-6"),
        ("google", "gemini-3"), ("compatible", "unknown"),
    )
}  # fmt: skip
ODD = [
    "", "hello world ", "\ud83d", "\ud800x", "\x00", "\u202e left", "😀" * 5, "x" * 300, '{"a": 1.0, "b": 1e999}',
    "1" * 6_000, "\u2028", "\\", "\n\t\r", "日本語" * 40, "password = correct1Horse2Battery", "ſecret: ABCDEF0123456789abc",
    "İ" * 190 + " token=ABCDEF0123456789abc", "<|endoftext|>", " " * 500, "\x7f\x85",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(ODD), st.text(max_size=12)), max_size=4).map("".join)
names = st.one_of(texts, st.sampled_from(["ls", None, 3, ""]))
functions = st.fixed_dictionaries(
    {"name": names, "arguments": st.one_of(texts, st.sampled_from([None, {}, {"a": 1.0}]))}
)
calls = st.one_of(
    st.fixed_dictionaries(
        {"function": st.one_of(functions, functions, st.sampled_from([None, "x", []]))},
        optional={
            "id": st.one_of(texts, st.sampled_from([None, 5, "dup", "call_3_0"])),
            "type": st.sampled_from(["function", "function", None, 3, "custom"]),
            "custom": st.sampled_from([None, {"name": "c", "input": "y"}]),
        },
    ),
    st.sampled_from([None, 3]),
)
contents = st.one_of(
    texts, texts,
    st.sampled_from([
        None, [], 3, [{"type": "text", "text": "a"}], [{"type": "thinking", "thinking": "t"}],
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
    ]),
)  # fmt: skip
rarely = st.sampled_from([None, "r", {"name": "f", "arguments": "{}"}, True, ""])
ODD_MEMBERS = ("refusal", "audio", "function_call", "reasoning_content", "provider_specific_fields")
ROLES = {
    EntryType.USER: ["user", "system", "developer"],
    EntryType.INPUT: ["user", "system"],
    EntryType.ASSISTANT: ["assistant"],
    EntryType.RESULT: ["tool", "function"],
    EntryType.SUMMARY: ["user"],
}


@st.composite
def messages(draw: st.DrawFn) -> tuple[EntryType, str]:
    """A chat message as text, odd in one way or another, and what it is taken for."""
    type = draw(st.sampled_from(list(EntryType)[:4] * 3 + [EntryType.SUMMARY]))
    role = draw(st.sampled_from(ROLES[type] * 9 + ["user", "assistant", "tool", "weird", None]))
    plain = draw(st.integers(0, 3))
    message: dict[str, Any] = {"role": role, "content": draw(texts if plain else contents)}
    if role == "assistant" and draw(st.booleans()):
        message["tool_calls"] = draw(
            st.one_of(st.lists(calls, max_size=3), st.sampled_from([None, {}, "x"]))
        )
    if role in ("tool", "function"):
        message["tool_call_id"] = draw(names)
        message |= draw(st.fixed_dictionaries({}, optional={"name": names, "tool_name": names}))
    for member in draw(st.lists(st.sampled_from(ODD_MEMBERS), max_size=not plain)):
        message[member] = draw(rarely)
    raw = json.dumps(message, ensure_ascii=draw(st.booleans()))
    more = draw(
        st.sampled_from(["", "", "", ', "content": "the last one"', ', "n": ' + "9" * 5_000])
    )
    return type, raw[:-1] + more + "}"


@settings(max_examples=400)
@given(
    message=messages(),
    family=st.sampled_from(sorted(COUNTERS)),
    trust=st.sampled_from(list(Trust)),
    sequence=st.sampled_from([3, 7, 12_345]),
    called=st.sampled_from(["n", "nä", "\ud800", None]),
    is_error=st.booleans(),
)
def test_the_facts_of_a_plain_item_are_those_that_its_decoder_gives(
    message: tuple[EntryType, str],
    family: tuple[str, str],
    trust: Trust,
    sequence: int,
    called: str | None,
    is_error: bool,
) -> None:
    kind, raw = message
    log = ImportLog(
        str(uuid4()), str(uuid4()), salt=lambda: b"s" * 16, body_id=lambda _: str(uuid4())
    )
    log._calls.update(TAKEN)
    items = PlainItems(log, COUNTERS[family])
    entry = Entry(
        kind, ContentFormat.OPENAI_CHAT, raw, trust, value=parse(raw).peek(), is_error=is_error, name="nm"
    )  # fmt: skip
    call = None
    if kind is EntryType.RESULT and called is not None:
        call = OpenCall(EventSeq(1), 0, called, "c", "w", None)
    given = (entry, EVENT_OF[kind], EventSeq(sequence), source_of(entry, call), call)
    said = said_in_chat(entry.value, EVENT_OF[kind])
    short = items._plain(said, *given) if said is not None else None
    event("short" if short is not None else "long")
    if short is not None:
        assert short == items._any(*given)
        assert items.rows(*given) == short


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (EntryType.USER, {"role": "user", "content": "a question"}),
        (EntryType.INPUT, {"role": "system", "content": "a note"}),
        (EntryType.ASSISTANT, {"role": "assistant", "content": "an answer"}),
        (EntryType.ASSISTANT, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        ]}),
        (EntryType.RESULT, {"role": "tool", "tool_call_id": "a", "content": "a result"}),
    ],
)  # fmt: skip
def test_ordinary_messages_do_go_the_short_way(kind: EntryType, message: dict[str, Any]) -> None:
    assert said_in_chat(message, EVENT_OF[kind]) is not None


def test_a_message_that_is_written_in_no_format_is_refused_by_name() -> None:
    log = ImportLog(str(uuid4()), str(uuid4()), salt=lambda: b"s" * 16, body_id=str)
    items = PlainItems(log, COUNTERS["openai", "gpt-5.4"])
    entry = Entry(EntryType.USER, ContentFormat.OPENAI_CHAT, '{"role": "user"', Trust.USER)
    with pytest.raises(ContentError):
        items.rows(entry, EVENT_OF[EntryType.USER], EventSeq(3), "user", None)
