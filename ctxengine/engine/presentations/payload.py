"""The canonical form of a card's payload: keys sorted, nothing else touched (capacity spec 10; design 4).

A payload was written by a model. Its numbers keep the digits they were written with; only the order of keys, blanks and escapes
are normalised, so that two cards that say the same have one digest. Every walk here goes over the text once and keeps its own
stack, so that nesting as deep as the door takes costs neither frames nor time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Any

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.lexeme import MAX_DEPTH, Node
from ctxengine.engine.trust.model_view import model_view

MAX_PAYLOAD_DEPTH = MAX_DEPTH - 1
"""Deepest nesting of a card (levels): its event's body holds the payload as one member more."""


class _Written(str):
    """A piece of JSON text as it stands: a number, or what stands between values."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """An object as written: its members in order, repeated names included."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_int=_Written,
    parse_float=_Written,
    parse_constant=_Written,
)
_CONSTANTS = {True: "true", False: "false", None: "null"}


def canonical_payload(node: Node) -> str:
    """Canonical JSON text of a value as received. Of repeated keys the last one counts."""
    pieces: list[str] = []
    left = [_decoded(node)]
    while left:
        value = left.pop()
        if isinstance(value, _Written):
            pieces.append(value)
        elif isinstance(value, str):
            pieces.append(json_string(value))
        elif isinstance(value, _Members):
            left += reversed(_object_pieces(value))
        elif isinstance(value, list):
            left += reversed(_array_pieces(value))
        else:
            pieces.append(_CONSTANTS[value])
    return "".join(pieces)


def strings_of(node: Node) -> Iterator[str]:
    """Every text and number of a value in its order, without the names of members."""
    left = [_decoded(node)]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield str(value)
        elif isinstance(value, _Members):
            left += [inner for _, inner in reversed(value)]
        elif isinstance(value, list):
            left += reversed(value)


def depth_of(node: Node) -> int:
    """How deep a value is nested (levels): 0 for a text or a number, 1 for a flat object."""
    depth, level = 0, [_decoded(node)]
    while level := [value for value in level if isinstance(value, list)]:
        depth += 1
        level = [
            inner[1] if isinstance(value, _Members) else inner for value in level for inner in value
        ]
    return depth


def json_string(text: str) -> str:
    """A text as a JSON string that UTF-8 can carry."""
    return encode_basestring(model_view(text))


def payload_sha256(canonical: str) -> str:
    """Digest (64 hex digits) by which a second identical card is known."""
    return sha256_hex(canonical.encode("utf-8", "surrogatepass"))


def _decoded(node: Node) -> Any:
    return _DECODER.decode(node.raw)


def _object_pieces(members: _Members) -> list[Any]:
    """An object in pieces: what stands between its values, and the values, which are taken apart in their turn."""
    by_name = {model_view(name): value for name, value in members}
    pieces: list[Any] = [_Written("{")]
    for place, name in enumerate(sorted(by_name)):
        comma = "," if place else ""
        pieces += [_Written(f"{comma}{encode_basestring(name)}:"), by_name[name]]
    return [*pieces, _Written("}")]


def _array_pieces(elements: list[Any]) -> list[Any]:
    pieces: list[Any] = [_Written("[")]
    for place, element in enumerate(elements):
        pieces += [_Written(","), element] if place else [element]
    return [*pieces, _Written("]")]
