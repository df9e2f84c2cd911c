"""A tool schema as the model sees it: stable bytes whatever order its keys arrived in (spec, The budget allocator).

Objects are sorted by key because their order carries no meaning; arrays keep theirs because it does. Generated titles and
empty defaults go; every keyword that validates stays. Numbers keep the text they were written with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.model_view import model_view

_PROPERTY_MAPS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_LITERALS = frozenset({"enum", "const", "examples", "required", "default"})


class SchemaError(ValueError):
    """A tool's schema is not a JSON object."""


def provider_schema(text: str, *, of_input: bool = True) -> str:
    """Rewrite a JSON Schema text into its stable, model-visible form.

    Args:
        text: the schema as received.
        of_input: whether it describes a tool's arguments, which every provider wants to be an object.

    Raises:
        SchemaError: the text is not a JSON object, or holds numbers JSON does not have.
    """
    try:
        node = parse(text)
    except LexemeError as error:
        msg = f"A tool's input_schema must be a JSON object: {error}"
        raise SchemaError(msg) from error
    if node.kind is not NodeKind.OBJECT:
        msg = f"A tool's input_schema must be a JSON object, not a JSON {node.kind.value}."
        raise SchemaError(msg)
    type = node.get("type")
    if of_input and type is not None and type.text() != "object":
        msg = f'A tool\'s input_schema must have "type": "object", not {model_view(type.raw)[:80]}.'
        raise SchemaError(msg)
    return _written(node)


class _How(Enum):
    """What a value is in its schema."""

    SCHEMA = "schema"
    SCHEMAS = "schemas"
    """A list of them."""
    MAP = "map"
    """Schemas by the names of properties."""
    LITERAL = "literal"
    """Data that the schema quotes: nothing of it may go."""


class _Place(NamedTuple):
    """A value that has still to be written."""

    node: Node
    how: _How
    name: str | None = None
    """The property that the schema describes; None for any other schema."""


def _written(root: Node) -> str:
    """The schema's text. The walk keeps its own stack: no nesting that the door takes costs frames."""
    pieces: list[str] = []
    left: list[str | _Place] = [_Place(root, _How.SCHEMA)]
    while left:
        entry = left.pop()
        if isinstance(entry, str):
            pieces.append(entry)
        elif entry.node.kind is NodeKind.OBJECT:
            left += reversed(_object_parts(_members(entry)))
        elif entry.node.kind is NodeKind.ARRAY:
            inner = _How.SCHEMA if entry.how is _How.SCHEMAS else _How.LITERAL
            left += reversed(_array_parts([_Place(child, inner) for child in entry.node]))
        else:
            pieces.append(_scalar(entry.node))
    return "".join(pieces)


def _members(place: _Place) -> dict[str, _Place]:
    """What an object's members are, without those that say nothing."""
    members = {}
    for key, value in place.node.items():
        if place.how is _How.LITERAL:
            members[key] = _Place(value, _How.LITERAL)
        elif place.how is _How.MAP:
            members[key] = _Place(value, _How.SCHEMA, key)
        elif not _redundant(key, value, place.name):
            members[key] = _Place(value, _how(key, value))
    return members


def _how(key: str, value: Node) -> _How:
    """What a member of a schema holds."""
    if key in _PROPERTY_MAPS and value.kind is NodeKind.OBJECT:
        return _How.MAP
    if key in _LITERALS:
        return _How.LITERAL
    return _How.SCHEMAS if value.kind is NodeKind.ARRAY else _How.SCHEMA


def _object_parts(members: Mapping[str, _Place]) -> list[str | _Place]:
    parts: list[str | _Place] = ["{"]
    for place, key in enumerate(sorted(members)):
        parts += [f"{',' if place else ''}{_string(key)}:", members[key]]
    return [*parts, "}"]


def _array_parts(elements: Sequence[_Place]) -> list[str | _Place]:
    parts: list[str | _Place] = ["["]
    for place, element in enumerate(elements):
        parts += [",", element] if place else [element]
    return [*parts, "]"]


def _redundant(key: str, value: Node, property_name: str | None) -> bool:
    if property_name is None:
        return False
    if key == "title":
        generated = property_name.replace("_", " ").title()
        return value.text() == generated
    return key == "default" and value.raw.replace(" ", "") in {"null", '""', "[]", "{}"}


def _scalar(node: Node) -> str:
    if node.kind is NodeKind.STRING:
        return _string(node.text() or "")
    if node.raw in {"NaN", "Infinity", "-Infinity"}:
        msg = f"A tool's input_schema holds {node.raw}, which JSON has no number for."
        raise SchemaError(msg)
    return node.raw


def _string(text: str) -> str:
    return json.dumps(model_view(text), ensure_ascii=False)
