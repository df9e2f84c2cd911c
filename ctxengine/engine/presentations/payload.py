"""The canonical form of a card's payload: keys sorted, nothing else touched (capacity spec 10; design 4).

A payload was written by a model. Its numbers keep the digits they were written with; only the order of keys, blanks and escapes
are normalised, so that two cards that say the same have one digest.
"""

from __future__ import annotations

from json.encoder import encode_basestring

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.lexeme import Node, NodeKind
from ctxengine.engine.trust.model_view import model_view


def canonical_payload(node: Node) -> str:
    """Canonical JSON text of a value as received. Of repeated keys the last one counts."""
    if node.kind is NodeKind.OBJECT:
        members = {model_view(name): value for name, value in node.items()}
        inside = ",".join(
            f"{encode_basestring(name)}:{canonical_payload(members[name])}"
            for name in sorted(members)
        )
        return "{" + inside + "}"
    if node.kind is NodeKind.ARRAY:
        return "[" + ",".join(canonical_payload(child) for child in node) + "]"
    text = node.text()
    return node.raw if text is None else json_string(text)


def json_string(text: str) -> str:
    """A text as a JSON string that UTF-8 can carry."""
    return encode_basestring(model_view(text))


def payload_sha256(canonical: str) -> str:
    """Digest (64 hex digits) by which a second identical card is known."""
    return sha256_hex(canonical.encode("utf-8", "surrogatepass"))
