"""Shapes of foreign content: handed on as the exact text that was received (design 4)."""

from __future__ import annotations

from api.shapes.base import FieldErrors, Schema, Shape
from api.shapes.scalars import expect
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, NodeKind
from ctxengine.service.specs import Content


class Message(Shape[Content]):
    """A text, or an array of content blocks."""

    def read(self, node: Node, at: str) -> Content:
        """The text decoded, or the exact text of the array."""
        if node.kind is NodeKind.STRING:
            return Content(format=ContentFormat.TEXT, raw=node.value())
        if node.kind is NodeKind.ARRAY:
            return Content(format=ContentFormat.BLOCKS, raw=node.raw)
        raise FieldErrors.one(
            at, f"a string or an array of content blocks is required, found {node.kind}."
        )

    def schema(self) -> Schema:
        """A string or an array of free objects with a type."""
        return {
            "oneOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string", "minLength": 1}},
                        "additionalProperties": True,
                    },
                },
            ]
        }


class ResultContent(Message):
    """What a tool gave back; null is an empty result, as several runtimes write it."""

    takes_null = True

    def read(self, node: Node, at: str) -> Content:
        """The text decoded, or the exact text of the array."""
        if node.kind is NodeKind.NULL:
            return Content(format=ContentFormat.TEXT, raw="")
        return super().read(node, at)

    def schema(self) -> Schema:
        """A string, null, or an array of free objects with a type."""
        return {**super().schema(), "nullable": True}


class RawObject(Shape[str]):
    """An object kept as the exact text received; nothing inside it is an unknown field."""

    def read(self, node: Node, at: str) -> str:
        """The exact text."""
        expect(node, at, NodeKind.OBJECT, "an object")
        return node.raw

    def schema(self) -> Schema:
        """A free object."""
        return {"type": "object", "additionalProperties": True}


class RawBody(Shape[str]):
    """What a provider answered with: the text of a string, the exact JSON of anything else."""

    def read(self, node: Node, at: str) -> str:
        """The text."""
        text = node.text()
        return node.raw if text is None else text

    def schema(self) -> Schema:
        """A string or a free object."""
        return {"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}]}
