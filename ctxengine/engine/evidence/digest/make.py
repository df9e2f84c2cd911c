"""Choosing a digest by the shape of a result (capacity spec 3). Deterministic: equal texts give equal digests."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ctxengine.engine.evidence.digest import data, lines
from ctxengine.engine.evidence.digest.prose import prose

FIRST_DIGESTS = 1
"""Digests of turns that were closed before the version stood in the event of their close."""
CURRENT_DIGESTS = 2
"""Version of the digests of turns that are closed from now on. A closed turn keeps the version it was closed with, so that its
record never changes and what was sent is built again; a change of what any digest shows is a new version. Since the second,
errors stand verbatim up to the limit of a result, prose shows its first paragraph, whole sentences stand of a huge one, a
single line shows both ends, and a title says where it goes on."""


class Shape(StrEnum):
    """What a result looks like; it decides what its digest shows."""

    WHOLE = "whole"
    """Shorter than any digest of it would be: it stands as it is."""
    ERROR = "error"
    SEARCH = "search"
    JSON = "json"
    MARKDOWN = "markdown"
    TEXT = "text"
    """Prose without headings."""
    OUTPUT = "output"
    """Command output and every text of no other shape: its first and last lines."""


class Digest(NamedTuple):
    """The short form of one result."""

    shape: Shape
    text: str
    """What stands in the request, the closing reference included; the text itself for `whole`."""


def reference_line(reference: str, chars: int) -> str:
    """The line that ends a digest: what it was made from, and how to read all of it."""
    return f'[evidence:{reference} — {chars:,} characters; call recall with id "{reference}" to expand]'


def digest_of(
    text: str, *, reference: str, is_error: bool = False, version: int = CURRENT_DIGESTS
) -> Digest:
    """The digest of a result.

    Args:
        text: the result as text.
        reference: id by which `recall` gives it back.
        is_error: whether the tool said that it failed.
        version: of the digests that the result's turn shows.
    """
    first = version == FIRST_DIGESTS
    most = lines.FIRST_MAX_ERROR_CHARS if first else lines.MAX_ERROR_CHARS
    if is_error and (error := lines.error_lines(text, most)) is not None:
        return Digest(Shape.ERROR, error)
    shape, short = _short(text, is_error, first)
    full = f"{short}\n{reference_line(reference, len(text))}"
    if len(full) >= len(text):
        return Digest(Shape.WHOLE, text)
    return Digest(shape, full)


def _short(text: str, is_error: bool, first: bool) -> tuple[Shape, str]:
    node = None if is_error else data.read_json(text)
    if node is not None:
        found = data.search_results(node)
        return (Shape.SEARCH, found) if found is not None else (Shape.JSON, data.skeleton(node))
    if is_error or lines.says_how_it_ended(text):
        return Shape.OUTPUT, lines.ends(text)
    found = data.search_text(text, marked=not first)
    if found is not None:
        return Shape.SEARCH, found
    outline = lines.markdown(text, sentences=not first)
    if outline is not None:
        return Shape.MARKDOWN, outline
    if first:
        return Shape.OUTPUT, lines.ends(text)
    told = prose(text)
    if told is not None:
        return Shape.TEXT, told
    return Shape.OUTPUT, lines.ends_of_line(text) or lines.ends(text)
