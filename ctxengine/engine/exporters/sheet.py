"""The JSON text of an export: received slices stay as they are, secrets are masked on the way out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from ctxengine.engine.exporters.left_out import Losses
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.lexeme import LexemeError, is_json_object, parse

Mask = Callable[[str], str]
"""Gives a text back without its secrets."""

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_NOT_JSON = re.compile(r"NaN|Infinity")
_CONTROL = re.compile("[\x00-\x1f]")


class Sheet:
    """Takes JSON texts and makes them fit to be written."""

    def __init__(self, mask: Mask | None, losses: Losses) -> None:
        """Mask with `mask`, or not at all."""
        self._mask = mask
        self.losses = losses

    def json(self, text: str, sequence: EventSeq | None = None) -> str:
        """A JSON text whose secrets are masked and that UTF-8 can carry; equal in value otherwise."""
        if self._mask is not None:
            masked = masked_json(text, self._mask)
            if masked != text:
                self.losses.note("secret", sequence)
                text = masked
        return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def masked_json(text: str, mask: Mask) -> str:
    """A JSON text with the values of its strings masked; JSON still."""

    def literal(found: re.Match[str]) -> str:
        try:
            value = json.loads(found[0], strict=False)
        except ValueError:
            # An escape that only our reader takes: the literal is searched as it is written.
            return mask(found[0])
        masked = mask(value)
        return found[0] if masked == value else quoted(masked)

    if mask(text) == text and "\\" not in text:
        return text
    text = _STRING.sub(literal, text)
    # Some secrets are known by the name of their member alone, which stands in another literal.
    whole = mask(text)
    return whole if whole == text or _same_frame(text, whole) else text


def quoted(text: str) -> str:
    """A text as a JSON string; half characters stand in it as escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def arguments_value(arguments: str) -> str:
    """Call arguments as a JSON value: the object as it was written, a string of anything that is none."""
    if not arguments.strip():
        return "{}"
    return arguments if is_json_object(arguments) else quoted(arguments)


def is_plain_json(raw: str) -> bool:
    """Whether a received text that our reader took is JSON to every reader: no `NaN`, no bare control characters."""
    if _NOT_JSON.search(raw) is None and _CONTROL.search(raw) is None:
        return True
    try:
        json.loads(raw, parse_constant=_refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> None:
    raise ValueError(name)


def _same_frame(before: str, after: str) -> bool:
    """Whether masking changed texts only: as many literals as before, and JSON still."""
    if len(_STRING.findall(before)) != len(_STRING.findall(after)):
        return False
    try:
        parse(after)
    except LexemeError:
        return False
    return True
