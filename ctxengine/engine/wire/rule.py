"""What a validity rule is, and the rules that hold for every API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.names import lone_surrogate_escape


class Found(NamedTuple):
    """One breach: its JSON path and what is wrong there."""

    path: str
    message: str


_Check = Callable[[Any], Iterable[Found]]


class Violation(NamedTuple):
    """A breach with the rule it breaks."""

    rule: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing an API refuses, or that this product never sends it."""

    id: str
    api: WireApi
    text: str
    """The rule in one line, for pages and messages."""
    source: str
    """Where the rule comes from: `providers 2.1` with the tag there, or `design` for our own."""
    check: _Check
    """Breaches in a request; takes the API's reading of the body, or the bytes when `stage` says
    so.
    """
    example: Callable[[], bytes]
    stage: Literal["bytes", "request"] = "request"

    @property
    def failing_example(self) -> bytes:
        """A body that breaks this rule and no other."""
        return self.example()


def body_of(request: object) -> bytes:
    """Compact bytes of an example."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()


def loads(body: bytes) -> Any:
    """Parse a body, integers of any length included.

    Raises:
        ValueError: not UTF-8 or not JSON.
        RecursionError: nested too deeply.
    """
    text = body.decode("utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # The interpreter's limit on digits; rules never look at the size of a number.
        return json.loads(text, parse_int=str)


def byte_rules(api: WireApi, prefix: str, good: Callable[[], bytes]) -> tuple[Rule, ...]:
    """The rules about bytes, for one API; `good` is a valid body that the examples spoil."""
    return (
        Rule(
            id=f"{prefix}.body.json",
            api=api,
            text="The body is one JSON object in strict UTF-8.",
            source="RFC 8259",
            check=_json_object,
            example=lambda: good().replace(b"Hello", b"Hell\xff"),
            stage="bytes",
        ),
        Rule(
            id=f"{prefix}.body.surrogates",
            api=api,
            text="No string holds half of a surrogate pair.",
            source="field 21",
            check=_whole_characters,
            example=lambda: good().replace(b"Hello", b"Hell\\ud83d"),
            stage="bytes",
        ),
    )


def rule_maker(api: WireApi, prefix: str, body: Callable[..., bytes]) -> Callable[..., Rule]:
    """What makes one API's rules from `(name, text, source, check, *messages, **members)`.

    Args:
        body: the bytes of a failing example, from its messages and what else its request says.
    """

    def made(
        name: str, text: str, source: str, check: _Check, *messages: Any, **members: Any
    ) -> Rule:
        return Rule(
            f"{prefix}.{name}", api, text, source, check, lambda: body(*messages, **members)
        )

    return made


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list; nothing for anything that is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def repeated(pairs: Iterable[tuple[str, str]], what: str) -> Iterator[Found]:
    """Breaches for every (value, path) whose value came before."""
    seen: set[str] = set()
    for value, path in pairs:
        if value in seen:
            yield Found(path, f"{what} {value!r} occurs twice.")
        seen.add(value)


def unlike(
    pairs: Iterable[tuple[object, str]], pattern: re.Pattern[str], what: str
) -> Iterator[Found]:
    """Breaches for every (value, path) whose value is no text of the pattern."""
    for value, path in pairs:
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            yield Found(path, f"{what} {str(value)[:80]!r} does not match {pattern.pattern}.")


def _json_object(body: bytes) -> Iterator[Found]:
    try:
        value = loads(body)
    except RecursionError:
        yield Found("$", "The body is nested too deeply to be read.")
    except ValueError as error:
        yield Found("$", f"The body is not JSON in UTF-8: {error}.")
    else:
        if not isinstance(value, dict):
            yield Found("$", f"The body is a {type(value).__name__}, not an object.")


def _whole_characters(body: bytes) -> Iterator[Found]:
    place = lone_surrogate_escape(body.decode("utf-8", "replace"))
    if place is not None:
        yield Found("$", f"Half of a surrogate pair is escaped at character {place}.")
