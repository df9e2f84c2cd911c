"""Reading one content of Gemini's generateContent, in the spelling of the REST API or of the Python SDK.

A thought signature is a member of the part it belongs to. It comes out as an object of that one member and stands in front
of that part; a part that is a thought, or holds nothing but a signature, is opaque as a whole.
"""

from __future__ import annotations

from ctxengine.engine.content.assembly import Assembly, Reading
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.fields import (
    field,
    flag,
    objects,
    optional_text,
    parsed,
    required_text,
)
from ctxengine.engine.content.media import standard_base64
from ctxengine.engine.content.slices import Span, element_spans, member_spans, without
from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, ItemKind, Part, TextPart
from ctxengine.engine.lexeme import Node, NodeKind, parse

SIGNATURE_MEMBERS = frozenset({"thoughtSignature", "thought_signature"})
_API = "google"
_WHAT = "Gemini content"
_EMPTY_SIZE = 2
"""Characters of a text that says nothing, quotes included."""


def read_google(body: str, kind: ItemKind) -> Reading:
    """Decode one content object into items of the given message kind.

    Raises:
        ContentError: the body is not one.
    """
    assembly = Assembly(kind)
    for where, part in _parts(body):
        _take(assembly, part, where)
    return assembly.reading()


def strip_google(body: str) -> str:
    """The body without thoughts and signatures; everything else keeps its bytes."""
    parts = [part for _, part in _parts(body)]
    drop = [index for index, part in enumerate(parts) if _is_opaque(part)]
    pieces = [_unsigned(part.raw) for part in parts]
    if not drop and all(piece == part.raw for piece, part in zip(pieces, parts, strict=True)):
        return body
    start, end = next(m.value for m in reversed(member_spans(body)) if m.key == "parts")
    array = body[start:end]
    spans = element_spans(array)
    shorter, at = [], 0
    moved: list[Span] = []
    for span, piece in zip(spans, pieces, strict=True):
        shorter.append(array[at : span.start])
        begin = sum(map(len, shorter))
        shorter.append(piece)
        moved.append(Span(begin, begin + len(piece)))
        at = span.end
    unsigned = "".join([*shorter, array[at:]])
    return body[:start] + without(unsigned, tuple(moved), drop) + body[end:]


def _parts(body: str) -> list[tuple[str, Node]]:
    root = parsed(body, _WHAT)
    if root.kind is not NodeKind.OBJECT:
        raise ContentError(f"{_WHAT}: an object is required, found {root.kind}.")
    parts = field(root, "parts")
    if parts is None:
        return []
    if parts.kind is not NodeKind.ARRAY:
        raise ContentError(f"content.parts: an array is required, found {parts.kind}.")
    return [(where, part) for where, _, part in objects(parts, "content.parts")]


def _either(node: Node, one: str, other: str) -> Node | None:
    found = field(node, one)
    return found if found is not None else field(node, other)


def _signature(part: Node) -> str | None:
    """The signature as a member of its part, as it was written."""
    for member in member_spans(part.raw):
        value = part.raw[member.value.start : member.value.end]
        if member.key in SIGNATURE_MEMBERS and value != "null":
            return part.raw[member.whole.start : member.whole.end]
    return None


def _unsigned(raw: str) -> str:
    members = member_spans(raw)
    drop = [index for index, member in enumerate(members) if member.key in SIGNATURE_MEMBERS]
    return without(raw, tuple(member.whole for member in members), drop)


def _is_opaque(part: Node) -> bool:
    if field(part, "thought") is not None and flag(part, "thought", "part"):
        return True
    if _signature(part) is None:
        return False
    rest = {
        key
        for key, node in part.items()
        if key not in SIGNATURE_MEMBERS and node.kind is not NodeKind.NULL
    }
    text = field(part, "text")
    return not rest or (rest == {"text"} and text is not None and len(text.raw) <= _EMPTY_SIZE)


def _take(assembly: Assembly, part: Node, where: str) -> None:
    if _is_opaque(part):
        assembly.opaque("thought", part.raw, _API)
        return
    if (signature := _signature(part)) is not None:
        assembly.opaque("thought_signature", "{" + signature + "}", _API)
    call = _either(part, "functionCall", "function_call")
    result = _either(part, "functionResponse", "function_response")
    if call is not None:
        arguments = field(call, "args")
        assembly.call(
            optional_text(call, "id", where),
            required_text(call, "name", where),
            "" if arguments is None else arguments.raw,
        )
    elif result is not None:
        response = field(result, "response")
        assembly.result(
            optional_text(result, "id", where),
            () if response is None else (TextPart(response.raw),),
            name=optional_text(result, "name", where),
        )
    else:
        assembly.part(_part(part, where))


def _part(part: Node, where: str) -> Part:
    if field(part, "text") is not None:
        return TextPart(required_text(part, "text", where))
    blob = _either(part, "inlineData", "inline_data")
    if blob is not None and field(blob, "data") is not None:
        kind = _either(blob, "mimeType", "mime_type")
        media_type = None if kind is None else kind.text()
        data = standard_base64(required_text(blob, "data", where)) or None
        if media_type is not None and media_type.startswith("image/"):
            return ImagePart(media_type, data, None)
        return FilePart(media_type, data, None)
    raw = _unsigned(part.raw)
    kinds = [key for key, node in parse(raw).items() if node.kind is not NodeKind.NULL]
    return ForeignPart(kind=kinds[0] if kinds else "part", raw=raw, api=_API)
