"""The tree of a Claude Code session: its conversation, its side chains and its abandoned branches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.shelf import Shelf, Value
from ctxengine.engine.lexeme import Node, NodeKind


@dataclass(slots=True, frozen=True)
class Record:
    """One line that belongs to the conversation or to a branch of it."""

    line: int
    value: Value
    kind: str
    uuid: str | None
    parent: str | None
    side: bool
    message_id: str | None
    caller: str | None = None
    """The call that a message of a printed stream was said for; streams name no parents."""

    @property
    def node(self) -> Node:
        """The line's value."""
        return self.value.node

    @property
    def where(self) -> str:
        """Place in the file."""
        return f"line {self.line}"

    @property
    def blocks(self) -> list[Node]:
        """Content blocks of the message; none when the content is a text."""
        message = object_at(self.node, "message")
        return [] if message is None else array_at(message, "content")


@dataclass(slots=True)
class Branch:
    """Records that hang on the conversation without being part of it."""

    kind: str
    """`sidechain` or `fork`."""
    records: list[Record]
    parent: Record | None
    """The record it hangs on, where the file says so."""


@dataclass(slots=True)
class Arrangement:
    """A file's records, sorted out."""

    main: list[Record]
    branches: list[Branch] = field(default_factory=list)


def record_of(line: int, node: Node, shelf: Shelf | None = None) -> Record:
    """Read what places a line in the tree; the rest of it may wait on the shelf."""
    message = object_at(node, "message")
    side = node.get("isSidechain")
    caller = text_at(node, "parent_tool_use_id")
    kind = text_at(node, "type") or ""
    return Record(
        line=line,
        value=Value(node, shelf),
        kind=kind,
        uuid=text_at(node, "uuid"),
        parent=text_at(node, "parentUuid"),
        side=caller is not None or (side is not None and side.kind is NodeKind.TRUE),
        caller=caller,
        message_id=text_at(message, "id") if kind == "assistant" else None,
    )


def arrange(records: list[Record]) -> Arrangement:
    """The newest leaf of every tree is the conversation; a file of nothing but a side chain is that conversation.

    Records stand in the order of the file, but none before the one it hangs on.
    """
    forest = _Forest(records)
    if records and all(record.side for record in records):
        return Arrangement(forest.ordered(records))
    main = forest.main_lines()
    rest = [record for record in records if record.line not in main]
    branches: dict[int, Branch] = {}
    first_of: dict[str, Record] = {}
    callers: dict[str, Record] | None = None
    for record in rest:
        top = (
            first_of.setdefault(record.caller, record)
            if record.caller
            else forest.top_of(record, main)
        )
        kind = "sidechain" if record.side else "fork"
        branch = branches.get(top.line)
        if branch is None:
            parent = forest.by_uuid.get(top.parent) if top.parent else None
            if record.caller is not None:
                callers = by_call(records) if callers is None else callers
                parent = callers.get(record.caller)
            branch = branches[top.line] = Branch(kind, [], parent)
        branch.records.append(record)
    kept: list[Branch] = []
    for branch in branches.values():
        if any(record.kind in ("user", "assistant") for record in branch.records):
            kept.append(branch)
        else:
            main.update(record.line for record in branch.records)
    for branch in kept:
        branch.records = forest.ordered(branch.records)
    return Arrangement(forest.ordered([r for r in records if r.line in main]), kept)


def in_order(records: list[Record]) -> list[Record]:
    """Records as they stand, none before the one it hangs on."""
    return _Forest(records).ordered(records)


class _Forest:
    """Records by uuid, with their parents."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self._tops: dict[int, Record] = {}
        self.by_uuid: dict[str, Record] = {}
        for record in self.records:
            if record.uuid is not None:
                self.by_uuid.setdefault(record.uuid, record)

    def parent(self, record: Record) -> Record | None:
        """The record above, inside the same chain (a side chain ends where the conversation begins)."""
        above = self.by_uuid.get(record.parent) if record.parent else None
        return above if above is not None and above.side == record.side else None

    @cached_property
    def _roots(self) -> dict[int, int]:
        """Line of the root of every record's tree; broken chains and circles are roots of their own."""
        roots: dict[int, int] = {}
        for record in self.records:
            path: list[int] = []
            seen: set[int] = set()
            at: Record | None = record
            while at is not None and at.line not in roots and at.line not in seen:
                seen.add(at.line)
                path.append(at.line)
                at = self.parent(at)
            root = path[-1] if at is None or at.line in seen else roots[at.line]
            roots.update(dict.fromkeys(path, root))
        return roots

    def ordered(self, records: list[Record]) -> list[Record]:
        """These records as they stand, each behind those of them that it hangs on."""
        waiting = {record.line for record in records}
        placed: list[Record] = []
        for record in records:
            way: dict[int, Record] = {}
            at: Record | None = record
            while at is not None and at.line in waiting:
                waiting.remove(at.line)
                way[at.line] = at
                at = self.parent(at)
            passed = list(way.values())
            if at is not None and at.line in way:
                passed = _opened(passed, list(way).index(at.line))
            placed += reversed(passed)
        return placed

    @cached_property
    def _newest_below(self) -> dict[int, Record]:
        """The newest of the records that hang on each one, by its line."""
        below: dict[int, Record] = {}
        for record in self.records:
            above = self.parent(record)
            if above is not None:
                below[above.line] = record
        return below

    def _leaf(self, record: Record) -> Record:
        """Where the way ends that leads on from a record; what hangs on it may stand before it in the file."""
        seen: set[int] = set()
        at = self.by_uuid.get(record.uuid, record) if record.uuid else record
        while at.line in self._newest_below and at.line not in seen:
            seen.add(at.line)
            at = self._newest_below[at.line]
        return at

    def main_lines(self) -> set[int]:
        """Lines of the conversation: for each tree the way from its newest leaf up, and what belongs to it."""
        newest: dict[int, Record] = {}
        for record in self.records:
            if not record.side:
                newest[self._roots[record.line]] = record
        main: set[int] = set()
        for record in newest.values():
            at: Record | None = self._leaf(record)
            while at is not None and at.line not in main:
                main.add(at.line)
                at = self.parent(at)
        self._attach(main)
        return main

    def _attach(self, main: set[int]) -> None:
        """Parallel calls fork the tree without leaving the conversation: same message, or the result of its call."""
        uuids = {r.uuid for r in self.records if r.line in main and r.uuid}
        messages = {r.message_id for r in self.records if r.line in main and r.message_id}
        calls = {call for r in self.records if r.line in main for call in _ids(r, "tool_use", "id")}
        for record in self.records:
            if record.line in main or record.side:
                continue
            answers = _ids(record, "tool_result", "tool_use_id")
            if record.uuid in uuids or record.message_id in messages or answers & calls:
                main.add(record.line)
                calls |= _ids(record, "tool_use", "id")

    def top_of(self, record: Record, main: set[int]) -> Record:
        """The first record of the branch that this one belongs to; `main` is the same at every call."""
        way: list[Record] = []
        seen: set[int] = set()
        while record.line not in self._tops:
            way.append(record)
            seen.add(record.line)
            above = self.parent(record)
            if above is None or above.line in main or above.line in seen:
                self._tops[record.line] = record
            else:
                record = above
        top = self._tops[record.line]
        self._tops.update((passed.line, top) for passed in way)
        return top


def _opened(way: list[Record], start: int) -> list[Record]:
    """A way up that leads back to its record at `start`, so turned that what the file tells first of the circle ends it."""
    circle = way[start:]
    first = min(range(len(circle)), key=lambda place: circle[place].line)
    return way[:start] + circle[first + 1 :] + circle[: first + 1]


def by_call(records: Iterable[Record]) -> dict[str, Record]:
    """The first line that holds each call."""
    found: dict[str, Record] = {}
    for record in records:
        for call in _ids(record, "tool_use", "id"):
            found.setdefault(call, record)
    return found


def _ids(record: Record, kind: str, key: str) -> set[str]:
    if record.kind not in ("user", "assistant"):
        return set()
    named = (text_at(b, key) for b in record.blocks if text_at(b, "type") == kind)
    return {name for name in named if name}
