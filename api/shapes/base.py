"""What a shape is, and how it says that a field cannot be used."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from api.problems import Problem
from ctxengine.engine.lexeme import Node

T_co = TypeVar("T_co", covariant=True)

Schema = dict[str, Any]
"""An OpenAPI 3.0 schema object."""

_SHOWN_CHARS = 120
_SHOWN_ERRORS = 50


class FieldFault(NamedTuple):
    """One thing wrong with one field."""

    code: str
    """A code of `problems.PROBLEMS`."""
    field: str
    """Path in the body, like `tools[0].name`; empty for the body itself."""
    fault: str
    """Limit, what was found, what to do."""


class FieldErrors(ValueError):
    """Everything wrong with a body, found in one reading."""

    def __init__(self, faults: Iterable[FieldFault]) -> None:
        self.faults = tuple(faults)
        super().__init__(f"{len(self.faults)} fields cannot be used.")

    @classmethod
    def one(cls, field: str, fault: str, code: str = "invalid_field") -> FieldErrors:
        """A single fault."""
        return cls([FieldFault(code, field, fault)])

    def problem(self) -> Problem:
        """The faults as one problem document; an unknown field outranks a wrong value."""
        codes = ("unknown_field", "duplicate_field", "missing_field", "invalid_field")
        code = next(code for code in codes if any(fault.code == code for fault in self.faults))
        leading = [fault for fault in self.faults if fault.code == code]
        names = ", ".join(shown(fault.field) or "(body)" for fault in leading[:_SHOWN_ERRORS])
        detail = f"{names}: {leading[0].fault}" if len(leading) == 1 else f"{code}: {names}"
        errors = [
            {"field": shown(fault.field), "fault": fault.fault, "code": fault.code}
            for fault in self.faults[:_SHOWN_ERRORS]
        ]
        return Problem(code, detail, errors=errors, error_count=len(self.faults))


class Shape(ABC, Generic[T_co]):
    """How one value is read from a node, and how OpenAPI describes it."""

    takes_null = False
    """Whether null means something here; elsewhere it is the same as not sent."""

    @abstractmethod
    def read(self, node: Node, at: str) -> T_co:
        """The value.

        Raises:
            FieldErrors: the node is not of this shape; `at` is its path.
        """

    @abstractmethod
    def schema(self) -> Schema:
        """The OpenAPI schema."""


def member_path(at: str, name: str) -> str:
    """Path of a member of an object."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,79}", name) is None:
        name = f'"{shown(name)}"'
    return f"{at}.{name}" if at else name


def element_path(at: str, index: int) -> str:
    """Path of an element of an array."""
    return f"{at}[{index}]"


def shown(text: str) -> str:
    """Foreign text for a message: short, and without what a terminal or a page might obey."""
    short = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return "".join(char if char.isprintable() else "\ufffd" for char in short)
