"""OpenAPI 3.0 schemas of our own types, so that documents never drift from what is answered."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from api.schema import Component
from api.shapes.base import Schema

UUID_TEXT: Schema = {"type": "string", "format": "uuid"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TIME: Schema = {"type": "string", "format": "date-time"}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "format": "int64"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
FREE: Schema = {"type": "object", "additionalProperties": True}

_DROPPED = frozenset({"title", "default", "$defs"})


def component_of(name: str, described: Any) -> Component:
    """The schema of a pydantic model or a dataclass under a name."""
    whole = TypeAdapter(described).json_schema(mode="serialization")
    return Component(name, _converted(whole, whole.get("$defs", {})))


def record(fields: dict[str, Schema], *, optional: tuple[str, ...] = (), note: str = "") -> Schema:
    """An object; every field is required unless it is named optional."""
    schema: Schema = {"type": "object", "properties": fields}
    required = [name for name in fields if name not in optional]
    if required:
        schema["required"] = required
    if note:
        schema["description"] = note
    return schema


def listed(item: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": item}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "nullable": True}


def page_of(name: str, item: Component) -> Component:
    """A page of a list."""
    schema = record({"items": listed(item.ref), "next_cursor": nullable(TEXT)})
    return Component(name, schema, (item,))


def _converted(schema: Any, definitions: Schema) -> Any:
    """A JSON Schema of pydantic in the dialect of OpenAPI 3.0, references resolved."""
    if isinstance(schema, list):
        return [_converted(member, definitions) for member in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _converted(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
        if len(branches) == 1:
            return nullable(_converted(branches[0], definitions))
    converted = {
        key: _converted(value, definitions) if key != "properties" else value
        for key, value in schema.items()
        if key not in _DROPPED
    }
    if "properties" in converted:
        converted["properties"] = {
            name: _converted(member, definitions)
            for name, member in converted["properties"].items()
        }
    return converted
