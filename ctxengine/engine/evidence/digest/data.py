"""JSON shapes: search results as titles and addresses, other data as a skeleton (capacity spec 3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ctxengine.engine.evidence.digest.lines import shown_line
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.truncation import truncate_text

MAX_FIRST_CHARS = 2_000
"""The first element of a list stands in full up to here; a larger one is shown as its own skeleton."""
MAX_ENTRIES = 200
"""Titles and addresses that one digest lists."""
_MAX_STRING_CHARS = 300
_MAX_KEYS = 60
_MAX_DEPTH = 6
_ADDRESS_KEYS = ("url", "link", "href", "uri", "source_url")
_TITLE_KEYS = ("title", "name", "heading")
_URL = re.compile(r"https?://[^\s<>\"')\]]{4,2000}")
_MIN_RESULTS = 2


def read_json(text: str) -> Node | None:
    """The text as JSON; None where it is none or only a scalar."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        node = parse(text)
    except LexemeError:
        return None
    return node if node.kind in {NodeKind.OBJECT, NodeKind.ARRAY} else None


def search_results(node: Node) -> str | None:
    """Every title and address of a list of found things, no bodies; None where the data is no such list."""
    for name, found in _lists(node):
        entries = [_entry(element) for element in found]
        known = [entry for entry in entries if entry is not None]
        if len(known) >= _MIN_RESULTS and len(known) * 2 >= len(entries):
            head = f"{len(entries):,} results" + (f" in {name}" if name else "")
            return "\n".join([head, *_listed(known)])
    return None


def _lists(node: Node) -> Iterator[tuple[str, Node]]:
    if node.kind is NodeKind.ARRAY:
        yield "", node
        return
    for name, member in node.items():
        if member.kind is NodeKind.ARRAY:
            yield name, member
        elif member.kind is NodeKind.OBJECT:
            for inner, value in member.items():
                if value.kind is NodeKind.ARRAY:
                    yield f"{name}.{inner}", value


def _entry(element: Node) -> str | None:
    if element.kind is not NodeKind.OBJECT:
        return None
    address = _first_text(element, _ADDRESS_KEYS)
    if address is None:
        return None
    title = _first_text(element, _TITLE_KEYS) or "(no title)"
    return f"- {' '.join(title.split())} — {address}"


def _first_text(element: Node, names: tuple[str, ...]) -> str | None:
    for name in names:
        found = element.get(name)
        if found is not None and found.text():
            return found.text()
    return None


def search_text(text: str, *, marked: bool) -> str | None:
    """The same for results written as text: lines that hold an address, each with the line above it; None for other text.

    Args:
        marked: whether a title says that it goes on where only its start is shown.
    """
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if _URL.search(line)]
    if len(places) < _MIN_RESULTS + 1 or len(places) * 30 < len(lines):
        return None
    shown: list[str] = []
    for place in places:
        line = lines[place].strip()
        bare = _URL.sub("", line).strip(" -–—:|()[]*#")
        above = next(
            (text for text in reversed(lines[max(0, place - 2) : place]) if text.strip()), ""
        )
        title = bare if len(bare) > 3 and not bare.lower().startswith(("url", "link")) else above
        match = _URL.search(line)
        address = match[0] if match else ""
        folded = " ".join(title.split())
        started = _title(folded) if marked else folded[:_MAX_STRING_CHARS]
        shown.append(f"- {started} — {address}")
    return "\n".join([f"{len(places):,} addresses", *_listed(shown)])


def _title(folded: str) -> str:
    return folded if len(folded) <= _MAX_STRING_CHARS else _start(folded)


def _listed(entries: Sequence[str]) -> list[str]:
    shown = [shown_line(entry) for entry in entries[:MAX_ENTRIES]]
    more = len(entries) - len(shown)
    return [*shown, f"[... {more:,} more ...]"] if more else shown


def skeleton(node: Node) -> str:
    """Keys, lengths of lists, and the first element of each list."""
    return "\n".join(_skeleton(node, 0))


def _skeleton(node: Node, depth: int) -> list[str]:
    pad = "  " * depth
    if node.kind is NodeKind.ARRAY:
        first = next(iter(node), None)
        if first is None:
            return [f"{pad}[] (0 elements)"]
        return [f"{pad}[{len(node):,} elements, the first:]", *_whole(first, depth + 1)]
    if node.kind is not NodeKind.OBJECT:
        return [f"{pad}{_scalar(node)}"]
    members = node.items()
    lines: list[str] = []
    for name, value in members[:_MAX_KEYS]:
        key = shown_line(name)
        if value.kind not in {NodeKind.OBJECT, NodeKind.ARRAY}:
            lines.append(f"{pad}{key}: {_scalar(value)}")
        elif depth >= _MAX_DEPTH:
            lines.append(f"{pad}{key}: {value.kind.value} of {len(value):,}")
        else:
            count = f"{len(value):,} {'keys' if value.kind is NodeKind.OBJECT else 'elements'}"
            lines.append(f"{pad}{key}: {value.kind.value} of {count}")
            lines.extend(_inner(value, depth + 1))
    if len(members) > _MAX_KEYS:
        lines.append(f"{pad}[... {len(members) - _MAX_KEYS:,} more keys ...]")
    return lines


def _inner(value: Node, depth: int) -> list[str]:
    if value.kind is NodeKind.OBJECT:
        return _skeleton(value, depth)
    first = next(iter(value), None)
    return _whole(first, depth) if first is not None else []


def _whole(element: Node, depth: int) -> list[str]:
    raw = element.raw
    pad = "  " * depth
    if len(raw) <= MAX_FIRST_CHARS:
        return [f"{pad}{line}" for line in raw.split("\n")]
    if element.kind in {NodeKind.OBJECT, NodeKind.ARRAY} and depth < _MAX_DEPTH:
        return _skeleton(element, depth)
    return [f"{pad}{_scalar(element)}"]


def _scalar(node: Node) -> str:
    if node.kind in {NodeKind.OBJECT, NodeKind.ARRAY}:
        return f"{node.kind.value} of {len(node):,}"
    raw = node.raw
    if len(raw) <= _MAX_STRING_CHARS:
        return raw
    return _start(raw)


def _start(text: str) -> str:
    head = truncate_text(text, _MAX_STRING_CHARS)
    return f"{head} [... {len(text) - len(head):,} more characters]"
