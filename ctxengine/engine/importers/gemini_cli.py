"""Gemini CLI chat records: a JSON document, or JSON lines in newer versions; one record holds a call and its result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import Facts, array_at, extra_of, gist, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.gemini_log import ChatLog, LogRecord
from ctxengine.engine.importers.loose_parts import Said, read_parts
from ctxengine.engine.importers.members import first_given, id_at, parts_of, text_of_part
from ctxengine.engine.importers.pieces import Result, add_message, add_result, result_beside
from ctxengine.engine.importers.texts import shorten, time_of
from ctxengine.engine.importers.transcript import EntryType, ForeignSession, Repair, Transcript
from ctxengine.engine.importers.usage import inclusive_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "gemini_cli"
_MODELLED = frozenset(("type", "timestamp", "content", "toolCalls", "thoughts", "tokens", "model"))
_FAILED = ("error", "cancelled")
_NOTICES = ("info", "error", "warning")
_FILES = re.compile(r"^(?:--- Content from referenced files ---|<hook_context>)", re.MULTILINE)
"""What the program puts behind the user's words: the files that he named, and what hooks say."""
_NOTES = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
"""How texts in the user's role begin that the program wrote."""
_SNAPSHOT = ("<state_snapshot>", "</state_snapshot>")
"""Between what the program's own summaries of a chat stand."""


def read_document(root: Node) -> Transcript:
    """Read a session file."""
    log = ChatLog()
    log.describe(root)
    for number, record in enumerate(array_at(root, "messages"), 1):
        log.append(LogRecord(f"message {number}", record))
    return Transcript(FORMAT, _sessions(log))


def read_lines(lines: Iterable[str]) -> Transcript:
    """Read a session of the newer kind: a head line, then records as they grow, rewinds and checkpoints."""
    log = ChatLog()
    repairs: list[Repair] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            log.take(parse(line.strip()), f"line {number}")
        except LexemeError as error:
            repairs.append(broken_line(number, line, str(error)))
    return Transcript(FORMAT, _sessions(log), repairs, len(repairs))


def _sessions(log: ChatLog) -> list[ForeignSession]:
    main = _Chat(log.key)
    main.draft.title = shorten(log.summary) if log.summary else ""
    main.take(log.records)
    for place in log.heads:
        main.draft.leave_many("session_head", place, "Heads: settings, not content.")
    for place in log.versions:
        detail = "Records that were written again as they grew; the last version counts."
        main.draft.leave_many("earlier_version", place, detail)
    for record in log.replaced:
        detail = "A record that was written again with other content; the last version counts."
        main.draft.leave("replaced_version", record.where, detail, raw=record.node.raw)
    for place in log.rewinds:
        main.draft.leave_many("rewind", place, "Rewinds; what they took back is a child session.")
    sessions = [main.draft.finish()]
    for number, (records, hook) in enumerate(log.branches, 1):
        child = _Chat(f"{log.key}/rewind-{number}")
        child.take(records)
        index = main.draft.index_of(hook) if hook is not None else None
        sessions.append(replace(child.draft.finish(), parent=(log.key, index or 0)))
    return sessions


class _Chat:
    """Builds one session from its records."""

    def __init__(self, key: str) -> None:
        self.draft = SessionDraft(key, "google")
        self._answered: set[str] = set()
        """Ids of calls whose records hold their results."""

    def take(self, records: Iterable[LogRecord]) -> None:
        """Read all records."""
        for record in records:
            self._one(record.node, record.where)

    def _one(self, record: Node, where: str) -> None:
        kind = text_at(record, "type")
        if kind == "user":
            self._user(record, where)
        elif kind == "gemini":
            self._answer(record, where)
        elif kind in _NOTICES:
            detail = f"A notice ({kind}) of the program."
            self.draft.leave("notice", where, detail, raw=record.raw)
        else:
            self.draft.leave("unknown_record", where, f"A record of type {kind!r}.", raw=record.raw)

    def _user(self, record: Node, where: str) -> None:
        facts = Facts(at=time_of(text_at(record, "timestamp")), extra=extra_of(record, _MODELLED))
        for is_shown, parts in _parted(parts_of(record.get("content"))):
            self._user_part(parts, where, facts, is_shown=is_shown)
            facts = Facts(at=facts.at)

    def _user_part(self, parts: list[Node], where: str, facts: Facts, *, is_shown: bool) -> None:
        said = Said("user")
        read_parts(said, parts)
        self._leave_others(said, where)
        for result in said.results:
            self._result_of_its_own(result, where, facts.at)
        if said.results and not said.pieces.blocks:
            return
        kind = EntryType.INPUT if said.results or is_shown else EntryType.USER
        if any(_is_snapshot(word) for words in said.pieces.words for word in words):
            kind = EntryType.SUMMARY
        add_message(self.draft, kind, said.pieces, where, facts)

    def _result_of_its_own(self, result: Result, where: str, at: str | None) -> None:
        """A result among what somebody says; most stand with their calls too."""
        if result.call_id in self._answered:
            detail = "Results that stand with their calls too."
            self.draft.leave_many("repeated_result", where, detail)
        else:
            add_result(self.draft, result, where, Facts(at=at))

    def _answer(self, record: Node, where: str) -> None:
        said = Said("assistant")
        calls = array_at(record, "toolCalls")
        self._words(said, record.get("content"), calls, where)
        said.pieces.reasoning(len(array_at(record, "thoughts")))
        for call in calls:
            name = text_at(call, "name")
            if name is None:
                said.unreadable.append(call)
            else:
                said.pieces.call(id_at(call, "id"), name, first_given(call, "args"))
        self._leave_others(said, where)
        usage = inclusive_usage(
            object_at(record, "tokens"),
            prompt="input",
            cache_read=("cached",),
            output=("output", "thoughts"),
            beside="tool",
        )
        at = time_of(text_at(record, "timestamp"))
        facts = Facts(text_at(record, "model"), usage, None, at, extra_of(record, _MODELLED))
        add_message(self.draft, EntryType.ASSISTANT, said.pieces, where, facts)
        ids = {id_at(call, "id") for call in calls}
        for call in calls:
            self._results(call, ids, where)
        for result in said.results:
            self._result_of_its_own(result, where, at)

    def _words(self, said: Said, content: Node | None, calls: list[Node], where: str) -> None:
        """What an answer says beside its calls; histories that were written back repeat the calls in it."""
        ids = {id_at(call, "id") for call in calls} - {None}
        asked = {_asked(call) for call in calls}
        for part in parts_of(content):
            call = object_at(part, "functionCall")
            if call is not None and (id_at(call, "id") in ids or _asked(call) in asked):
                self.draft.leave_many(
                    "repeated_call", where, "Calls that stand in `toolCalls` too."
                )
            elif part.kind is not NodeKind.STRING or part.text() or not calls:
                read_parts(said, [part])

    def _results(self, call: Node, ids: set[str | None], where: str) -> None:
        """Results stand inside their call; a list of response parts, or nothing when it never ran."""
        said = Said("tool")
        read_parts(said, parts_of(call.get("result")))
        call_id = id_at(call, "id")
        foreign = ids - {call_id}
        results = [result for result in said.results if result.call_id not in foreign]
        others = len(said.results) - len(results)
        for _ in range(others):
            self.draft.leave_many(
                "repeated_result", where, "Results that stand with their calls too."
            )
        blocks = said.pieces.blocks
        if not results and blocks:
            results = [Result(None, None, said.pieces.body)]
        elif blocks and others:
            detail = "Parts beside the results of several calls; whose they are is not told."
            self.draft.leave("unplaced_part", where, detail, raw=said.pieces.body)
        elif blocks:
            results[0] = replace(results[0], content=result_beside(results[0].content, blocks))
        failed = text_at(call, "status") in _FAILED
        at = time_of(text_at(call, "timestamp"))
        for result in results:
            answer = Result(
                call_id or result.call_id,
                text_at(call, "name"),
                result.content,
                failed or result.is_error,
            )
            add_result(self.draft, answer, where, Facts(at=at))
            if answer.call_id is not None:
                self._answered.add(answer.call_id)
        self._leave_others(said, where)

    def _leave_others(self, said: Said, where: str) -> None:
        """Account for parts that say nothing or cannot be read."""
        for node in said.unreadable:
            self.draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
        for node in said.skipped:
            self.draft.leave("setting", where, "A part that is no content.", raw=node.raw)


def _parted(parts: list[Node]) -> list[tuple[bool, list[Node]]]:
    """A message in the user's role, cut where what the program shows in it begins and ends; whether each piece is that.

    Behind the heading of the files he named nothing is the user's: what is in a file may look like its end.
    """
    marked: list[tuple[bool, Node]] = []
    is_behind = False
    for part in parts:
        text = text_of_part(part) or ""
        found = None if is_behind else _FILES.search(text)
        before = text[: found.start()] if found is not None else text
        is_behind = is_behind or found is not None
        if found is None:
            marked.append((is_behind or text.lstrip().startswith(_NOTES), part))
        elif before.strip():
            marked.append((before.lstrip().startswith(_NOTES), _as_text(before)))
            marked.append((True, _as_text(text[found.start() :])))
        else:
            marked.append((True, part))
    groups = groupby(marked, lambda pair: pair[0])
    return [(shown, [part for _, part in group]) for shown, group in groups] or [(False, [])]


def _as_text(text: str) -> Node:
    return parse(json.dumps(text))


def _is_snapshot(text: str) -> bool:
    """Whether a text is a summary of the program, and not words about one."""
    opens, closes = _SNAPSHOT
    return text.rstrip().endswith(closes) and opens in text


def _asked(call: Node) -> tuple[str | None, str]:
    """What a call asks of which tool."""
    given = first_given(call, "args")
    return text_at(call, "name"), gist(given.raw) if given is not None else ""
