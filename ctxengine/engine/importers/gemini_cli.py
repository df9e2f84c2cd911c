"""Gemini CLI chat records: a JSON document, or JSON lines in newer versions; one record holds a call and its result."""

from __future__ import annotations

from collections.abc import Iterable

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import Facts, array_at, extra_of, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.loose import Said, read_parts
from ctxengine.engine.importers.pieces import Result, add_message, add_result
from ctxengine.engine.importers.texts import time_of
from ctxengine.engine.importers.transcript import EntryType, Repair, Transcript
from ctxengine.engine.importers.usage import inclusive_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "gemini_cli"
_MODELLED = frozenset(("type", "timestamp", "content", "toolCalls", "thoughts", "tokens", "model"))
_FAILED = ("error", "cancelled")
_NOTICES = ("info", "error", "warning")


def read_document(root: Node) -> Transcript:
    """Read a session file."""
    draft = SessionDraft(text_at(root, "sessionId") or "session", "google")
    for number, record in enumerate(array_at(root, "messages"), 1):
        _take(draft, record, f"message {number}")
    return Transcript(FORMAT, [draft.finish()])


def read_lines(lines: Iterable[str]) -> Transcript:
    """Read a session of the newer kind: a head line, then one record a line."""
    draft = SessionDraft("session", "google")
    repairs: list[Repair] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = parse(line.strip())
        except LexemeError as error:
            repairs.append(broken_line(number, line, str(error)))
            continue
        if text_at(record, "sessionId") is not None and text_at(record, "type") is None:
            draft.key = text_at(record, "sessionId") or draft.key
            draft.leave_many("session_head", f"line {number}", "Heads: settings, not content.")
        else:
            _take(draft, record, f"line {number}")
    return Transcript(FORMAT, [draft.finish()], repairs, len(repairs))


def _take(draft: SessionDraft, record: Node, where: str) -> None:
    kind = text_at(record, "type")
    if kind == "user":
        said = _content(record, "user")
        _leave_unreadable(draft, said, where)
        facts = Facts(at=time_of(text_at(record, "timestamp")), extra=extra_of(record, _MODELLED))
        add_message(draft, EntryType.USER, said.pieces, where, facts)
    elif kind == "gemini":
        _answer(draft, record, where)
    elif kind in _NOTICES:
        draft.leave("notice", where, f"A notice ({kind}) of the program.", raw=record.raw)
    else:
        draft.leave("unknown_record", where, f"A record of type {kind!r}.", raw=record.raw)


def _answer(draft: SessionDraft, record: Node, where: str) -> None:
    said = _content(record, "assistant")
    said.pieces.reasoning(len(array_at(record, "thoughts")))
    calls = array_at(record, "toolCalls")
    for call in calls:
        name = text_at(call, "name")
        if name is None:
            said.unreadable.append(call)
        else:
            said.pieces.call(text_at(call, "id"), name, call.get("args"))
    _leave_unreadable(draft, said, where)
    at = time_of(text_at(record, "timestamp"))
    usage = inclusive_usage(
        object_at(record, "tokens"),
        prompt="input",
        cache_read=("cached",),
        output=("output", "thoughts"),
    )
    facts = Facts(text_at(record, "model"), usage, None, at, extra_of(record, _MODELLED))
    add_message(draft, EntryType.ASSISTANT, said.pieces, where, facts)
    for call in calls:
        _results(draft, call, where)


def _results(draft: SessionDraft, call: Node, where: str) -> None:
    """Results stand inside their call; a list of response parts, or nothing when it never ran."""
    said = Said("tool")
    given = call.get("result")
    read_parts(
        said, [given] if given is not None and given.kind is NodeKind.OBJECT else given or ()
    )
    failed = text_at(call, "status") in _FAILED
    at = time_of(text_at(call, "timestamp"))
    results = list(said.results)
    if not results and said.pieces.blocks:
        results = [Result(None, None, said.pieces.body)]
    for result in results:
        call_id = text_at(call, "id") or result.call_id
        answer = Result(call_id, text_at(call, "name"), result.content, failed or result.is_error)
        add_result(draft, answer, where, Facts(at=at))
    for node in said.unreadable:
        draft.leave("unreadable_part", where, "A result that cannot be read.", raw=node.raw)


def _content(record: Node, role: str) -> Said:
    said = Said(role)
    content = record.get("content")
    if content is None:
        return said
    if content.kind is NodeKind.STRING:
        if content.text() or not array_at(record, "toolCalls"):
            said.pieces.text(content)
    else:
        read_parts(said, [content] if content.kind is NodeKind.OBJECT else content)
    return said


def _leave_unreadable(draft: SessionDraft, said: Said, where: str) -> None:
    for node in said.unreadable:
        draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
    said.unreadable = []
