"""Native deferral: definitions that a provider keeps aside until its own search finds them (providers.md 6; design 7.1).

Every definition still travels in each request; the provider leaves the deferred ones out of the prompt, and so out of the
cached prefix, until a search result refers to them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.encoding import quoted

FACTS_DATE = "2026-11-29"

MOST_DEFERRED = 10_000
"""Definitions that one request may keep aside."""

ANTHROPIC_SEARCH_NAME = "tool_search_tool_bm25"

_DECLARATIONS = {
    WireApi.ANTHROPIC.value: (
        f'{{"type":"tool_search_tool_bm25_20251119","name":"{ANTHROPIC_SEARCH_NAME}"}}'
    ),
    WireApi.OPENAI_RESPONSES.value: '{"type":"tool_search","execution":"server"}',
}

RESERVED_NAMES: dict[WireApi, frozenset[str]] = {
    WireApi.ANTHROPIC: frozenset({ANTHROPIC_SEARCH_NAME})
}
"""Wire names that the declaration takes."""

REFERENCE_KIND = "tool_search_tool_result"
"""A result that names what was found; the definitions themselves are put in by the provider."""

_DEFINITION_KIND = "tool_search_output"
"""A result that holds the definitions."""

RESULT_KINDS = frozenset({REFERENCE_KIND, _DEFINITION_KIND})
"""Blocks and items that say what a search found."""

SEARCH_KINDS = RESULT_KINDS | {"server_tool_use", "tool_search_call"}
"""All that a search leaves in a response. A server call may be of another tool: `is_search` tells."""

_CLAUDE = re.compile(r"claude-(opus|sonnet|haiku)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_DEFER = ',"defer_loading":true}'


def defers_natively(provider: str, model: str) -> bool:
    """Whether this model keeps definitions aside for its provider's own search. Unknown models do not."""
    lowered = model.lower()
    if provider == "anthropic":
        match = _CLAUDE.search(lowered)
        if match is None:
            return False
        version = (int(match[2]), int(match[3] or 0))
        # The vendor's table leaves this one out.
        return version >= (4, 5) and (match[1], version) != ("sonnet", (5, 0))
    if provider == "openai-responses":
        match = _GPT.search(lowered)
        return match is not None and (int(match[1]), int(match[2] or 0)) >= (5, 4)
    return False


def search_declaration(provider: str) -> str:
    """JSON text that declares the provider's own search; only for providers that `defers_natively` knows.

    The two providers go by the names of their APIs.
    """
    return _DECLARATIONS[provider]


def deferred(definition: str) -> str:
    """A rendered definition marked as one to keep aside."""
    return definition[:-1] + _DEFER


def is_search(kind: str, raw: str) -> bool:
    """Whether a provider's block belongs to its tool search."""
    if kind == "server_tool_use":
        name = _member(_parsed(raw), "name")
        return name is not None and name.text() == ANTHROPIC_SEARCH_NAME
    return kind in SEARCH_KINDS


def is_item(kind: str) -> bool:
    """Whether it is a Responses item of the search: those go back with their id or without."""
    return kind in {"tool_search_call", _DEFINITION_KIND}


def without_id(raw: str) -> str:
    """The item without the id that its provider gave it."""
    item = _parsed(raw)
    if item is None or item.kind is not NodeKind.OBJECT:
        return raw
    kept = [f"{quoted(key)}:{node.raw}" for key, node in item.items() if key != "id"]
    return f"{{{','.join(kept)}}}"


def found_names(kind: str, raw: str) -> tuple[str, ...]:
    """Wire names of the tools that a search result refers to; empty for any other block, and for a failed search."""
    array = _found(kind, raw)
    return () if array is None else tuple(name for entry in array for name in _names(entry))


def resolvable(kind: str, raw: str, known: Collection[str]) -> str:
    """The block without its references to tools that are not `known` any more: the provider refuses those.

    Every other byte stays as it was received.
    """
    array = _found(kind, raw)
    if array is None or all(name in known for entry in array for name in _names(entry)):
        return raw
    kept = [entry.raw for entry in array if set(_names(entry)) <= set(known)]
    return raw.replace(array.raw, f"[{','.join(kept)}]", 1)


def _found(kind: str, raw: str) -> Node | None:
    """The array of what a search result refers to."""
    if kind not in RESULT_KINDS:
        return None
    block = _parsed(raw)
    holds = kind == _DEFINITION_KIND
    holder = block if holds else _member(block, "content")
    array = _member(holder, "tools" if holds else "tool_references")
    return array if array is not None and array.kind is NodeKind.ARRAY else None


def _names(entry: Node) -> Iterator[str]:
    """Names in one entry: a reference has one, a definition too, a namespace as many as it has tools."""
    left = [entry]
    while left:
        entry = left.pop()
        inner = _member(entry, "tools")
        if inner is not None and inner.kind is NodeKind.ARRAY:
            left += reversed(list(inner))
            continue
        named = (_member(entry, key) for key in ("tool_name", "name"))
        texts = (node.text() for node in named if node is not None)
        found = next((text for text in texts if text is not None), None)
        if found is not None:
            yield found


def _member(node: Node | None, key: str) -> Node | None:
    return node.get(key) if node is not None and node.kind is NodeKind.OBJECT else None


def _parsed(raw: str) -> Node | None:
    try:
        return parse(raw)
    except LexemeError:
        return None
