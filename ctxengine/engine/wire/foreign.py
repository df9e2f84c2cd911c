"""Blocks that only one provider understands: which of them a message may hand on, without whose marks, and in which words."""

from __future__ import annotations

from collections.abc import Iterator

from ctxengine.engine.content.slices import element_spans, member_spans
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.wire.base import WireApi

_MARK = "cache_control"
_ASKED = "input"
"""Member that holds what a call asks for: a mark is none in there."""

FOR_USERS = {
    WireApi.ANTHROPIC: frozenset({"document", "image", "search_result", "container_upload"})
}
"""Types of block that each API takes from a user; any other, a compaction block above all, is not the user's to send."""


def without_marks(raw: str) -> str:
    """A block without the cache markers of whoever made it: where markers stand is this engine's to say."""
    if _MARK not in raw and "\\u" not in raw:
        return raw
    try:
        marked = _is_marked(parse(raw))
    except LexemeError:
        return raw
    return _unmarked(raw) if marked else raw


def words_inside(kind: str, raw: str) -> str:
    """The text that a block holds for its reader, as plain text; empty where it holds none, or none that is known."""
    try:
        block = parse(raw)
    except LexemeError:
        return ""
    return "\n".join(found for found in _words(kind, block) if found.strip())


def _words(kind: str, block: Node) -> Iterator[str]:
    match kind:
        case "document":
            source = block.get("source")
            yield text_in(block, "title")
            if source is not None:
                yield text_in(source, "data") if text_in(source, "type") == "text" else ""
                yield from _texts(source.get("content"))
        case "search_result":
            yield text_in(block, "title")
            yield text_in(block, "source")
            yield from _texts(block.get("content"))
        case "resource":
            inner = block.get("resource")
            if inner is not None:
                yield text_in(inner, "uri")
                yield text_in(inner, "text")
        case _:
            return


def _texts(content: Node | None) -> Iterator[str]:
    if content is None:
        return
    yield content.text() or ""
    for block in content:
        yield text_in(block, "text")


def text_in(node: Node, name: str) -> str:
    """The string under a name; empty where there is none."""
    found = node.get(name)
    return (found.text() or "") if found is not None else ""


def _is_marked(node: Node) -> bool:
    if node.kind is NodeKind.ARRAY:
        return any(map(_is_marked, node))
    return any(
        name == _MARK or (name != _ASKED and _is_marked(inner)) for name, inner in node.items()
    )


def _unmarked(text: str) -> str:
    """JSON text of a value; what stays keeps its bytes, but for the blanks around what goes."""
    if text.startswith("["):
        return (
            f"[{','.join(_unmarked(text[span.start : span.end]) for span in element_spans(text))}]"
        )
    if not text.startswith("{"):
        return text
    members = [
        text[m.whole.start : m.value.start]
        + (
            text[m.value.start : m.value.end]
            if m.key == _ASKED
            else _unmarked(text[m.value.start : m.value.end])
        )
        for m in member_spans(text)
        if m.key != _MARK
    ]
    return f"{{{','.join(members)}}}"
