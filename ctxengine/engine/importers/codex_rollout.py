"""OpenAI Codex rollouts: JSON lines of `{timestamp, type, payload}`, with Responses items in `response_item`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from typing import Any

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import (
    Facts,
    Turn,
    array_at,
    extra_of,
    joined,
    object_at,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.members import first_given, parts_of, text_of_part, texts_of
from ctxengine.engine.importers.openai_responses import (
    COMPACTIONS,
    OpenAIResponses,
    add_answer,
    add_other,
    item_turns,
)
from ctxengine.engine.importers.shapes import Shape
from ctxengine.engine.importers.shelf import Shelf, Shelved, kept, taken
from ctxengine.engine.importers.texts import shorten, time_of
from ctxengine.engine.importers.transcript import (
    Entry,
    EntryType,
    ForeignUsage,
    Repair,
    RepairAction,
    Transcript,
)
from ctxengine.engine.importers.usage import openai_usage
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

FORMAT = "codex_rollout"
RECORD_TYPES = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
)
_BARE_ITEM = re.compile(r"message|reasoning|\w+_call|\w+_call_output", re.ASCII)
"""Kinds of items that the first versions wrote without a record around them."""
_NOTES = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skill>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<hook_prompt",
    "<model_switch>",
    "<goal_context>",
    "# AGENTS.md instructions",
)
"""How user-role messages begin that the harness wrote."""

_REQUEST_HEADING = "## My request for Codex:"
_ECHOES = ("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content")
_MODELLED_IN_NOTE = frozenset(("type", "content", "encrypted_content"))
"""Members of another agent's message beside who wrote it to whom."""
_NO_CONTENT = ("ghost_snapshot",)


class _Rollout:
    """Reads one rollout line by line."""

    def __init__(self, shelf: Shelf | None) -> None:
        self._shelf = shelf
        self.draft = SessionDraft("rollout", "openai-responses", shelf=shelf)
        self.repairs: list[Repair] = []
        self._answer: list[Turn] = []
        self._answer_where = ""
        self._answer_at: str | None = None
        self._usage: ForeignUsage | None = None
        self._counted: Any = None
        """The session's total when it was last told."""
        self._model: str | None = None
        self._said: set[bytes] = set()
        """Digests of what the items say."""
        self._echoes: list[tuple[str, bytes, str | Shelved]] = []
        self._turns: list[int] = []
        """Sizes of the session at which the user's turns began."""
        self._undone: list[tuple[SessionDraft, str | None]] = []
        """Turns that were rolled back, with the place of the entry before them."""
        self._named = False

    def take(self, number: int, record: Node) -> None:
        """Read one record."""
        where, kind = f"line {number}", text_at(record, "type")
        payload = object_at(record, "payload")
        at = time_of(text_at(record, "timestamp"))
        if payload is None and _BARE_ITEM.fullmatch(kind or ""):
            self._item(record, where, at)
        elif payload is None and kind is None and _is_bare_head(record):
            self._context("session_meta", record, where)
        elif kind not in RECORD_TYPES or payload is None:
            self.draft.leave("unknown_record", where, f"A record of type {kind!r}.", raw=record.raw)
        elif kind == "response_item":
            self._item(payload, where, at)
        elif kind == "event_msg":
            self._event(payload, where)
        elif kind == "compacted":
            self._compacted(payload, where, at)
        else:
            self._context(kind, payload, where)

    def take_head(self, head: Node) -> None:
        """Read what a document says about its session."""
        self._context("session_meta", head, "session")

    def take_item(self, item: Node, where: str) -> None:
        """Read one item of a document."""
        self._item(item, where, time_of(text_at(item, "timestamp")))

    def finish(self) -> Transcript:
        """Close what is open."""
        self._flush()
        self._account_for_echoes()
        items = sum(repair.items for repair in self.repairs)
        sessions = [self.draft.finish()]
        for draft, hook in self._undone:
            index = self.draft.index_of(hook) if hook is not None else None
            draft.key = f"{self.draft.key}/{draft.key}"
            sessions.append(replace(draft.finish(), parent=(self.draft.key, index or 0)))
        return Transcript(FORMAT, sessions, self.repairs, items)

    def _context(self, kind: str, payload: Node, where: str) -> None:
        if kind == "session_meta":
            # A fork repeats the head of the session it came from behind its own.
            if not self._named:
                self.draft.key = text_at(payload, "id") or self.draft.key
                self._named = text_at(payload, "id") is not None
                self.draft.started_at = time_of(text_at(payload, "timestamp"))
            base = object_at(payload, "base_instructions")
            instructions = text_at(payload, "instructions") or text_at(base, "text")
            self.draft.instructions = self.draft.instructions or instructions or ""
        elif kind == "turn_context":
            self._flush()
            self._model = text_at(payload, "model") or self._model
            self.draft.model = self.draft.model or self._model
        self.draft.leave_many(kind, where, f"Records of type {kind}: settings, not content.")

    def _item(self, item: Node, where: str, at: str | None) -> None:
        kind = text_at(item, "type")
        if kind in _NO_CONTENT:
            self.draft.leave_many(kind or "", where, "Snapshots of the working tree.")
            return
        if kind == "additional_tools":
            for tool in OpenAIResponses().request(item).tools:
                self.draft.declare(tool)
            self.draft.leave_many(
                "tools_added", where, "Tools that became known; they are declared."
            )
            return
        turn, extra = item_turns([item])[0], ""
        if kind == "agent_message":
            turn, extra = Turn("input", _as_note(item)), extra_of(item, _MODELLED_IN_NOTE)
        if turn.role == "assistant":
            if not self._answer:
                self._answer_where, self._answer_at = where, at
            self._answer.append(turn)
        else:
            self._flush()
            parts = _parted(item) if turn.role == "user" else []
            if any(not is_note for is_note, _ in parts):
                self._turns.append(self.draft.size)
            for is_note, part in parts:
                said = item_turns([part])[0]
                if not is_note:
                    self._name_after(part)
                said = said._replace(role="input") if is_note else said
                add_other(self.draft, said, where, Facts(at=at))
            if not parts:
                add_other(self.draft, turn, where, Facts(at=at, extra=extra))
        self._said.update(map(_digest, _texts(item)))

    def _name_after(self, item: Node) -> None:
        """The first request names the session; editors put their context in front of it."""
        if not self.draft.title:
            text = "\n".join(text or "" for text in texts_of(item.get("content")))
            request = text.partition(_REQUEST_HEADING)[2].strip() or text.strip()
            self.draft.title = shorten(request.split("\n")[0])

    def _flush(self) -> None:
        """Close the answer that is being collected."""
        if not self._answer:
            return
        facts = Facts(self._model, self._usage, None, self._answer_at)
        if add_answer(self.draft, self._answer, self._answer_where, facts):
            self._usage = None
        self._answer = []

    def _event(self, payload: Node, where: str) -> None:
        kind = text_at(payload, "type") or "unnamed"
        if kind == "token_count":
            self._count(payload, where)
        elif kind in _ECHOES:
            text = text_at(payload, "message") or text_at(payload, "text") or ""
            self._echoes.append((where, _digest(text), kept(payload.raw, self._shelf)))
        else:
            if kind in ("turn_aborted", "thread_rolled_back"):
                self._flush()
            if kind == "thread_rolled_back":
                self._roll_back(payload)
            detail = f"Events of type {kind}; they tell about the run and are no content."
            self.draft.leave_many(f"event_{kind}", where, detail)

    def _roll_back(self, payload: Node) -> None:
        """The last turns of the user, and all that came of them, are no longer part of the conversation."""
        number = payload.get("num_turns")
        turns = number.value() if number is not None else 0
        undone = self._turns[-turns:] if isinstance(turns, int) and turns > 0 else []
        if undone and undone[0] < self.draft.size:
            other = SessionDraft(
                f"rollback-{len(self._undone) + 1}", self.draft.provider, shelf=self._shelf
            )
            other.model = self._model
            self._undone.append((other, self.draft.cut(undone[0], other)))
        del self._turns[len(self._turns) - len(undone) :]

    def _count(self, payload: Node, where: str) -> None:
        """Usage belongs to the answer being collected, else to the next one (older versions count first)."""
        detail = "Token counts; the figures stand with the answers they belong to."
        self.draft.leave_many("token_count", where, detail)
        info = object_at(payload, "info")
        total = object_at(info, "total_token_usage")
        usage = openai_usage(object_at(info, "last_token_usage"))
        if total is not None and len(total):
            if total.peek() == self._counted:
                # Told again (on resuming, on new limits): no model was called in between.
                return
            self._counted = total.peek()
        if usage is None:
            return
        if self._usage is not None:
            self.draft.note(
                RepairAction.WARNED,
                "unclaimed_usage",
                where,
                f"Usage without an answer: {self._usage.raw}",
            )
        self._usage = usage
        self._flush()

    def _compacted(self, payload: Node, where: str, at: str | None) -> None:
        self._flush()
        message = payload.get("message")
        text = message.text() if message is not None else None
        if message is not None and message.kind is NodeKind.NULL:
            text = ""
        if text is None:
            self.draft.leave("unknown_record", where, "A compaction without text.", raw=payload.raw)
            return
        replaced = array_at(payload, "replacement_history")
        sealed = [item for item in replaced if text_at(item, "type") in COMPACTIONS]
        if sealed and not text:
            # The provider's summary, which nobody but the provider can read.
            add_other(self.draft, item_turns(sealed[-1:])[0], where, Facts(at=at))
            replaced.remove(sealed[-1])
        else:
            self.draft.found(1)
            entry = Entry(
                EntryType.SUMMARY, ContentFormat.TEXT, text, Trust.EXTERNAL_UNTRUSTED, at=at
            )
            self.draft.add(entry, Shape(1, empty=int(not text)), where)
        if replaced:
            self.draft.found(len(replaced))
            detail = "Items that the compaction repeats for its new window."
            self.draft.tally("repeated_history", where, detail, items=len(replaced))

    def _account_for_echoes(self) -> None:
        for where, digest, raw in self._echoes:
            if digest in self._said:
                detail = "Events that repeat a response item."
                self.draft.leave_many("repeated_event", where, detail)
            else:
                detail = "An event that repeats no response item."
                self.draft.leave("unmatched_event", where, detail, raw=taken(raw))


def read_lines(lines: Iterable[str], shelf: Shelf | None = None) -> Transcript:
    """Read a rollout; what its items say may wait on the shelf."""
    rollout = _Rollout(shelf)
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            record = parse(text)
        except LexemeError as error:
            rollout.repairs.append(broken_line(number, line, str(error)))
            continue
        rollout.take(number, record)
    return rollout.finish()


def read_document(root: Node) -> Transcript:
    """Read a session of the first, TypeScript program: its head, and its items in a list."""
    rollout = _Rollout(None)
    head = object_at(root, "session")
    if head is not None:
        rollout.take_head(head)
    for number, item in enumerate(array_at(root, "items"), 1):
        rollout.take_item(item, f"item {number}")
    return rollout.finish()


def _is_bare_head(record: Node) -> bool:
    return record.get("record_type") is not None or record.get("instructions") is not None


def _as_note(item: Node) -> Node:
    """A message of another agent, as one that the harness put into the user's role."""
    content = first_given(item, "content")
    raw = content.raw if content is not None else "[]"
    return parse(f'{{"type":"message","role":"user","content":{raw}}}')


def _parted(item: Node) -> list[tuple[bool, Node]]:
    """A message in the user's role, cut where the harness's notes in it begin and end; whether each piece is one.

    Content is a text, a part or a list of both: whatever its form, each text in it is judged.
    """
    parts = parts_of(item.get("content"))
    marks = _marks(parts)
    if len(set(marks)) < 2:
        return [(True in marks, item)]
    rest = extra_of(item, frozenset(("content",)))
    frame = f"{rest[:-1]}," if rest else "{"
    told = zip(marks, parts, strict=True)
    pieces = ((mark, joined(part for _, part in group)) for mark, group in groupby(told, _mark))
    return [(mark, parse(f'{frame}"content":{content}}}')) for mark, content in pieces]


def _marks(parts: list[Node]) -> list[bool]:
    """Whether each part is a note; what says nothing goes with the user's words next to it, else with the notes."""
    said = [
        None if not (text or "").strip() else _is_note(text or "")
        for text in map(text_of_part, parts)
    ]
    behind: list[bool | None] = []
    last: bool | None = None
    for mark in reversed(said):
        last = last if mark is None else mark
        behind.append(last)
    marks: list[bool] = []
    for mark, ahead in zip(said, reversed(behind), strict=True):
        before = marks[-1] if marks else None
        is_beside_words = before is False or ahead is False
        marks.append(mark if mark is not None else not is_beside_words and bool(before or ahead))
    return marks


def _is_note(text: str) -> bool:
    return text.lstrip().startswith(_NOTES)


def _mark(told: tuple[bool, Node]) -> bool:
    return told[0]


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _texts(item: Node) -> set[str]:
    """Every text an event may repeat: of a message, or of a reasoning summary."""
    told = [*texts_of(item.get("content")), *texts_of(item.get("summary"))]
    texts = [text or "" for text in told]
    return {*texts, "".join(texts), "\n".join(texts)}
