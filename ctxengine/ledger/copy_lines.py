"""A log's rows as the lines of PostgreSQL's text COPY format, made without a model instance each (design 12).

Most texts of a row are ids, digests and words of ours; only names, previews, sources and payloads can hold a character that
the format uses itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db.models import Model

from ctxengine.engine.log.records import BodyCommitment, EventRecord, ItemRecord, UnitFacts
from ctxengine.ledger.models import Body, Event, ItemRow, RequestRow, UnitRow

NULL = r"\N"


class Columns(NamedTuple):
    """A table and its columns in the order in which its lines name them."""

    model: type[Model]
    names: tuple[str, ...]


class Key(NamedTuple):
    """Whose rows they are."""

    tenant: str
    session: str


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
    return (
        f"{key.tenant}\t{key.session}\t{commitment.id}\t\\\\x{salt.hex()}\t{_bytes_field(data)}\t{commitment.sha256}"
        f"\t{commitment.length}\t\t{NULL}\n"
    )


def _bytes_field(data: bytes) -> str:
    """Bytes that are UTF-8 as the text they are, in half the characters that hexadecimal takes; others in hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"\\\\x{data.hex()}"
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
    about = f"{NULL}\t\t0" if body is None else f"{body.id}\t{body.sha256}\t{body.length}"
    return (
        f"{key.tenant}\t{key.session}\t{event.sequence}\t{event.type}\t{event.run or NULL}\t{event.trust}"
        f"\t{escaped(_json_text(event.payload))}\t{about}\t{event.tokens}\t{event.prev_hash}\t{event.hash}"
        f"\t{escaped(event.idempotency_key)}\t{event.recorded_at.isoformat()}\n"
    )


def item_line(key: Key, item: ItemRecord) -> str:
    """An item's line."""
    facts = item.facts
    return (
        f"{key.tenant}\t{key.session}\t{item.sequence}\t{facts.ordinal}\t{item.unit}\t{facts.kind}\t{item.trust}"
        f"\t{item.run or NULL}\t{escaped(facts.name)}\t{escaped(facts.call_id)}\t{escaped(facts.wire_call_id)}"
        f"\t{escaped(facts.source)}\t{'t' if facts.is_error else 'f'}\t{facts.tokens}\t{facts.pointer_tokens}"
        f"\t{facts.bytes_len}\t{facts.chars_len}\t{facts.digest}\t{escaped(facts.preview)}\t{facts.excerpt_limit}\n"
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
