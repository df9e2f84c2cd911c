"""Prose: plain text of paragraphs, whose first one tells more than its first lines and last lines do (capacity spec 3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ctxengine.engine.trust.truncation import truncate_text

MAX_OPENING_CHARS = 2_000
"""A first paragraph stands in full up to here; of a longer one stand the whole sentences that fit (characters)."""

_LOOKED_AT = 20_000
"""Characters by which a text is told to be prose."""
_MIN_LETTERS = 0.85
"""Of what is no blank; code, logs and tables have less."""
_MIN_SENTENCES = 3
_MAX_SENTENCE_CHARS = 500
"""On average."""
_MIN_LINE_CHARS = 40
_LONG_LINE_CHARS = 200
"""Lines that long on average are paragraphs, however they begin."""
_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s|$)|[。！？][”’」』）]*")
_BETWEEN_BLOCKS = re.compile(r"\n[ \t]*\n")


def prose(text: str) -> str | None:
    """The first paragraph and how long the text is; None where it does not read as prose."""
    if not _reads_as_prose(text[:_LOOKED_AT]):
        return None
    titles: list[str] = []
    for block in filter(None, map(str.strip, _BETWEEN_BLOCKS.split(text))):
        if _END.search(block):
            return "\n".join([*titles, opening(block), size_line(text)])
        # What is no sentence is a title of the paragraph below it, or it is one of many.
        titles = titles or [opening(block)]
    return "\n".join([*titles, size_line(text)])


def opening(paragraph: str) -> str:
    """A paragraph, or its first whole sentences with a note of how many characters follow."""
    if len(paragraph) <= MAX_OPENING_CHARS:
        return paragraph
    ends = [match.end() for match in _END.finditer(paragraph, 0, MAX_OPENING_CHARS)]
    # Where no sentence ends in time, a word does.
    end = ends[-1] if ends else max(paragraph.rfind(" ", 0, MAX_OPENING_CHARS), 0)
    head = truncate_text(paragraph, end or MAX_OPENING_CHARS)
    return f"{head} [... the paragraph goes on for {len(paragraph) - len(head):,} characters ...]"


def size_line(text: str) -> str:
    """How long a text is: its lines and its bytes."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return f"[{text.count(chr(10)) + 1:,} lines, {size:,} bytes]"


def _reads_as_prose(text: str) -> bool:
    inked = len(text) - sum(map(str.isspace, text))
    if sum(map(str.isalpha, text)) < inked * _MIN_LETTERS:
        return False
    sentences = len(_END.findall(text))
    if sentences < _MIN_SENTENCES or len(text) > sentences * _MAX_SENTENCE_CHARS:
        return False
    lines = [line.strip() for line in text.split("\n")]
    told = [line for line in lines if line]
    mean = sum(map(len, told)) / len(told)
    return mean >= _LONG_LINE_CHARS or (mean >= _MIN_LINE_CHARS and _runs_on(lines))


def _runs_on(lines: Sequence[str]) -> bool:
    """Whether lines are wrapped paragraphs: most of those right below another one go on in the middle of a sentence."""
    below = [line[0] for above, line in pairwise(lines) if above and line]
    going_on = sum(char.isalpha() and not char.isupper() for char in below)
    return going_on * 2 >= len(below)
