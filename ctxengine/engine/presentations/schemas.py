"""Card schemas: which fields a card of a semantic type is known by (capacity spec 10).

A digest follows the schema and not a length, up to bounds that keep a card from costing more than the turn it stands for; what
a bound leaves out is counted in the digest. Schemas are data: a session registers more beside a tool's declaration, and a type
that nobody described gets the general digest of its payload.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ctxengine.engine.evidence.digest.data import skeleton
from ctxengine.engine.lexeme import Node, NodeKind
from ctxengine.engine.presentations.payload import canonical_payload, json_string
from ctxengine.engine.trust.model_view import model_view

WHOLE = "*"
"""Selector of everything: for cards that are small already."""
MAX_WHOLE_CHARS = 4_000
"""A payload that is known by everything, or by its shape, is told up to here (characters)."""
_ROOM_FOR_NAMES = 400
"""How much longer than its payload a digest may be (characters): selectors have names of their own."""

_STEP = re.compile(r"^(?P<names>[^\W\d]\w*(?:\|[^\W\d]\w*)*)(?P<part>\[\]|\[0\]|\[#\])?$")
_TITLES = ("title", "name", "label", "heading")


class CardSchema(BaseModel):
    """One semantic type of card.

    A selector is a path of names joined by dots. `a|b` takes whichever is there; `[]` goes on in every element, `[0]` takes the
    first one, `[#]` says how many there are; `*` alone takes the whole payload.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str = Field(min_length=1, max_length=100)
    """Semantic type such as `metric`."""
    version: int = Field(default=1, ge=1)
    identity: tuple[str, ...] = Field(default=(), max_length=40)
    """Selectors of the fields it is known by; none for the general digest."""
    title: tuple[str, ...] = _TITLES
    """Top-level fields that may hold its title, the first one present wins."""
    execute: bool = False
    """Whether the runtime carries the call out itself; otherwise the platform acknowledges it."""

    @field_validator("identity")
    @classmethod
    def _selectors(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for selector in given:
            if selector != WHOLE and not all(_STEP.match(step) for step in selector.split(".")):
                msg = (
                    f"{selector!r} is no selector of fields; write names joined by dots, each with [], [0] or [#] behind it "
                    "where it is a list."
                )
                raise ValueError(msg)
        return given


CARD_SCHEMAS: tuple[CardSchema, ...] = (
    CardSchema(type="metric", identity=(WHOLE,)),
    CardSchema(
        type="research.synthesis",
        identity=("title", "takeaways[]", "sources[].title|name", "sources[].url|link"),
    ),
    CardSchema(type="table", identity=("title|caption", "columns|headers", "rows[#]", "rows[0]")),
    CardSchema(
        type="chart",
        identity=(
            "title",
            "series[].name|label",
            "series[].points|data|values[#]",
            "accessible_summary|summary",
        ),
    ),
    CardSchema(type="entity", identity=("title|name", "type|kind", "fields|attributes")),
    CardSchema(type="checklist", identity=("title", "items[].label|title|text")),
    CardSchema(type="timeline", identity=("title", "events|items|entries[].label|title|text")),
)
"""The types known without registration."""

_KNOWN = {schema.type: schema for schema in CARD_SCHEMAS}


class Identity(NamedTuple):
    """What a card is known by."""

    title: str
    digest: str
    """JSON text of its identity fields by selector; for an undescribed type a digest of the payload's shape."""
    found: bool
    """Whether the payload holds any identity field, or its type declares none."""


def schema_of(semantic_type: str, registered: CardSchema | None = None) -> CardSchema:
    """The schema of a type: the tool's own where it states fields, else the known one, else the general one."""
    if registered is not None and registered.identity:
        return registered
    known = _KNOWN.get(semantic_type)
    if known is None:
        return registered or CardSchema(type=semantic_type)
    if registered is None:
        return known
    return known.model_copy(update={"execute": registered.execute})


def identity_of(schema: CardSchema, payload: Node) -> Identity:
    """Title and identity digest of a payload that is a JSON object."""
    title = next(
        (text for name in schema.title if (text := _text(payload.get(name)))),
        "",
    )
    if not schema.identity:
        return Identity(title, _first_lines(skeleton(payload)), True)
    if WHOLE in schema.identity:
        members = {model_view(name): value for name, value in payload.items()}
        told = {name: canonical_payload(value) for name, value in members.items()}
        return Identity(title, _told(told, MAX_WHOLE_CHARS), bool(members))
    fields: dict[str, str] = {}
    for selector in schema.identity:
        value = _selected(payload, selector.split("."))
        if value is not None:
            fields[_key(selector)] = value
    room = max(len(payload.raw), MAX_WHOLE_CHARS) + _ROOM_FOR_NAMES
    return Identity(title, _told(fields, room), bool(fields))


def _told(fields: Mapping[str, str], room: int) -> str:
    """Fields as one JSON object, the short ones first while there is room; a last member counts what is left out."""
    left, kept = room, set()
    written = {name: f"{json_string(name)}:{value}" for name, value in fields.items()}
    for name in sorted(written, key=lambda name: (len(written[name]), name)):
        left -= len(written[name]) + 1
        if left < 0:
            break
        kept.add(name)
    members = [written[name] for name in sorted(kept)]
    out = [text for name, text in written.items() if name not in kept]
    if out:
        which = "more field" if len(out) == 1 else "more fields"
        members.append(f'"[... {len(out):,} {which}, {sum(map(len, out)):,} characters ...]":null')
    return "{" + ",".join(members) + "}"


def _first_lines(text: str) -> str:
    """The whole lines at the start of a shape, with a count of those behind them."""
    if len(text) <= MAX_WHOLE_CHARS:
        return text
    kept = text[: text.rfind("\n", 0, MAX_WHOLE_CHARS) + 1]
    more = text.count("\n", len(kept)) + 1
    return f"{kept}[... {more:,} more {'line' if more == 1 else 'lines'} ...]"


def _selected(node: Node, steps: list[str]) -> str | None:
    """JSON text of what the steps lead to; None where nothing is there."""
    step, rest = _STEP.match(steps[0]), steps[1:]
    if step is None:
        return None
    found = next(
        (value for name in step["names"].split("|") if (value := node.get(name)) is not None), None
    )
    if found is None or found.kind is NodeKind.NULL:
        return None
    part = step["part"]
    if part is None:
        return _selected(found, rest) if rest else canonical_payload(found)
    if found.kind is not NodeKind.ARRAY:
        return None
    elements = list(found)
    if part == "[#]":
        return str(len(elements))
    if part == "[0]":
        return _inner(elements[0], rest) if elements else None
    inner = [text for element in elements if (text := _inner(element, rest)) is not None]
    return "[" + ",".join(inner) + "]" if inner else None


def _inner(element: Node, rest: list[str]) -> str | None:
    """An element, or what the rest leads to in it; plain texts stand for themselves."""
    if not rest or element.kind is NodeKind.STRING:
        return canonical_payload(element)
    return _selected(element, rest)


def _key(selector: str) -> str:
    """How a selector is named in the digest: its first names, with `count` and `first` written out."""
    names = []
    for step in selector.split("."):
        found = _STEP.match(step)
        if found is not None:
            names.append(found["names"].split("|")[0])
            names += {"[#]": ["count"], "[0]": ["first"]}.get(found["part"] or "", [])
    return ".".join(names)


def _text(node: Node | None) -> str:
    if node is None:
        return ""
    return " ".join((node.text() or "").split())
