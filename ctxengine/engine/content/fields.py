"""Typed reading of the fields of one JSON object, with errors that name the place."""

from __future__ import annotations

from collections.abc import Iterator

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

_BOOLEANS = {NodeKind.TRUE: True, NodeKind.FALSE: False}


def parsed(body: str, what: str) -> Node:
    """Parse a body.

    Raises:
        ContentError: it is not JSON text, or it is nested too deeply.
    """
    try:
        return parse(body)
    except LexemeError as error:
        raise ContentError(f"{what}: the body is not JSON text: {error}") from error


def objects(node: Node, where: str) -> Iterator[tuple[str, str, Node]]:
    """Each element of an array as (place, `type`, node); a missing type reads as empty text.

    Raises:
        ContentError: an element is not an object, or its `type` is not a string.
    """
    for index, element in enumerate(node):
        place = f"{where}[{index}]"
        if element.kind is not NodeKind.OBJECT:
            raise ContentError(f"{place}: expected an object, found {element.kind}.")
        yield place, optional_text(element, "type", place) or "", element


def field(node: Node, key: str) -> Node | None:
    """The member of that name, or None when it is absent or null."""
    found = node.get(key)
    return None if found is None or found.kind is NodeKind.NULL else found


def optional_text(node: Node, key: str, where: str) -> str | None:
    """A string member; None when it is absent or null.

    Raises:
        ContentError: it is something else.
    """
    found = field(node, key)
    return None if found is None else string_of(found, f"{where}.{key}")


def required_text(node: Node, key: str, where: str) -> str:
    """A string member that must be there.

    Raises:
        ContentError: it is absent, null or not a string.
    """
    found = optional_text(node, key, where)
    if found is None:
        raise ContentError(f"{where}.{key}: a string is required, found nothing.")
    return found


def string_of(node: Node, where: str) -> str:
    """Text of a string node.

    Raises:
        ContentError: the node is not a string.
    """
    text = node.text()
    if text is None:
        raise ContentError(f"{where}: a string is required, found {node.kind}.")
    return text


def text_or_raw(node: Node | None) -> str:
    """Arguments as the model wrote them: a string's text, the exact JSON of anything else."""
    if node is None:
        return ""
    text = node.text()
    return node.raw if text is None else text


def flag(node: Node, key: str, where: str) -> bool:
    """A boolean member, false when absent or null.

    Raises:
        ContentError: it is something else.
    """
    found = field(node, key)
    if found is None:
        return False
    if found.kind not in _BOOLEANS:
        raise ContentError(f"{where}.{key}: true or false is required, found {found.kind}.")
    return _BOOLEANS[found.kind]


def whole_number(node: Node, key: str) -> int | None:
    """A positive whole-number member; None for anything else, since sizes are mere hints."""
    found = field(node, key)
    if (
        found is None
        or found.kind is not NodeKind.NUMBER
        or not found.raw.isdigit()
        or len(found.raw) > 9
    ):
        return None
    return int(found.raw) or None
