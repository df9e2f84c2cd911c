"""OpenAI Codex rollouts: JSON lines of `{timestamp, type, payload}`, with Responses items in `response_item`."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.dialect import Facts, Turn, array_at, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.openai_responses import add_answer, add_other, item_turns
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
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
)
_NOTES = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "# AGENTS.md instructions",
)
"""How user-role messages begin that the harness wrote."""

_REQUEST_HEADING = "## My request for Codex:"
_ECHOES = ("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content")
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
        self._model: str | None = None
        self._said: set[bytes] = set()
        """Digests of what the items say."""
        self._echoes: list[tuple[str, bytes, str | Shelved]] = []

    def take(self, number: int, record: Node) -> None:
        """Read one record."""
        where, kind = f"line {number}", text_at(record, "type")
        payload = object_at(record, "payload")
        at = time_of(text_at(record, "timestamp"))
        if kind not in RECORD_TYPES or payload is None:
            self.draft.leave("unknown_record", where, f"A record of type {kind!r}.", raw=record.raw)
        elif kind == "response_item":
            self._item(payload, where, at)
        elif kind == "event_msg":
            self._event(payload, where)
        elif kind == "compacted":
            self._compacted(payload, where, at)
        else:
            self._context(kind, payload, where)

    def finish(self) -> Transcript:
        """Close what is open."""
        self._flush()
        self._account_for_echoes()
        items = sum(repair.items for repair in self.repairs)
        return Transcript(FORMAT, [self.draft.finish()], self.repairs, items)

    def _context(self, kind: str, payload: Node, where: str) -> None:
        if kind == "session_meta":
            self.draft.key = text_at(payload, "id") or self.draft.key
            base = object_at(payload, "base_instructions")
            instructions = text_at(payload, "instructions") or text_at(base, "text")
            self.draft.instructions = self.draft.instructions or instructions or ""
        else:
            self._flush()
            self._model = text_at(payload, "model") or self._model
            self.draft.model = self.draft.model or self._model
        self.draft.leave_many(kind, where, f"Records of type {kind}: settings, not content.")

    def _item(self, item: Node, where: str, at: str | None) -> None:
        kind = text_at(item, "type")
        if kind in _NO_CONTENT:
            self.draft.leave_many(kind or "", where, "Snapshots of the working tree.")
            return
        turn = item_turns([item])[0]
        if turn.role == "assistant":
            if not self._answer:
                self._answer_where, self._answer_at = where, at
            self._answer.append(turn)
        else:
            self._flush()
            if turn.role == "user" and _is_note(item):
                turn = turn._replace(role="input")
            elif turn.role == "user":
                self._name_after(item)
            add_other(self.draft, turn, where, Facts(at=at))
        self._said.update(map(_digest, _texts(item)))

    def _name_after(self, item: Node) -> None:
        """The first request names the session; editors put their context in front of it."""
        if not self.draft.title:
            text = "\n".join(text_at(part, "text") or "" for part in array_at(item, "content"))
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
            if kind == "turn_aborted":
                self._flush()
            detail = f"Events of type {kind}; they tell about the run and are no content."
            self.draft.leave_many(f"event_{kind}", where, detail)

    def _count(self, payload: Node, where: str) -> None:
        """Usage belongs to the answer being collected, else to the next one (older versions count first)."""
        detail = "Token counts; the figures stand with the answers they belong to."
        self.draft.leave_many("token_count", where, detail)
        usage = openai_usage(object_at(object_at(payload, "info"), "last_token_usage"))
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
        text = text_at(payload, "message")
        if message is None or text is None:
            self.draft.leave("unknown_record", where, "A compaction without text.", raw=payload.raw)
            return
        self.draft.found(1)
        entry = Entry(EntryType.SUMMARY, ContentFormat.TEXT, text, Trust.EXTERNAL_UNTRUSTED, at=at)
        self.draft.add(entry, Shape(1, empty=int(not text)), where)
        replaced = array_at(payload, "replacement_history")
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


def _is_note(item: Node) -> bool:
    content = item.get("content")
    if content is None or content.kind is not NodeKind.ARRAY:
        return False
    texts = [text_at(part, "text") or "" for part in content]
    return bool(texts) and all(text.lstrip().startswith(_NOTES) for text in texts)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _texts(item: Node) -> set[str]:
    """Every text an event may repeat: of a message, or of a reasoning summary."""
    parts: list[Any] = [*array_at(item, "content"), *array_at(item, "summary")]
    texts = [text_at(part, "text") or "" for part in parts]
    return {*texts, "".join(texts), "\n".join(texts)}
