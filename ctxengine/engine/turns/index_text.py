"""What a turn is found by: the words of its card and of its calls' arguments (capacity spec 10, index text)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.turns.turn import Turn

MAX_TERMS = 4_000
"""Different terms kept of one turn."""
_MAX_ARGUMENT_CHARS = 4_000
_MAX_TEXT_CHARS = 40_000
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


def terms_of(text: str) -> list[str]:
    """Words in lower case; identifiers in their parts as well; scripts without blanks in pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text[:_MAX_TEXT_CHARS]):
        if _NO_BLANKS.search(word):
            pairs = [word[place : place + 2] for place in range(max(1, len(word) - 1))]
            found.extend(pairs)
            continue
        parts = _CAMEL.split(word)
        if len(parts) > 1:
            found.extend(part.casefold() for part in parts)
        found.append(word.casefold())
    return found


def index_terms(turn: Turn, *, asked: str, narration: str) -> Counter[str]:
    """Terms of a turn with how often each occurs: asked, answered, tool names, and the texts in call arguments.

    Args:
        asked: the whole directive.
        narration: the whole answer, without what it repeats of untrusted evidence.
    """
    counted: Counter[str] = Counter(terms_of(asked))
    counted.update(terms_of(narration))
    for call, _ in turn.exchanges:
        counted.update(terms_of(call.name or ""))
        counted.update(terms_of(" ".join(_texts(call.arguments or ""))))
    return Counter(dict(counted.most_common(MAX_TERMS)))


def _texts(arguments: str) -> Iterable[str]:
    short = arguments[:_MAX_ARGUMENT_CHARS]
    if len(short) < len(arguments):
        return [short]
    try:
        node = parse(arguments)
    except LexemeError:
        return [short]
    return _strings(node)


def _strings(node: Node) -> list[str]:
    if node.kind is NodeKind.STRING:
        return [node.text() or ""]
    if node.kind is NodeKind.NUMBER:
        return [node.raw]
    children = [value for _, value in node.items()] or list(node)
    return [text for child in children for text in _strings(child)]
