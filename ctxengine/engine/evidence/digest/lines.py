"""Text shapes: errors, command output, markdown, and what is none of them. Whole lines only (capacity spec 3)."""

from __future__ import annotations

import re

from ctxengine.engine.evidence.digest.prose import opening, size_line
from ctxengine.engine.evidence.inline import INLINE_MAXIMUM
from ctxengine.engine.trust.truncation import truncate_text

MAX_LINE_CHARS = 2_000
"""A longer line shows its start and says how long it goes on."""
ENDS_LINES = 10
"""Lines shown from each end of command output."""
MAX_ERROR_CHARS = INLINE_MAXIMUM
"""Errors stand verbatim up to here; a longer one is a log, and shows its ends."""
FIRST_MAX_ERROR_CHARS = 8_000
"""The same in digests of the first version."""
_MAX_HEADINGS = 40

_EXIT = re.compile(
    r"(?im)^\W{0,4}(?:process |command )?(?:exited|finished|returned|exit(?: code| status)?)\b\D{0,24}(-?\d{1,5})\b"
)


def shown_line(line: str) -> str:
    """The line, or its start with a note of how many characters follow."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    head = truncate_text(line, MAX_LINE_CHARS)
    return f"{head} [... the line goes on for {len(line) - len(head):,} characters ...]"


def error_lines(text: str, most: int) -> str | None:
    """An error verbatim; None for one so long that its ends must do."""
    return text if len(text) <= most else None


def ends(text: str) -> str:
    """First and last lines with a count of those between them; the exit code first where one is said."""
    lines = text.split("\n")
    said = _EXIT.search(text)
    head = [f"exit code {said[1]}"] if said else []
    if len(lines) <= 2 * ENDS_LINES:
        return "\n".join([*head, *map(shown_line, lines)])
    between = len(lines) - 2 * ENDS_LINES
    return "\n".join(
        [
            *head,
            *map(shown_line, lines[:ENDS_LINES]),
            f"[... {between:,} lines between ...]",
            *map(shown_line, lines[-ENDS_LINES:]),
        ]
    )


def ends_of_line(text: str) -> str | None:
    """Start and end of a text that is one overlong line, with a count of what is between them; None for any other text."""
    line = text.strip("\n")
    if "\n" in line or len(line) <= MAX_LINE_CHARS:
        return None
    head = truncate_text(line, MAX_LINE_CHARS // 2)
    tail = line[len(truncate_text(line, len(line) - MAX_LINE_CHARS // 2)) :]
    between = len(line) - len(head) - len(tail)
    return f"{head} [... {between:,} characters of this one line between ...] {tail}"


def says_how_it_ended(text: str) -> bool:
    """Whether the text names an exit code, as command output does."""
    return _EXIT.search(text) is not None


def headings_of(text: str) -> list[str]:
    """Headings of a markdown text in order."""
    found: list[str] = []
    fenced = False
    previous = ""
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            if re.match(r" {0,3}#{1,6}\s+\S", line):
                found.append(line.strip())
            elif re.fullmatch(r"={3,}|-{3,}", line.strip()) and 0 < len(previous.strip()) <= 120:
                found.append(previous.strip())
        previous = line
    return found


def markdown(text: str, *, sentences: bool) -> str | None:
    """Headings, the first paragraph, and how long the text is; None where there is no heading.

    Args:
        sentences: whether of a huge first paragraph whole sentences stand, not the starts of its lines.
    """
    headings = headings_of(text)
    if not headings:
        return None
    shown = headings[:_MAX_HEADINGS]
    more = len(headings) - len(shown)
    parts = [*map(shown_line, shown)]
    if more:
        parts.append(f"[... {more:,} more headings ...]")
    first = _first_paragraph(text, headings)
    if first:
        parts.append(opening(first) if sentences else "\n".join(map(shown_line, first.split("\n"))))
    parts.append(size_line(text))
    return "\n".join(parts)


def _first_paragraph(text: str, headings: list[str]) -> str:
    known = set(headings)
    for block in re.split(r"\n[ \t]*\n", text):
        lines = [
            line
            for line in block.strip().split("\n")
            if line.strip() not in known and not re.fullmatch(r"={3,}|-{3,}", line.strip())
        ]
        if lines and not lines[0].lstrip().startswith(("```", "~~~")):
            return "\n".join(lines)
    return ""
