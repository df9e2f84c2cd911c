"""Shapes made of shapes: objects with named fields, lists, maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from api.shapes.base import (
    FieldErrors,
    FieldFault,
    Schema,
    Shape,
    element_path,
    member_path,
    shown,
)
from api.shapes.scalars import Text, expect
from ctxengine.engine.lexeme import Node, NodeKind

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)

_LIMITS = ("maxLength", "minLength", "minimum", "maximum", "enum", "minItems")


class Member(NamedTuple):
    """One field of an object."""

    name: str
    """As written in the body."""
    shape: Shape[Any]
    into: str = ""
    """The spec's field, where it has another name."""
    required: bool = False
    note: str = ""
    """One line for the documentation."""

    @property
    def target(self) -> str:
        """The spec's field."""
        return self.into or self.name


class Record(Shape[dict[str, Any]]):
    """An object whose fields are all known; null is mostly the same as not sent."""

    def __init__(self, *members: Member, spec: type[BaseModel] | None = None) -> None:
        self.members: Mapping[str, Member] = {member.name: member for member in members}
        self._spec = spec

    def read(self, node: Node, at: str) -> dict[str, Any]:
        """The values by the spec's field names; every fault of the object is reported at once."""
        expect(node, at, NodeKind.OBJECT, "an object")
        values: dict[str, Any] = {}
        faults: list[FieldFault] = []
        seen: set[str] = set()
        for name, value in node.items():
            path = member_path(at, name)
            member = self.members.get(name)
            if name in seen:
                faults.append(FieldFault("duplicate_field", path, "the field stands twice."))
            elif member is None:
                known = ", ".join(self.members)
                faults.append(
                    FieldFault("unknown_field", path, f"not a field here; known are {known}.")
                )
            elif value.kind is not NodeKind.NULL or member.shape.takes_null:
                try:
                    values[member.target] = member.shape.read(value, path)
                except FieldErrors as error:
                    faults.extend(error.faults)
            seen.add(name)
        faults.extend(self._missing(values, faults, at))
        if faults:
            raise FieldErrors(faults)
        return values

    def schema(self) -> Schema:
        """An object that takes no other fields; limits come from the spec."""
        limits = self._spec.model_json_schema() if self._spec else {}
        properties = {member.name: _documented(member, limits) for member in self.members.values()}
        required = [member.name for member in self.members.values() if member.required]
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
            **({"required": required} if required else {}),
        }

    def _missing(
        self, values: Mapping[str, Any], faults: list[FieldFault], at: str
    ) -> list[FieldFault]:
        faulty = {fault.field for fault in faults}
        absent = [
            member_path(at, member.name)
            for member in self.members.values()
            if member.required and member.target not in values
        ]
        return [
            FieldFault("missing_field", path, "the field is required.")
            for path in absent
            if not any(
                field == path or field.startswith((f"{path}.", f"{path}[")) for field in faulty
            )
        ]


class ListOf(Shape[tuple[T, ...]]):
    """An array of one shape."""

    def __init__(self, element: Shape[T], *, least: int = 0) -> None:
        """`least` is the smallest number of elements."""
        self._element = element
        self._least = least

    def read(self, node: Node, at: str) -> tuple[T, ...]:
        """The elements in order; the faults of all of them are reported at once."""
        expect(node, at, NodeKind.ARRAY, "an array")
        if len(node) < self._least:
            raise FieldErrors.one(at, f"at least {self._least} is needed, found {len(node)}.")
        values: list[T] = []
        faults: list[FieldFault] = []
        for index, element in enumerate(node):
            try:
                values.append(self._element.read(element, element_path(at, index)))
            except FieldErrors as error:
                faults.extend(error.faults)
        if faults:
            raise FieldErrors(faults)
        return tuple(values)

    def schema(self) -> Schema:
        """An array."""
        least = {"minItems": self._least} if self._least else {}
        return {"type": "array", "items": self._element.schema(), **least}


class MapOf(Shape[dict[str, T]]):
    """An object with free names and values of one shape."""

    def __init__(self, value: Shape[T]) -> None:
        self._value = value

    def read(self, node: Node, at: str) -> dict[str, T]:
        """Names and values; a name that stands twice or cannot be stored is refused."""
        expect(node, at, NodeKind.OBJECT, "an object")
        values: dict[str, T] = {}
        for name, value in node.items():
            path = member_path(at, name)
            if name in values:
                raise FieldErrors.one(path, "the field stands twice.", "duplicate_field")
            if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
                raise FieldErrors.one(path, "the name holds characters that cannot be stored.")
            values[name] = self._value.read(value, path)
        return values

    def schema(self) -> Schema:
        """An object with values of that shape."""
        return {"type": "object", "additionalProperties": self._value.schema()}


def texts() -> ListOf[str]:
    """A list of texts."""
    return ListOf(Text())


def build(spec: type[S], values: Mapping[str, Any]) -> S:
    """The spec made of values that shapes have read.

    Raises:
        FieldErrors: the spec refuses a value, for example one above its limit.
    """
    try:
        return spec.model_validate(dict(values))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        faults = [
            FieldFault(
                "missing_field" if fault["type"] == "missing" else "invalid_field",
                _path_of(fault["loc"]),
                shown(fault["msg"]) + ".",
            )
            for fault in found
        ]
        # A bad element also makes its list look too short; only the element is worth telling.
        inner = {fault.field.rpartition("[")[0] for fault in faults}
        raise FieldErrors(fault for fault in faults if fault.field not in inner) from None


def _path_of(place: tuple[int | str, ...]) -> str:
    path = ""
    for step in place:
        if isinstance(step, int):
            path = element_path(path, step)
        elif step not in {"raw", "format"} or not path:
            path = member_path(path, step.removesuffix("_raw"))
    return path


def _documented(member: Member, spec_schema: Schema) -> Schema:
    described = member.shape.schema()
    stated = spec_schema.get("properties", {}).get(member.target, {})
    limits = _limits_of(stated, spec_schema.get("$defs", {}))
    own = described if described.get("type") != "object" else {}
    merged = {**described, **{key: value for key, value in limits.items() if key not in own}}
    if member.note:
        merged["description"] = member.note
    default = stated.get("default")
    if default is not None and isinstance(default, (str, int, float)) and not member.required:
        merged["default"] = default
    return merged


def _limits_of(stated: Schema, definitions: Schema) -> Schema:
    for branch in stated.get("anyOf", ()):
        if branch.get("type") != "null":
            return _limits_of(branch, definitions)
    reference = stated.get("$ref", "")
    if reference:
        named = definitions.get(reference.rpartition("/")[2], {})
        return {"enum": named["enum"]} if "enum" in named else {}
    limits = {name: stated[name] for name in _LIMITS if name in stated}
    for name, flag in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if name in stated:
            limits[flag] = stated[name]
            limits[name] = True
    return limits
