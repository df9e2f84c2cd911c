"""The log of a Gemini CLI chat, replayed: records grow, rewinds take some back, checkpoints write a history anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.engine.importers.dialect import array_at, gist, object_at, plain_text, text_at
from ctxengine.engine.lexeme import Node, NodeKind


class LogRecord(NamedTuple):
    """One message of the log, in its last version."""

    where: str
    node: Node


@dataclass(slots=True, eq=False)
class _Link:
    """A message between its neighbours: a history grows in its middle and loses its end."""

    record: LogRecord
    kind: str | None
    before: _Link | None = None
    after: _Link | None = None
    older: _Link | None = None
    """The message that had the same id before this one."""
    is_gone: bool = False
    """Whether a rewind took it back."""


class ChatLog:
    """What a chat is once its log has been read to the end."""

    def __init__(self) -> None:
        self.key = "session"
        self.summary: str | None = None
        """The program's own title for the chat."""
        self.heads: list[str] = []
        """Places of lines that describe the session."""
        self.versions: list[str] = []
        """Places of versions of which a later one says all they said."""
        self.replaced: list[LogRecord] = []
        """Versions that said something which no later one says."""
        self.rewinds: list[str] = []
        """Places of rewinds."""
        self._first: _Link | None = None
        self._last: _Link | None = None
        self._by_id: dict[str, _Link] = {}
        """The newest message of each id."""
        self._branches: list[tuple[list[LogRecord], _Link | None]] = []

    @property
    def records(self) -> list[LogRecord]:
        """The conversation."""
        return [link.record for link in _from(self._first)]

    @property
    def branches(self) -> list[tuple[list[LogRecord], str | None]]:
        """What rewinds took back, with the place of the record before it."""
        return [
            (records, hook.record.where if hook is not None else None)
            for records, hook in self._branches
        ]

    def take(self, line: Node, where: str) -> None:
        """Read one line."""
        changed, rewound = object_at(line, "$set"), text_at(line, "$rewindTo")
        if rewound is not None:
            self._rewind(rewound, where)
        elif changed is not None or (
            text_at(line, "sessionId") is not None and text_at(line, "type") is None
        ):
            told = changed or line
            self.heads.append(where)
            self.describe(told)
            self._checkpoint(array_at(told, "messages"), where)
        elif self._grow(LogRecord(where, line)) is None:
            self.append(LogRecord(where, line))

    def describe(self, told: Node) -> None:
        """Read what a line says about the session."""
        self.key = text_at(told, "sessionId") or self.key
        self.summary = text_at(told, "summary") or self.summary

    def append(self, record: LogRecord) -> None:
        """A message behind all others."""
        self._insert(record, None)

    def _grow(self, record: LogRecord) -> _Link | None:
        """Put a later version of a message into its place; None when the record is none.

        An id that a message of another kind has, or that says nothing, makes no version of it: both were said.
        """
        link = self._known(text_at(record.node, "id"))
        if link is None or link.kind != text_at(record.node, "type"):
            return None
        if _says_all(record.node, link.record.node):
            self.versions.append(link.record.where)
        else:
            self.replaced.append(link.record)
        link.record = record
        return link

    def _rewind(self, key: str, where: str) -> None:
        """That message and all after it go; all, where it is not known, as in the program."""
        start = self._known(key) or self._first
        self.rewinds.append(where)
        if start is None:
            return
        taken_back: list[LogRecord] = []
        for link in _from(start):
            link.is_gone = True
            taken_back.append(link.record)
        self._last = start.before
        if self._last is None:
            self._first = None
        else:
            self._last.after = None
        self._branches.append((taken_back, self._last))

    def _checkpoint(self, messages: list[Node], where: str) -> None:
        """A history written anew: what it knows stays where it is, what is new stands before what follows it there.

        What it leaves out was said all the same (a summary took its place), and stays.
        """
        fresh: list[LogRecord] = []
        for number, node in enumerate(messages, 1):
            record = LogRecord(f"{where} message {number}", node)
            known = self._grow(record)
            if known is None:
                fresh.append(record)
                continue
            for new in fresh:
                self._insert(new, known)
            fresh = []
        for new in fresh:
            self.append(new)

    def _known(self, key: str | None) -> _Link | None:
        """The newest message of an id that no rewind took back."""
        link = self._by_id.get(key) if key else None
        while link is not None and link.is_gone:
            link = link.older
        if key and link is not None:
            self._by_id[key] = link
        elif key:
            self._by_id.pop(key, None)
        return link

    def _insert(self, record: LogRecord, following: _Link | None) -> None:
        """Put a message before another one, or behind all."""
        before = self._last if following is None else following.before
        key = text_at(record.node, "id")
        link = _Link(record, text_at(record.node, "type"), before, following)
        if key:
            link.older = self._known(key)
            self._by_id[key] = link
        if before is None:
            self._first = link
        else:
            before.after = link
        if following is None:
            self._last = link
        else:
            following.before = link


def _from(link: _Link | None) -> Iterator[_Link]:
    while link is not None:
        yield link
        link = link.after


def _says_all(later: Node, earlier: Node) -> bool:
    """Whether a version says what the one before it said: records grow, they are not meant to lose anything."""
    results = {
        text_at(call, "id"): _raw(call.get("result")) for call in array_at(later, "toolCalls")
    }
    for call in array_at(earlier, "toolCalls"):
        held = results.get(text_at(call, "id"))
        if held is None or _raw(call.get("result")) not in ("null", held):
            return False
    said, says = earlier.get("content"), later.get("content")
    if _raw(said) in ("null", '""', "[]", _raw(says)):
        return True
    words = _words(said)
    return bool(words) and words in _words(says)


def _words(content: Node | None) -> str:
    return gist(plain_text(content.peek())) if content is not None else ""


def _raw(node: Node | None) -> str:
    return node.raw if node is not None and node.kind is not NodeKind.NULL else "null"
