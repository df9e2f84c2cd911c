"""The facts of an item that holds one text or one call, which nearly all do, without an object for each (design 4).

What `engine.derive` says of any item is worked out here for plain ones alone, in one pass from the body's text; everything else
is left to it. A property test holds the two against each other over odd messages, and the tests of outlined imports do over
those files of the corpus that they take.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any

from ctxengine.engine.content.openai_chat import OPAQUE_MEMBERS, ROUTER_FIELDS
from ctxengine.engine.derive import ENVELOPE_TOKENS, Derivation, facts_of, shown_start
from ctxengine.engine.events import EventType, ItemFacts
from ctxengine.engine.evidence.pointer import MAX_POINTER_BYTES, pointer_line
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.transcript import Entry, EntryType
from ctxengine.engine.items import ContentFormat, ItemKind, speaks_in_user_role
from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.ports import OpenCall, TokenCounter
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.names import wire_call_id
from ctxengine.ledger.copy_lines import Facts
from ctxengine.service.imports.import_log import ImportLog

_ODD_MEMBERS = frozenset((*OPAQUE_MEMBERS, ROUTER_FIELDS, "function_call", "audio", "refusal"))
_ROLES = {"user": "user", "system": "user", "developer": "user", "tool": "tool", "function": "tool"}
_WANTED = {
    EventType.TOOL_RESULT: "tool",
    EventType.USER_MESSAGE: "user",
    EventType.INPUT_RECEIVED: "user",
}
"""Who speaks in a plain event that is no answer."""
EVENT_OF = {
    EntryType.USER: EventType.USER_MESSAGE,
    EntryType.INPUT: EventType.INPUT_RECEIVED,
    EntryType.ASSISTANT: EventType.RESPONSE_COMPLETED,
    EntryType.RESULT: EventType.TOOL_RESULT,
    EntryType.SUMMARY: EventType.SUMMARY_IMPORTED,
}
"""What an entry becomes in the ledger."""
SOURCE_OF = {
    EntryType.USER: "user",
    EntryType.INPUT: "transcript:note",
    EntryType.ASSISTANT: "model",
    EntryType.SUMMARY: "summary:foreign",
}
"""Where an entry's content comes from; a result names its tool."""
_NAMES_KEPT = 4_096

Said = tuple[str | None, list[tuple[str | None, str, str]]]
"""A message's text, and its calls as (id, name, arguments)."""


def source_of(entry: Entry, call: OpenCall | None) -> str:
    """Who an entry comes from, as its items say it."""
    return SOURCE_OF.get(entry.type) or f"tool:{call.name if call else entry.name or ''}"


def said_in_chat(message: Any, type: EventType) -> Said | None:
    """What a chat message says; None where its decoder has to be asked."""
    if not isinstance(message, dict):
        return None
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return _answer(message, content) if type is EventType.RESPONSE_COMPLETED else None
    wanted = _WANTED.get(type)
    if wanted is None or not isinstance(role, str) or _ROLES.get(role) != wanted:
        return None
    if not isinstance(content, str) or (wanted == "tool" and not _plain_result(message, content)):
        return None
    return content, []


def _plain_result(message: dict[str, Any], content: str) -> bool:
    names = (message.get("tool_call_id"), message.get("name"), message.get("tool_name"))
    return content != "" and all(name is None or isinstance(name, str) for name in names)


def _answer(message: dict[str, Any], content: Any) -> Said | None:
    if not _ODD_MEMBERS.isdisjoint(message):
        return None
    if content is not None and not isinstance(content, str):
        return None
    given = message.get("tool_calls")
    if given is None:
        return content, []
    if not isinstance(given, list):
        return None
    calls = []
    for call in given:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("custom") is not None:
            return None
        call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        kind = call.get("type")
        if not isinstance(name, str) or not isinstance(arguments, str):
            return None
        if not isinstance(call_id, str | None) or not isinstance(kind, str | None):
            return None
        calls.append((call_id, name, arguments))
    return content or None, calls


class PlainItems:
    """Derives the items of entries; what they are counted with stays the same throughout."""

    def __init__(self, log: ImportLog, counter: TokenCounter) -> None:
        """Bind the session's log, which knows the call ids in use."""
        self._log, self._counter = log, counter
        self._derivation = Derivation(counter, foreign_as_pointer=True)
        self._frame = counter.parts(())
        self._of_name: dict[str, int] = {}

    def rows(
        self,
        entry: Entry,
        type: EventType,
        sequence: EventSeq,
        source: str,
        call: OpenCall | None,
    ) -> list[Facts]:
        """Facts of an entry's items.

        Raises:
            ContentError: the body is not written in its format.
        """
        if entry.format is ContentFormat.OPENAI_CHAT:
            said = said_in_chat(_value_of(entry), type)
            rows = self._plain(said, entry, type, sequence, source, call) if said else None
            if rows is not None:
                return rows
        return self._any(entry, type, sequence, source, call)

    def _any(
        self, entry: Entry, type: EventType, sequence: EventSeq, source: str, call: OpenCall | None
    ) -> list[Facts]:
        decoded = decode_event(type, entry.format, entry.body)
        ids = {item.call_id for item in decoded if item.kind is ItemKind.TOOL_CALL and item.call_id}
        facts = facts_of(
            decoded,
            sequence=sequence,
            trust=entry.trust,
            source=source,
            derivation=self._derivation,
            taken=self._log.taken_call_ids(ids) if ids else set(),
            answered=call.wire_call_id if call else "",
            name=call.name if call else "",
            is_error=entry.is_error,
        )
        return [_row_of(known) for known in facts]

    def _plain(
        self,
        said: Said,
        entry: Entry,
        type: EventType,
        sequence: EventSeq,
        source: str,
        call: OpenCall | None,
    ) -> list[Facts] | None:
        text, calls = said
        try:
            if type is EventType.TOOL_RESULT:
                return [self._result(text or "", entry, sequence, source, call)]
            rows: list[Facts] = []
            if text is not None:
                rows.append(self._message(text, entry, type, source))
            if calls:
                rows += self._calls(calls, len(rows), entry, sequence, source)
            return rows
        except UnicodeEncodeError:
            # Half characters have a digest of their own.
            return None

    def _message(self, text: str, entry: Entry, type: EventType, source: str) -> Facts:
        kind = ItemKind.USER_MESSAGE
        tokens = self._frame + self._counter.text(text)
        if type is EventType.RESPONSE_COMPLETED:
            kind = ItemKind.ASSISTANT_MESSAGE
        elif not speaks_in_user_role(kind, entry.trust, source):
            tokens += ENVELOPE_TOKENS
        return (
            0, kind, tokens, tokens, _digest(kind, text), _bytes_len(text), len(text), "", "", "", source,
            entry.is_error, shown_start(text) if text else "", 0,
        )  # fmt: skip

    def _result(
        self, text: str, entry: Entry, sequence: EventSeq, source: str, call: OpenCall | None
    ) -> Facts:
        bytes_len = _bytes_len(text)
        tokens = pointer = self._frame + self._counter.text(text) + ENVELOPE_TOKENS
        if bytes_len > MAX_POINTER_BYTES:
            line = pointer_line(f"{sequence}.0", _LOWERED[entry.trust], bytes_len)
            pointer = min(tokens, self._frame + self._counter.text(line))
        kind = ItemKind.TOOL_RESULT
        name, wire_id = (model_view(call.name), call.wire_call_id) if call else ("", "")
        return (
            0, kind, tokens, pointer, _digest(kind, text), bytes_len, len(text), name, "", wire_id, source,
            entry.is_error, shown_start(text), 0,
        )  # fmt: skip

    def _calls(
        self,
        calls: Collection[tuple[str | None, str, str]],
        first: int,
        entry: Entry,
        sequence: EventSeq,
        source: str,
    ) -> list[Facts]:
        used = self._log.taken_call_ids([call_id for call_id, _, _ in calls if call_id])
        rows = []
        kind = ItemKind.TOOL_CALL
        for ordinal, (call_id, name, arguments) in enumerate(calls, first):
            wire_id = wire_call_id(call_id or "", sequence, ordinal, used)
            used.add(wire_id)
            tokens = self._name_tokens(name) + self._counter.text(arguments)
            rows.append(
                (
                    ordinal, kind, tokens, tokens, _call_digest(call_id or "", name, arguments), _bytes_len(arguments),
                    len(arguments), model_view(name), model_view(call_id or ""), wire_id, source, entry.is_error,
                    shown_start(arguments) if arguments else "", 0,
                )
            )  # fmt: skip
        return rows

    def _name_tokens(self, name: str) -> int:
        """What a call of a tool takes before its arguments."""
        known = self._of_name.get(name)
        if known is None:
            if len(self._of_name) >= _NAMES_KEPT:
                self._of_name.clear()
            known = self._of_name[name] = self._counter.call(name, "")
        return known


_KINDS = {kind: kind.value for kind in ItemKind}
_LOWERED = {trust: trust.value.lower() for trust in Trust}


def _digest(kind: ItemKind, text: str) -> str:
    """What `item_digest` gives for one text."""
    shape = f'["{_KINDS[kind]}","","","",[["text",{encode_basestring(text)}]]]'
    return sha256(shape.encode()).hexdigest()


def _call_digest(call_id: str, name: str, arguments: str) -> str:
    """What `item_digest` gives for a call."""
    quoted = encode_basestring
    shape = (
        f'["{ItemKind.TOOL_CALL.value}",{quoted(call_id)},{quoted(name)},{quoted(arguments)},[]]'
    )
    return sha256(shape.encode()).hexdigest()


def _bytes_len(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _value_of(entry: Entry) -> Any:
    """What an entry's body decodes to; its reader may have let go of it."""
    if entry.value is not None:
        return entry.value
    try:
        return parse(entry.body).peek()
    except LexemeError:
        return None


def _row_of(facts: ItemFacts) -> Facts:
    return (
        facts.ordinal, facts.kind, facts.tokens, facts.pointer_tokens, facts.digest, facts.bytes_len, facts.chars_len,
        facts.name, facts.call_id, facts.wire_call_id, facts.source, facts.is_error, facts.preview, facts.excerpt_limit,
    )  # fmt: skip
