"""Where the branches and agents of a Claude Code session hang on its conversation."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

from ctxengine.engine.importers.claude_tree import Branch, Record
from ctxengine.engine.importers.dialect import object_at, text_at


class Hooks:
    """Where branches hang on the conversation; it is gone through once, whatever the number of branches."""

    def __init__(self, main: list[Record]) -> None:
        """Hang branches on these records."""
        self._main = main
        self._first_lines: dict[str, str] = {}
        for record in main:
            if record.message_id is not None:
                self._first_lines.setdefault(record.message_id, record.where)

    def of(self, branch: Branch) -> str | None:
        """Place of the message a branch hangs on: named by the branch, else the call whose prompt opens it."""
        first = branch.records[0]
        named = branch.parent is not None or first.caller is not None
        record = branch.parent if named else self._caller(first)
        return self.first_line(record) if record is not None else None

    def first_line(self, record: Record) -> str:
        """Place of the first line of the message that a line belongs to."""
        return self._first_lines.get(record.message_id or "", record.where)

    @cached_property
    def _answers(self) -> list[Record]:
        answers = [record for record in self._main if record.kind == "assistant"]
        return sorted(answers, key=lambda record: record.line)

    @cached_property
    def _prompts(self) -> dict[str, list[Record]]:
        """Answers by the prompts of the calls in them, in the order of the file."""
        found: dict[str, list[Record]] = {}
        for record in self._answers:
            for block in record.blocks:
                asked = text_at(object_at(block, "input"), "prompt")
                if asked is not None:
                    found.setdefault(asked, []).append(record)
        return found

    def _caller(self, first: Record) -> Record | None:
        """The newest answer before a branch that asks for what opens it, else the newest of all before it."""
        text = text_at(object_at(first.node, "message"), "content")
        asking = self._prompts.get(text, []) if text is not None else []
        return _last_before(first, asking) or _last_before(first, self._answers)


def _last_before(first: Record, records: list[Record]) -> Record | None:
    index = bisect_left(records, first.line, key=lambda record: record.line)
    return records[index - 1] if index else None
