"""Sessions of the pi coding agent: JSON lines; newer versions form a tree by id and parentId."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.claude_tree import Arrangement, Record, arrange
from ctxengine.engine.importers.dialect import Facts, extra_of, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.loose import add_around, add_said, read_message
from ctxengine.engine.importers.loose_parts import Said, read_parts
from ctxengine.engine.importers.members import id_at
from ctxengine.engine.importers.pieces import Pieces, add_message
from ctxengine.engine.importers.shelf import Shelf, Value
from ctxengine.engine.importers.texts import shorten, time_of
from ctxengine.engine.importers.transcript import (
    EntryType,
    ForeignSession,
    ForeignUsage,
    Repair,
    Transcript,
)
from ctxengine.engine.importers.usage import disjoint_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "pi_session"
_SETTINGS = (
    "session",
    "thinking_level_change",
    "model_change",
    "label",
    "session_info",
    "custom",
)
_SUMMARIES = ("branchSummary", "compactionSummary")
_EXTENSIONS = ("custom", "hookMessage")
"""Roles in which extensions of the program speak."""
_MODELLED = frozenset(("type", "timestamp", "message"))
_MODELLED_IN_MESSAGE = frozenset(("role", "content", "model", "usage", "stopReason", "toolCallId"))


def read_lines(lines: Iterable[str], shelf: Shelf | None = None) -> Transcript:
    """Read a session file; what its lines say may wait on the shelf."""
    records: list[Record] = []
    repairs: list[Repair] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(_record(number, parse(line.strip()), shelf))
        except LexemeError as error:
            repairs.append(broken_line(number, line, str(error)))
    head = next((r.node for r in records if r.kind == "session"), None)
    key = id_at(head, "id") or "session"
    return Transcript(
        FORMAT, _sessions(arrange_records(records), key, shelf), repairs, len(repairs)
    )


def arrange_records(records: list[Record]) -> Arrangement:
    """A tree where records name their parents, else the lines in their order."""
    if any(record.parent for record in records):
        return arrange(records)
    return Arrangement(records)


def _record(line: int, node: Node, shelf: Shelf | None) -> Record:
    kind = text_at(node, "type") or ""
    role = text_at(object_at(node, "message"), "role")
    return Record(
        line=line,
        value=Value(node, shelf),
        kind=role if kind == "message" and role in ("user", "assistant") else kind,
        uuid=id_at(node, "id") if kind != "session" else None,
        parent=id_at(node, "parentId"),
        side=False,
        message_id=None,
    )


def _sessions(arrangement: Arrangement, key: str, shelf: Shelf | None) -> list[ForeignSession]:
    main = SessionDraft(key, "anthropic", shelf=shelf)
    for record in arrangement.main:
        _take(main, record)
    sessions = [main.finish()]
    for branch in arrangement.branches:
        first = branch.records[0]
        child = SessionDraft(f"{key}/fork-{first.uuid or first.line}", "anthropic", shelf=shelf)
        for record in branch.records:
            _take(child, record)
        index = main.index_of(branch.parent.where) if branch.parent is not None else None
        sessions.append(replace(child.finish(), parent=(key, index or 0)))
    return sessions


def _take(draft: SessionDraft, record: Record) -> None:
    node, where = record.node, record.where
    kind = text_at(node, "type")
    message = object_at(node, "message")
    if kind == "message" and message is not None:
        _message(draft, node, message, where)
    elif kind in ("compaction", "branch_summary"):
        _summary(draft, node, where)
    elif kind in _SETTINGS:
        name = text_at(node, "name") if kind == "session_info" else None
        draft.title = shorten(name) if name else draft.title
        draft.leave_many(f"record_{kind}", where, f"Records of type {kind}: no content.")
    elif kind == "custom_message":
        _extension(draft, node, where, Facts(at=_at(node)))
    else:
        draft.leave("unknown_record", where, f"A record of type {kind!r}.", raw=node.raw)


def _message(draft: SessionDraft, node: Node, message: Node, where: str) -> None:
    role = text_at(message, "role")
    if role == "bashExecution":
        _shell(draft, node, message, where)
        return
    if role in _SUMMARIES:
        _summary(draft, message, where, at=_at(node))
        return
    if role in _EXTENSIONS:
        _extension(draft, message, where, Facts(at=_at(node), extra=_extra(node, message)))
        return
    if role not in ("user", "assistant", "toolResult"):
        draft.leave("unknown_record", where, f"A message of role {role!r}.", raw=node.raw)
        return
    if role == "toolResult":
        said = read_message(message)
    else:
        said = Said(role)
        content = message.get("content")
        if content is not None and content.kind is NodeKind.STRING:
            said.pieces.text(content)
        else:
            for part in content or ():
                _part(said, part)
    facts = Facts(
        text_at(message, "model"),
        _usage(message),
        text_at(message, "stopReason"),
        _at(node),
        _extra(node, message),
    )
    add_said(draft, said, where, facts)


def _part(said: Said, part: Node) -> None:
    """A call that was cut off while streaming keeps what the model had written of it."""
    partial = part.get("partialJson")
    name = text_at(part, "name")
    if text_at(part, "type") == "toolCall" and partial is not None and name is not None:
        said.pieces.call(id_at(part, "id"), name, partial)
    else:
        read_parts(said, [part])


def _shell(draft: SessionDraft, node: Node, message: Node, where: str) -> None:
    """A command the user ran beside the conversation."""
    command, output = text_at(message, "command") or "", text_at(message, "output") or ""
    pieces = Pieces()
    pieces.plain(f"$ {command}\n{output}")
    add_message(
        draft, EntryType.INPUT, pieces, where, Facts(at=_at(node), extra=_extra(node, message))
    )


def _extension(draft: SessionDraft, holder: Node, where: str, facts: Facts) -> None:
    """What an extension of the program put before the model."""
    said = Said("user")
    content = holder.get("content")
    is_text = content is not None and content.kind is NodeKind.STRING
    read_parts(said, [content] if content is not None and is_text else content or ())
    add_around(draft, said, where, facts)
    if said.has_words or not (said.results or said.unreadable):
        add_message(draft, EntryType.INPUT, said.pieces, where, facts)


def _summary(draft: SessionDraft, node: Node, where: str, *, at: str | None = None) -> None:
    summary = node.get("summary")
    if summary is None or summary.kind is not NodeKind.STRING:
        draft.leave("unknown_record", where, "A compaction without a summary.", raw=node.raw)
        return
    pieces = Pieces()
    pieces.text(summary)
    extra = extra_of(node, frozenset(("type", "timestamp", "summary")))
    add_message(draft, EntryType.SUMMARY, pieces, where, Facts(at=at or _at(node), extra=extra))


def _usage(message: Node) -> ForeignUsage | None:
    return disjoint_usage(
        object_at(message, "usage"),
        fresh="input",
        cache_read="cacheRead",
        cache_write="cacheWrite",
        output="output",
    )


def _extra(node: Node, message: Node) -> str:
    outer = extra_of(node, _MODELLED)
    inner = extra_of(message, _MODELLED_IN_MESSAGE)
    if not inner:
        return outer
    return (outer[:-1] + "," if outer else "{") + f'"message":{inner}}}'


def _at(node: Node) -> str | None:
    return time_of(text_at(node, "timestamp"))
