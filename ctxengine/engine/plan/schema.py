"""A tool schema as the model sees it: stable bytes whatever order its keys arrived in (spec, The budget allocator).

Objects are sorted by key because their order carries no meaning; arrays keep theirs because it does. Generated titles and
empty defaults go; every keyword that validates stays. Numbers keep the text they were written with.
"""

from __future__ import annotations

import json

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
    return _schema(node, None)


def _schema(node: Node, property_name: str | None) -> str:
    if node.kind is not NodeKind.OBJECT:
        return _plain(node)
    members = {}
    for key, value in node.items():
        if _redundant(key, value, property_name):
            continue
        if key in _PROPERTY_MAPS and value.kind is NodeKind.OBJECT:
            members[key] = _map(value)
        elif key in _LITERALS:
            members[key] = _plain(value)
        elif value.kind is NodeKind.ARRAY:
            members[key] = "[" + ",".join(_schema(child, None) for child in value) + "]"
        else:
            members[key] = _schema(value, None)
    return _object(members)


def _map(node: Node) -> str:
    return _object({key: _schema(value, key) for key, value in node.items()})


def _redundant(key: str, value: Node, property_name: str | None) -> bool:
    if property_name is None:
        return False
    if key == "title":
        generated = property_name.replace("_", " ").title()
        return value.text() == generated
    return key == "default" and value.raw.replace(" ", "") in {"null", '""', "[]", "{}"}


def _plain(node: Node) -> str:
    if node.kind is NodeKind.OBJECT:
        return _object({key: _plain(value) for key, value in node.items()})
    if node.kind is NodeKind.ARRAY:
        return "[" + ",".join(_plain(child) for child in node) + "]"
    if node.kind is NodeKind.STRING:
        return _string(node.text() or "")
    if node.raw in {"NaN", "Infinity", "-Infinity"}:
        msg = f"A tool's input_schema holds {node.raw}, which JSON has no number for."
        raise SchemaError(msg)
    return node.raw


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f"{_string(key)}:{members[key]}" for key in sorted(members)) + "}"


def _string(text: str) -> str:
    return json.dumps(model_view(text), ensure_ascii=False)
