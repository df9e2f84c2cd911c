"""Gemini CLI chat records: a JSON document, or JSON lines in newer versions; one record holds a call and its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import Facts, array_at, extra_of, gist, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.gemini_log import ChatLog, LogRecord
from ctxengine.engine.importers.loose_parts import Said, read_parts
from ctxengine.engine.importers.pieces import Result, add_message, add_result, result_beside
from ctxengine.engine.importers.texts import shorten, time_of
from ctxengine.engine.importers.transcript import EntryType, ForeignSession, Repair, Transcript
from ctxengine.engine.importers.usage import inclusive_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "gemini_cli"
_MODELLED = frozenset(("type", "timestamp", "content", "toolCalls", "thoughts", "tokens", "model"))
_FAILED = ("error", "cancelled")
_NOTICES = ("info", "error", "warning")
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
        said = Said("user")
        read_parts(said, _parts(record.get("content")))
        self._leave_others(said, where)
        facts = Facts(at=time_of(text_at(record, "timestamp")), extra=extra_of(record, _MODELLED))
        for result in said.results:
            self._result_of_its_own(result, where, facts.at)
        if said.results and not said.pieces.blocks:
            return
        kind = EntryType.INPUT if said.results else EntryType.USER
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
                said.pieces.call(text_at(call, "id"), name, call.get("args"))
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
        ids = {text_at(call, "id") for call in calls}
        for call in calls:
            self._results(call, ids, where)
        for result in said.results:
            self._result_of_its_own(result, where, at)

    def _words(self, said: Said, content: Node | None, calls: list[Node], where: str) -> None:
        """What an answer says beside its calls; histories that were written back repeat the calls in it."""
        ids = {text_at(call, "id") for call in calls} - {None}
        asked = {_asked(call) for call in calls}
        for part in _parts(content):
            call = object_at(part, "functionCall")
            if call is not None and (text_at(call, "id") in ids or _asked(call) in asked):
                self.draft.leave_many(
                    "repeated_call", where, "Calls that stand in `toolCalls` too."
                )
            elif part.kind is not NodeKind.STRING or part.text() or not calls:
                read_parts(said, [part])

    def _results(self, call: Node, ids: set[str | None], where: str) -> None:
        """Results stand inside their call; a list of response parts, or nothing when it never ran."""
        said = Said("tool")
        read_parts(said, _parts(call.get("result")))
        call_id = text_at(call, "id")
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


def _parts(content: Node | None) -> list[Node]:
    """Parts as the program's types allow them: a text, a part, or a list of both."""
    if content is None or content.kind is NodeKind.NULL:
        return []
    return list(content) if content.kind is NodeKind.ARRAY else [content]


def _is_snapshot(text: str) -> bool:
    """Whether a text is a summary of the program, and not words about one."""
    opens, closes = _SNAPSHOT
    return text.rstrip().endswith(closes) and opens in text


def _asked(call: Node) -> tuple[str | None, str]:
    """What a call asks of which tool."""
    given = call.get("args")
    return text_at(call, "name"), gist(given.raw) if given is not None else ""
