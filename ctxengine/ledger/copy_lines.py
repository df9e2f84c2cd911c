"""A log's rows as the lines of PostgreSQL's text COPY format, made without a model instance each (design 12).

Most texts of a row are ids, digests and words of ours; only names, previews, sources and payloads can hold a character that
the format uses itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db.models import Model

from ctxengine.engine.items import ItemKind
from ctxengine.engine.log.records import BodyCommitment, EventRecord, ItemRecord, UnitFacts
from ctxengine.ledger.models import Body, Event, ItemRow, RequestRow, UnitRow

NULL = r"\N"


class Columns(NamedTuple):
    """A table and its columns in the order in which its lines name them."""

    model: type[Model]
    names: tuple[str, ...]


Facts = tuple[int, ItemKind, int, int, str, int, int, str, str, str, str, bool, str, int]
"""An item's facts, in the order of the fields of `ItemFacts`."""


class Key(NamedTuple):
    """Whose rows they are."""

    tenant: str
    session: str

    @property
    def begins(self) -> str:
        """What a line of these rows begins with."""
        return f"{self.tenant}\t{self.session}\t"


BODY = Columns(
    Body,
    ("tenant_id", "session_id", "id", "salt", "data", "sha256", "length", "owner", "erased_at"),
)
EVENT = Columns(
    Event,
    (
        "tenant_id", "session_id", "sequence", "type", "run_id", "trust", "payload", "body_id", "body_sha256",
        "body_length", "tokens", "prev_hash", "hash", "idempotency_key", "recorded_at",
    ),
)  # fmt: skip
ITEM = Columns(
    ItemRow,
    (
        "tenant_id", "session_id", "sequence", "ordinal", "unit_sequence", "kind", "trust", "run_id", "name", "call_id",
        "wire_call_id", "source", "is_error", "tokens", "pointer_tokens", "bytes_len", "chars_len", "digest", "preview",
        "excerpt_limit",
    ),
)  # fmt: skip
UNIT = Columns(
    UnitRow,
    (
        "tenant_id", "session_id", "sequence", "index", "last_sequence", "run_id", "kind", "open_calls", "tokens",
        "pointer_tokens", "result_tokens", "before_tokens", "before_pointer_tokens", "before_result_tokens", "before_turns",
        "before_saved_tokens",
    ),
)  # fmt: skip
REQUEST = Columns(
    RequestRow,
    (
        "tenant_id", "id", "session_id", "run_id", "number", "run_number", "step", "content_sequence", "act_sequence",
        "epoch", "engine", "provider", "model", "inputs", "manifest", "budget", "cache", "request_sha256", "prefix_sha256",
        "wire_prefix_sha256", "total_tokens", "body_bytes", "body_chars", "status", "usage", "verdict", "error",
        "reconstructed", "build_ms", "created_at", "answered_at",
    ),
)  # fmt: skip


def escaped(text: str) -> str:
    """A text as a field of a line."""
    # The backslash first: what stands for the others begins with one. Where there is nothing to replace, nothing is copied.
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")


def body_line(key: Key, salt: bytes, data: bytes, commitment: BodyCommitment) -> str:
    """A body's line; whose it is stays open."""
    return body_line_of(
        key.begins, commitment.id, salt, _bytes_field(data), commitment.sha256, commitment.length
    )


def body_line_of(
    begins: str, body_id: str, salt: bytes, field: str, sha256: str, length: int
) -> str:
    """The same, of its columns' values.

    Args:
        begins: see `Key.begins`.
        field: the bytes, as `text_field` or `hex_field` writes them.
    """
    return f"{begins}{body_id}\t{hex_field(salt)}\t{field}\t{sha256}\t{length}\t\t{NULL}\n"


def hex_field(data: bytes) -> str:
    """Any bytes as a field of a line."""
    return f"\\\\x{data.hex()}"


def _bytes_field(data: bytes) -> str:
    """Bytes that are UTF-8 as the text they are, in half the characters that hexadecimal takes; others in hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return hex_field(data)
    return text_field(text)


def text_field(text: str) -> str:
    """The bytes of a text that UTF-8 can carry, as a field of a line."""
    # A backslash is doubled once for the type and once for the format.
    for character, escape in _BYTE_ESCAPES:
        text = text.replace(character, escape)
    return text


_BYTE_ESCAPES = (
    ("\\", "\\\\\\\\"), ("\0", "\\\\000"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r"),
)  # fmt: skip
"""The backslash first: what stands for the others begins with one."""


def event_line(key: Key, event: EventRecord) -> str:
    """An event's line."""
    body = event.body
    about = NO_BODY if body is None else body_named(body.id, body.sha256, body.length)
    return event_line_of(
        key.begins, event.sequence, event.type, event.run or NULL, event.trust, _json_text(event.payload), about,
        event.tokens, event.prev_hash, event.hash, event.recorded_at.isoformat(), event.idempotency_key,
    )  # fmt: skip


NO_BODY = f"{NULL}\t\t0"
"""What the line of an event says that has no body."""


def body_named(body_id: str, sha256: str, length: int) -> str:
    """What the line of an event says of its body."""
    return f"{body_id}\t{sha256}\t{length}"


def event_line_of(
    begins: str, sequence: int, type: str, run: str, trust: str, payload: str, about: str, tokens: int,
    prev_hash: str, hash: str, at: str, idempotency_key: str = "",
) -> str:  # fmt: skip
    """The same, of its columns' values.

    Args:
        begins: see `Key.begins`.
        payload: JSON text.
        about: `NO_BODY`, or what `body_named` gives.
        at: when it was recorded, in ISO 8601.
    """
    return (
        f"{begins}{sequence}\t{type}\t{run}\t{trust}\t{escaped(payload)}\t{about}\t{tokens}\t{prev_hash}\t{hash}"
        f"\t{escaped(idempotency_key)}\t{at}\n"
    )


def item_line(key: Key, item: ItemRecord) -> str:
    """An item's line."""
    facts = item.facts
    return item_line_of(
        f"{key.begins}{item.sequence}\t", item.unit, f"{item.trust}\t{item.run or NULL}",
        (
            facts.ordinal, facts.kind, facts.tokens, facts.pointer_tokens, facts.digest, facts.bytes_len, facts.chars_len,
            facts.name, facts.call_id, facts.wire_call_id, facts.source, facts.is_error, facts.preview,
            facts.excerpt_limit,
        ),
    )  # fmt: skip


def item_line_of(begins: str, unit: int, told: str, facts: Facts) -> str:
    """The same, of its columns' values.

    Args:
        begins: see `Key.begins`; with the event's sequence.
        told: its trust and its run.
    """
    (
        ordinal, kind, tokens, pointer, digest, bytes_len, chars_len, name, call_id, wire_id, source, is_error, preview,
        limit,
    ) = facts  # fmt: skip
    named = f"{name}\t{call_id}\t{wire_id}\t{source}"
    if "\\" in named or not f"{name}{call_id}{source}{wire_id}".isprintable():
        named = f"{escaped(name)}\t{escaped(call_id)}\t{escaped(wire_id)}\t{escaped(source)}"
    return (
        f"{begins}{ordinal}\t{unit}\t{kind}\t{told}\t{named}\t{'t' if is_error else 'f'}\t{tokens}\t{pointer}"
        f"\t{bytes_len}\t{chars_len}\t{digest}\t{escaped(preview)}\t{limit}\n"
    )


def unit_line(key: Key, unit: UnitFacts) -> str:
    """A unit's line."""
    return (
        f"{key.tenant}\t{key.session}\t{unit.sequence}\t{unit.index}\t{unit.last_sequence}\t{unit.run or NULL}"
        f"\t{unit.kind}\t{unit.open_calls}\t{unit.tokens}\t{unit.pointer_tokens}\t{unit.result_tokens}"
        f"\t{unit.before_tokens}\t{unit.before_pointer_tokens}\t{unit.before_result_tokens}\t{unit.before_turns}"
        f"\t{unit.before_tokens - unit.before_pointer_tokens}\n"
    )


def request_line(row: Any) -> str:
    """A request's line; any value with the columns' names will do."""
    answered = row.answered_at.isoformat() if row.answered_at else NULL
    return (
        f"{row.tenant_id}\t{row.id}\t{row.session_id}\t{row.run_id}\t{row.number}\t{row.run_number}\t{row.step}"
        f"\t{row.content_sequence}\t{row.act_sequence}\t{row.epoch}\t{escaped(row.engine)}\t{escaped(row.provider)}"
        f"\t{escaped(row.model)}\t{_json_field(row.inputs)}\t{_json_field(row.manifest)}\t{_json_field(row.budget)}"
        f"\t{_json_field(row.cache)}\t{row.request_sha256}\t{row.prefix_sha256}\t{row.wire_prefix_sha256}"
        f"\t{row.total_tokens}\t{row.body_bytes}\t{row.body_chars}\t{row.status}\t{_json_field(row.usage)}\t{_json_field(row.verdict)}"
        f"\t{_json_field(row.error)}\t{'t' if row.reconstructed else 'f'}\t{row.build_ms}"
        f"\t{row.created_at.isoformat()}\t{answered}\n"
    )


def _json_field(value: Any) -> str:
    """An object, or its JSON text."""
    if not value:
        return "{}"
    return escaped(value if isinstance(value, str) else _json_text(value))


_json_text: Callable[[Any], str] = json.JSONEncoder(default=dict).encode
"""As the database's JSON fields write it; a payload may be any mapping."""
