"""Reading transcripts in tests, and the one sum that must always hold."""

from __future__ import annotations

import json
from typing import Any

from ctxengine.engine.content.decode import decode
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.repair import repair_session, role_of
from ctxengine.engine.importers.transcript import (
    Entry,
    EntryType,
    ForeignSession,
    RepairAction,
    Transcript,
)
from ctxengine.engine.items import DecodedItem, ItemKind, TextPart


def read_value(value: Any, name: str = "given.json") -> Transcript:
    return read(json.dumps(value), name=name)


def read_records(records: list[Any], name: str = "given.jsonl") -> Transcript:
    return read("".join(json.dumps(record) + "\n" for record in records), name=name)


def only_session(transcript: Transcript) -> ForeignSession:
    (session,) = transcript.sessions
    return session


def items_of(entry: Entry) -> tuple[DecodedItem, ...]:
    return decode(entry.format, entry.body, role=role_of(entry)).items


def text_of(entry: Entry) -> str:
    parts = [part for item in items_of(entry) for part in item.parts]
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def types(session: ForeignSession) -> list[str]:
    return [str(entry.type) for entry in session.entries]


def codes(session: ForeignSession, action: RepairAction | None = None) -> list[str]:
    return [r.code for r in session.repairs if action is None or r.action is action]


def assert_accounts_close(transcript: Transcript) -> None:
    """Items found are items of entries or items of the report, and only what was set aside counts as reported."""
    for session in transcript.sessions:
        in_entries = sum(len(items_of(e)) for e in session.entries if not e.synthetic)
        reported = sum(repair.items for repair in session.repairs)
        assert in_entries + reported == session.items_in, session.key
    assert transcript.items_in == sum(repair.items for repair in transcript.repairs)
    for repair in [*transcript.repairs, *(r for s in transcript.sessions for r in s.repairs)]:
        assert repair.items == 0 or repair.action is RepairAction.SET_ASIDE
        assert repair.where and repair.detail


def assert_pairs_hold(session: ForeignSession) -> None:
    """Each call has exactly one result, directly behind its step and in call order; no result is without a call.

    Only answers hold calls, and only results are results: else nothing could ever answer what waits.
    """
    expected: list[tuple[int, int]] = []
    for index, entry in enumerate(session.entries):
        if expected:
            assert entry.type is EntryType.RESULT
            assert entry.call_ref == expected.pop(0)
        elif entry.type is EntryType.ASSISTANT:
            calls = [item for item in items_of(entry) if item.kind is ItemKind.TOOL_CALL]
            expected = [(index, call.ordinal) for call in calls]
        else:
            assert entry.type is not EntryType.RESULT
        for item in items_of(entry):
            assert (item.kind is ItemKind.TOOL_RESULT) == (entry.type is EntryType.RESULT)
            assert item.kind is not ItemKind.TOOL_CALL or entry.type is EntryType.ASSISTANT
    assert not expected


def assert_sound(transcript: Transcript) -> None:
    """Everything that holds for every transcript, whatever was in the file."""
    assert_accounts_close(transcript)
    for session in transcript.sessions:
        assert_pairs_hold(session)
        again = repair_session(session)
        assert again.entries == session.entries
        assert again.repairs == session.repairs
        for entry in session.entries:
            assert entry.trust.rank >= 2, "no file may claim platform or configuration trust"
