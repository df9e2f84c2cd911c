"""Row 6: one line for each tool that is reachable without being defined (frozen-prefix spec, The budget allocator).

A line holds the name, the parameters (required ones in the order of the schema's own `required` array, optional ones by name
and marked) and the first sentence of the description. The order of a schema's properties never reaches the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.lexeme import Node, NodeKind, parse
from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view

MAX_ENTRY_CHARS = 400
"""A longer line is cut: one tool must not take the index from the others (characters)."""

_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|\n")


def index_entry(tool: PinnedTool) -> str:
    """One tool's line, on one line whatever its texts hold."""
    line = f"- {_one_line(tool.name)}({', '.join(_parameters(tool.input_schema))})"
    said = first_sentence(tool.description)
    return (f"{line}: {said}" if said else line)[:MAX_ENTRY_CHARS]


def first_sentence(text: str) -> str:
    """A description up to the end of its first sentence or line."""
    shown = text.strip()
    end = _SENTENCE_END.search(shown)
    return _one_line(shown[: end.end()] if end else shown)


def index_text(
    tools: Sequence[PinnedTool], *, caller: str, nonce_key: bytes, by_server: bool = False
) -> str:
    """Row 6, empty when nothing is deferred.

    Args:
        tools: the deferred ones, in any order.
        caller: wire name of the tool that reaches them.
        by_server: whether discovered tools stand under the name of their server.
    """
    if not tools:
        return ""
    ordered = sorted(tools, key=lambda tool: tool.name)
    own = [index_entry(tool) for tool in ordered if not tool.discovered]
    found = _by_server(ordered) if by_server else _entries(ordered)
    parts = [
        f"More tools can be called than are defined. Reach one through {caller}, giving its name and its arguments as an "
        "object. A question mark follows a parameter that may be left out."
    ]
    parts += own
    if found:
        parts.append(_enveloped("\n".join(found), nonce_key))
    return "\n".join(parts)


def _entries(ordered: Sequence[PinnedTool]) -> list[str]:
    return [index_entry(tool) for tool in ordered if tool.discovered]


def _by_server(ordered: Sequence[PinnedTool]) -> list[str]:
    """Each server's name, then the tools last seen there."""
    lines: list[str] = []
    for server in sorted({tool.server for tool in ordered if tool.discovered}):
        lines.append(f"server {_one_line(server)}:"[:MAX_ENTRY_CHARS])
        lines += _entries([tool for tool in ordered if tool.server == server])
    return lines


class IndexMeter:
    """Measures the index while it is filled."""

    def __init__(
        self, counter: TokenCounter, caller: str, nonce_key: bytes, *, by_server: bool = False
    ) -> None:
        """Measure as `index_text` with these arguments would render."""
        self._by_server = by_server
        self._counter = counter
        self._caller = caller
        self._nonce_key = nonce_key

    def whole(self, tools: Sequence[PinnedTool]) -> int:
        """Tokens of the index that holds exactly these tools."""
        text = index_text(
            tools, caller=self._caller, nonce_key=self._nonce_key, by_server=self._by_server
        )
        return self._counter.text(text) if text else 0

    def line(self, tool: PinnedTool) -> int:
        """Tokens of one tool's own line."""
        return self._counter.text(index_entry(tool))


def _enveloped(body: str, nonce_key: bytes) -> str:
    digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
    return render_envelope(
        body,
        source="tools:discovered",
        item_id="deferred",
        trust=Trust.EXTERNAL_UNTRUSTED,
        nonce=nonce(nonce_key, "deferred", "whole", digest),
    )


def _parameters(schema: str) -> list[str]:
    node = parse(schema)
    named = [name for name, _ in _members(node.get("properties"))]
    required = [text for text in _texts(node.get("required")) if text]
    optional = sorted(set(named) - set(required))
    return [_one_line(name) for name in dict.fromkeys(required)] + [
        f"{_one_line(name)}?" for name in optional
    ]


def _members(node: Node | None) -> tuple[tuple[str, Node], ...]:
    return node.items() if node is not None and node.kind is NodeKind.OBJECT else ()


def _texts(node: Node | None) -> list[str]:
    if node is None or node.kind is not NodeKind.ARRAY:
        return []
    return [child.text() or "" for child in node]


def _one_line(text: str) -> str:
    return " ".join(model_view(text).split())
