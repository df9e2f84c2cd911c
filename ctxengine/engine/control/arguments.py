"""Do a call's arguments fit its tool's schema? Asked where no provider has asked before: behind `tool.call`.

Schemas come from servers and may be hostile. Nothing is fetched for a reference, no expression of a schema is run, and the work
is bounded; a schema that cannot be judged within that is left to the runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from ctxengine.engine.lexeme import parse

MAX_CHECKS = 20_000
"""Keywords judged before a schema counts as too costly."""
MAX_FAULTS = 5

_LEFT_ALONE = frozenset(
    {"pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"}
)
"""Expressions could run for ever, and so could the search for what no other keyword has judged."""


class Fault(NamedTuple):
    """One keyword of the schema that the arguments break."""

    keyword: str
    expected: str
    """What the schema asks for, in its own words; empty where that says nothing short."""


class _TooCostly(Exception):
    """The bound was reached."""


def faults_of(schema: str, arguments: str) -> tuple[Fault, ...]:
    """What the arguments break, at most `MAX_FAULTS`; empty when they fit or the schema cannot be judged.

    Args:
        schema: JSON text of an object schema.
        arguments: text of a JSON object.
    """
    wanted, given = parse(schema).value(), parse(arguments).value()
    found: list[Fault] = []
    try:
        for error in _validator(wanted).iter_errors(given):
            found.append(_fault(error))
            if len(found) == MAX_FAULTS:
                break
    except Exception:
        # Too costly, or no schema in its details: a reference to nowhere, an unknown type, a step of zero.
        return ()
    return tuple(dict.fromkeys(found))


def _validator(schema: Any) -> Any:
    left = [MAX_CHECKS]

    def bounded(keyword: str, check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def judged(validator: Any, value: Any, instance: Any, whole: Any) -> Iterator[Any]:
            left[0] -= 1
            if left[0] < 0:
                raise _TooCostly
            if keyword == "additionalProperties" and "patternProperties" in whole:
                return
            yield from check(validator, value, instance, whole) or ()

        return judged

    keywords = {
        name: bounded(name, check)
        for name, check in Draft202012Validator.VALIDATORS.items()
        if name not in _LEFT_ALONE
    }
    alone = dict.fromkeys(_LEFT_ALONE, _nothing)
    kind = extend(Draft202012Validator, {**keywords, **alone})
    return kind(schema, registry=Registry())


def _nothing(*_: Any) -> Iterator[Any]:
    return iter(())


def _fault(error: ValidationError) -> Fault:
    keyword = str(error.validator)
    value = error.validator_value
    if keyword == "required" and isinstance(value, list) and isinstance(error.instance, dict):
        missing = [str(name) for name in value if name not in error.instance]
        return Fault(keyword, ", ".join(missing)[:200])
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return Fault(keyword, str(value)[:80])
    return Fault(keyword, "")
