"""Claude Code sessions: JSON lines that form a tree, with Anthropic messages inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

from ctxengine.engine.content.decode import decode
from ctxengine.engine.importers.anthropic_messages import (
    add_anthropic_message,
    content_turn,
    message_facts,
)
from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.claude_hooks import Hooks
from ctxengine.engine.importers.claude_notes import (
    BOOKKEEPING,
    is_of_harness,
    progress_of,
    queued_prompt,
    queued_words,
    title_of,
    voice_of,
    voice_of_harness,
    words_of,
)
from ctxengine.engine.importers.claude_tree import (
    Arrangement,
    Record,
    arrange,
    by_call,
    in_order,
    record_of,
)
from ctxengine.engine.importers.dialect import (
    Facts,
    extra_of,
    gist,
    joined,
    object_at,
    shape_or_none,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.members import first_given, is_true
from ctxengine.engine.importers.mending import mended_content, note_mended
from ctxengine.engine.importers.shapes import Shape
from ctxengine.engine.importers.shelf import Shelf
from ctxengine.engine.importers.texts import shorten, time_of
from ctxengine.engine.importers.transcript import (
    Entry,
    EntryType,
    ForeignSession,
    Repair,
    RepairAction,
    Transcript,
)
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

FORMAT = "claude_code"
_SPEAKERS = ("user", "assistant")
_MODELLED = frozenset(("type", "message", "timestamp", "toolUseResult", "isSidechain"))
_MODELLED_IN_MESSAGE = frozenset(("role", "content", "model", "usage", "stop_reason", "type"))


class _Session:
    """Builds one session from its records, in file order."""

    def __init__(self, key: str, uuids: frozenset[str], shelf: Shelf | None) -> None:
        self.draft = SessionDraft(key, "anthropic", shelf=shelf)
        self._uuids = uuids
        self._seen: set[tuple[str, bytes]] = set()
        self._said: set[str] = set()
        """What the user's messages and queued words say."""
        self._named = False
        """Whether the session has a name that was given to it."""

    def take(self, records: list[Record]) -> None:
        """Read all records; lines of one API message are read together, where its first line stands."""
        groups: dict[str, list[Record]] = {}
        fresh = [record for record in records if not self._is_repeat(record)]
        self._said = {words for r in fresh if (words := words_of(r.node, r.kind))}
        for record in fresh:
            if record.message_id is not None:
                groups.setdefault(record.message_id, []).append(record)
        for record in fresh:
            if record.message_id is None:
                self._one(record)
            elif record.message_id in groups:
                self._answer(groups.pop(record.message_id))

    def _is_repeat(self, record: Record) -> bool:
        if record.uuid is None:
            return False
        raw = record.node.raw
        seen = record.uuid, sha256(raw.encode("utf-8", "surrogatepass")).digest()
        if seen not in self._seen:
            self._seen.add(seen)
            return False
        self.draft.leave("repeated_record", record.where, "The same line again.", raw=raw)
        return True

    def _one(self, record: Record) -> None:
        if record.kind in _SPEAKERS:
            self._message(record)
        elif record.kind == "summary":
            self._summary(record)
        else:
            self._bookkeeping(record)

    def _message(self, record: Record) -> None:
        message = object_at(record.node, "message")
        content = first_given(message, "content")
        if content is None:
            detail = f"A {record.kind} record without a message that can be read."
            self.draft.leave("unreadable_record", record.where, detail, raw=record.node.raw)
            return
        if record.kind == "assistant":
            self._answer([record])
            return
        self._note_copy(record)
        facts = Facts(at=time_of(text_at(record.node, "timestamp")), extra=_extra([record]))
        if is_true(record.node, "isCompactSummary"):
            self._add_summary(record, content, facts)
            return
        harness = is_of_harness(record.node)
        add_anthropic_message(
            self.draft,
            content_turn("user", content),
            record.where,
            facts,
            classify=voice_of_harness if harness else voice_of,
        )

    def _answer(self, records: list[Record]) -> None:
        """One API message; its usage is repeated on each of its lines and stands complete on the last."""
        read: list[Record] = []
        for record in records:
            if _is_readable(record, alone=len(records) == 1):
                read.append(record)
            else:
                detail = "An assistant record without a message that can be read."
                self.draft.leave("unreadable_record", record.where, detail, raw=record.node.raw)
        messages = (object_at(record.node, "message") for record in reversed(records))
        last = next((message for message in messages if message is not None), None)
        if last is None or not read:
            return
        if text_at(last, "model") == "<synthetic>":
            for record in read:
                detail = "A message the harness wrote in the model's place; no model was called."
                self.draft.leave("harness_message", record.where, detail, raw=record.node.raw)
            return
        content = self._joined(read) if len(records) > 1 else _content(read[0])
        at = time_of(text_at(records[0].node, "timestamp"))
        facts = message_facts(last, at=at, extra=_extra(read))
        turn = content_turn("assistant", content or last)
        add_anthropic_message(self.draft, turn, records[0].where, facts)

    def _joined(self, records: list[Record]) -> Node:
        """Blocks of all lines of a message; a call that a later line repeats is reported once more and left out."""
        blocks: list[Node] = []
        calls: set[str] = set()
        for record in records:
            for block in _blocks(record):
                raw = block.raw
                if text_at(block, "type") == "tool_use":
                    if raw in calls:
                        detail = "A line of the message repeats this call."
                        self.draft.leave("repeated_block", record.where, detail, raw=raw)
                        continue
                    calls.add(raw)
                blocks.append(block)
        self.draft.tally(
            "split_message",
            records[0].where,
            "Answers that stand on several lines with one message id; each is one answer.",
            action=RepairAction.JOINED,
        )
        return parse(joined(blocks))

    def _summary(self, record: Record) -> None:
        node = record.node
        message = object_at(node, "message")
        content = first_given(message, "content") or first_given(node, "summary")
        if content is None:
            self.draft.leave("unreadable_record", record.where, "An empty summary.", raw=node.raw)
            return
        leaf = text_at(node, "leafUuid")
        if leaf is not None and leaf not in self._uuids:
            detail = "The title of another session, left in this file."
            self.draft.leave("foreign_title", record.where, detail, raw=node.raw)
            return
        if leaf is not None and (text := content.text()) and not self._named:
            self.draft.title = shorten(text)
        facts = Facts(at=time_of(text_at(node, "timestamp")), extra=_extra([record]))
        self._add_summary(record, content, facts)

    def _add_summary(self, record: Record, content: Node, facts: Facts) -> None:
        """A summary is one message of nothing but words and media, put right where its content is not the API's."""
        shape = _shape_of_message(content)
        if shape is None:
            mended = mended_content(content)
            shape = _shape_of_message(mended.node)
            if shape is None:
                detail = "A summary that cannot be read."
                self.draft.leave("unreadable_record", record.where, detail, raw=record.node.raw)
                return
            note_mended(self.draft, mended, record.where)
            content = mended.node
        self.draft.found(1)
        entry = Entry(
            EntryType.SUMMARY,
            ContentFormat.ANTHROPIC,
            content.raw,
            Trust.EXTERNAL_UNTRUSTED,
            at=facts.at,
            extra=facts.extra,
        )
        self.draft.add(entry, shape, record.where)

    def _bookkeeping(self, record: Record) -> None:
        kind, node = record.kind, record.node
        title, queued, words = title_of(node, kind), queued_prompt(node), queued_words(node)
        if title and (kind == "custom-title" or not self._named):
            self.draft.title, self._named = shorten(title), True
        if progress_of(node) is not None:
            # The agent's own session says it.
            return
        if queued is not None:
            prompt, voice = queued
            facts = Facts(at=time_of(text_at(node, "timestamp")), extra=_extra([record]))
            turn = content_turn("user", prompt)
            add_anthropic_message(self.draft, turn, record.where, facts, classify=lambda _: voice)
        elif words and gist(words) not in self._said:
            detail = (
                "Words from the queue that no message repeats; the model may not have seen them."
            )
            self.draft.leave("queued_words", record.where, detail, raw=node.raw)
        elif kind == "attachment":
            about = text_at(object_at(node, "attachment"), "type") or "unnamed"
            detail = f"An attachment ({about}): what the program showed the model beside messages."
            self.draft.leave("attachment", record.where, detail, raw=node.raw)
        elif kind == "system":
            subtype = text_at(record.node, "subtype") or "note"
            code = "compact_boundary" if subtype == "compact_boundary" else "system_record"
            self.draft.leave_many(code, record.where, f"Records of type system ({subtype}).")
        elif kind in BOOKKEEPING:
            detail = f"Records of type {kind}; no content."
            self.draft.leave_many(kind.replace("-", "_"), record.where, detail)
        else:
            detail = f"A record of type {kind!r}."
            self.draft.leave("unknown_record", record.where, detail, raw=record.node.raw)

    def _note_copy(self, record: Record) -> None:
        if first_given(record.node, "toolUseResult") is not None:
            self.draft.tally(
                "result_copy",
                record.where,
                "A second copy of the result beside its message; left out.",
            )


def read_lines(lines: Iterable[str], shelf: Shelf | None = None) -> Transcript:
    """Read a session file; what its lines say may wait on the shelf."""
    records: list[Record] = []
    repairs: list[Repair] = []
    agents: dict[str, _Agent] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            node = parse(text)
        except LexemeError as error:
            repairs.append(broken_line(number, line, str(error)))
            continue
        if node.kind is NodeKind.OBJECT:
            records.append(record_of(number, node, shelf))
            progress = progress_of(node)
            if progress is not None:
                agent = agents.setdefault(progress.agent, _Agent(progress.call_id, []))
                agent.records.append(record_of(number, progress.message, shelf))
        else:
            repairs.append(_no_record(number, node))
    arrangement = arrange(records)
    sessions = _sessions(arrangement, records, agents, shelf)
    return Transcript(FORMAT, sessions, repairs, len(repairs))


class _Agent(NamedTuple):
    """What records about an agent's progress carry of its conversation."""

    call_id: str | None
    records: list[Record]


def _sessions(
    arrangement: Arrangement,
    records: list[Record],
    agents: Mapping[str, _Agent],
    shelf: Shelf | None,
) -> list[ForeignSession]:
    uuids = frozenset(record.uuid for record in records if record.uuid)
    ids = (
        text_at(record.node, "sessionId") or text_at(record.node, "session_id")
        for record in records
    )
    key = next((name for name in ids if name), "session")
    main = _Session(key, uuids, shelf)
    main.take(arrangement.main)
    sessions = [main.draft.finish()]
    hooks = Hooks(arrangement.main)
    for branch in arrangement.branches:
        first = branch.records[0]
        child = _Session(f"{key}/{branch.kind}-{first.uuid or first.line}", uuids, shelf)
        child.take(branch.records)
        session = child.draft.finish()
        hook = hooks.of(branch)
        index = main.draft.index_of(hook) if hook is not None else None
        sessions.append(replace(session, parent=(key, index if index is not None else 0)))
    callers = by_call(arrangement.main) if agents else {}
    for name, agent in agents.items():
        child = _Session(f"{key}/agent-{name}", uuids, shelf)
        child.take(in_order(agent.records))
        caller = callers.get(agent.call_id or "")
        hook = hooks.first_line(caller) if caller is not None else None
        index = main.draft.index_of(hook) if hook is not None else None
        sessions.append(replace(child.draft.finish(), parent=(key, index or 0)))
    return sessions


def _no_record(number: int, node: Node) -> Repair:
    return Repair(
        RepairAction.SET_ASIDE,
        "not_a_record",
        f"line {number}",
        f"A JSON {node.kind} where a record is expected.",
        items=1,
        raw=node.raw,
    )


def _shape_of_message(content: Node) -> Shape | None:
    """Counts of content that is one item which is neither a call nor a result; None for any other."""
    shape = shape_or_none(ContentFormat.ANTHROPIC, content.raw, None, role="user")
    if shape is None or (shape.items, shape.total) != (1, 1):
        return None
    (item,) = decode(ContentFormat.ANTHROPIC, content.raw, role="user").items
    return None if item.kind in (ItemKind.TOOL_CALL, ItemKind.TOOL_RESULT) else shape


def _content(record: Record) -> Node | None:
    return first_given(object_at(record.node, "message"), "content")


def _is_readable(record: Record, *, alone: bool) -> bool:
    """Whether an answer's line has content; one among several, such as can stand among the others'."""
    content = _content(record)
    if content is None or alone:
        return content is not None
    return content.kind in (NodeKind.ARRAY, NodeKind.STRING) or text_at(content, "type") is not None


def _blocks(record: Record) -> list[Node]:
    """Content blocks of one line that can be read; a text is one block, and a block may stand alone."""
    content = _content(record)
    if content is None or content.kind is NodeKind.ARRAY:
        return list(content or ())
    if content.kind is NodeKind.OBJECT:
        return [content]
    return [parse(f'{{"type":"text","text":{content.raw}}}')]


def _extra(records: list[Record]) -> str:
    """Unmodelled fields of each line of a message; an array when there are several lines."""
    texts: list[str] = []
    for record in records:
        text = extra_of(record.node, _MODELLED)
        message = object_at(record.node, "message")
        inner = extra_of(message, _MODELLED_IN_MESSAGE) if message is not None else ""
        if inner:
            text = (text[:-1] + "," if text else "{") + f'"message":{inner}}}'
        texts.append(text or "{}")
    return texts[0] if len(texts) == 1 else "[" + ",".join(texts) + "]"
