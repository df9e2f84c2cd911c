"""JSON for reading: every lexeme as it stood, indented and coloured with Pygments' short classes.

Numbers, escapes, key order and repeated keys are those of the text; only white space is ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from inspector.visible import one_line, visible

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_LISTS = frozenset({"messages", "input", "tools", "system", "contents"})
"""Top-level arrays of the provider APIs whose elements are shown one by one."""
_PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A member of the body, or one element of one of its long arrays."""

    path: str
    """`model`, or `messages.12`."""
    raw: str
    caption: str
    """Role, type or name, where it has one; and the start of its text."""

    @property
    def length(self) -> int:
        """Bytes of the part in UTF-8."""
        return len(self.raw.encode("utf-8", "surrogatepass"))


def parts_of(body: str) -> tuple[JsonPart, ...]:
    """Cut a request body into parts, in order.

    Raises:
        LexemeError: the body is not JSON.
    """
    parts: list[JsonPart] = []
    for key, node in parse(body).items():
        if key in _LISTS and node.kind is NodeKind.ARRAY and len(node):
            parts += [
                JsonPart(f"{key}.{place}", element.raw, _caption(element))
                for place, element in enumerate(node)
            ]
        else:
            parts.append(JsonPart(key, node.raw, _caption(node)))
    return tuple(parts)


def pretty(raw: str) -> SafeString:
    """Coloured and indented HTML of a JSON text; a text that is no JSON is shown as it is."""
    try:
        parse(raw)
    except LexemeError:
        return visible(raw)
    return mark_safe("".join(_spans(raw)))  # noqa: S308  every piece is escaped in _span


def pretty_text(raw: str) -> str:
    """The same indentation without colours, for comparing line by line."""
    try:
        parse(raw)
    except LexemeError:
        return raw
    return "".join(text for text, _ in _pieces(raw))


def _spans(raw: str) -> list[str]:
    return [
        f'<span class="{css}">{visible(text)}</span>' if css else escape(text)
        for text, css in _pieces(raw)
    ]


def _pieces(raw: str) -> list[tuple[str, str]]:
    """Tokens with their class, and our white space between them without one."""
    lexemes = _TOKEN.findall(raw)
    pieces: list[tuple[str, str]] = []
    depth = 0
    for place, lexeme in enumerate(lexemes):
        following = lexemes[place + 1] if place + 1 < len(lexemes) else ""
        if lexeme in "{[":
            depth += 1
            pieces.append((lexeme, "p"))
            if following not in ("}", "]"):
                pieces.append((_line_at(depth), ""))
        elif lexeme in "}]":
            depth -= 1
            if place and lexemes[place - 1] not in ("{", "["):
                pieces.append((_line_at(depth), ""))
            pieces.append((lexeme, "p"))
        elif lexeme == ",":
            pieces += [(lexeme, "p"), (_line_at(depth), "")]
        elif lexeme == ":":
            pieces.append((": ", "p"))
        else:
            pieces.append((lexeme, _class_of(lexeme, following)))
    return pieces


def _line_at(depth: int) -> str:
    return "\n" + "  " * depth


def _class_of(lexeme: str, following: str) -> str:
    if lexeme.startswith('"'):
        return "nt" if following == ":" else "s2"
    return "kc" if lexeme in ("true", "false", "null") else "mi"


def _caption(node: Node) -> str:
    if node.kind is not NodeKind.OBJECT:
        return "" if node.kind in (NodeKind.ARRAY,) else one_line(node.raw[:_PREVIEW_CHARS])
    words: list[str] = []
    for key in ("role", "type", "name"):
        member = node.get(key)
        text = member.text() if member else None
        if text:
            words.append(text)
    function = node.get("function")
    name = function.get("name") if function else None
    if name and name.text():
        words.append(str(name.text()))
    return one_line(" · ".join(words)[:_PREVIEW_CHARS])
