"""Exact facts in texts that may be read: paths, numbers with their words, quoted strings, short forms of sentences.

Nothing here knows a language or a topic: shape alone decides.
"""

from __future__ import annotations

import re

from ctxengine.engine.compaction.parrot import LEAST_CHARS
from ctxengine.engine.trust.truncation import truncate_text

_STEP = r"[\w.@+~%-]{1,80}"
_NOT_AFTER = r"(?<![\w/.@+~%-])"
_PATH = re.compile(
    rf"{_NOT_AFTER}(?:[A-Za-z][A-Za-z0-9+.-]{{1,12}}://|~?/|\.{{1,2}}/)?{_STEP}(?:/{_STEP}){{1,30}}/?"
    rf"|{_NOT_AFTER}(?:/|~/|\.{{1,2}}/){_STEP}"
)
_FILE_NAME = re.compile(
    rf"{_NOT_AFTER}[\w@+~%-][\w.@+~%-]{{0,79}}\.[A-Za-z][A-Za-z0-9]{{0,7}}(?![\w/(.])"
)
_POINTER = re.compile(r'\[elided\] [^\n]{0,200}? -> recall "\d+\.\d+"|\[secret:\w+\]')
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,._]*\d?%?(?:\s?[A-Za-zµ°%€$£]{1,4})?(?![\w])")
_QUOTED = re.compile(r"`([^`\n]{3,80})`|\"([^\"\n]{3,80})\"|“([^”\n]{3,80})”|«([^»\n]{3,80})»")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n\s*\n|\n(?=\s*[-*#\d])")
_WORDS_BEFORE = re.compile(r"(?:\S+\s+){0,4}\S*$")

MAX_PATH_CHARS = 200


def without_pointers(text: str) -> str:
    """The text without what stands in it for elided or masked content."""
    return _POINTER.sub(" ", text) if "[" in text else text


def paths_in(text: str) -> list[str]:
    """Paths and addresses, each once, in order."""
    found = []
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".,:;")
        if (
            3 <= len(path) <= MAX_PATH_CHARS
            and not path.replace("/", "").replace(".", "").isdigit()
        ):
            found.append(path)
    return list(dict.fromkeys(found))


def file_names_in(text: str) -> list[str]:
    """Names with an ending that stand alone in prose, each once, in order."""
    return list(dict.fromkeys(match[0] for match in _FILE_NAME.finditer(text)))


def numbers_in(text: str) -> list[str]:
    """Numbers of two characters or more, each with the words before it."""
    found = []
    for match in _NUMBER.finditer(text):
        number = match[0].strip().rstrip(".,")
        if len(number) < 2:
            continue
        line_start = text.rfind("\n", 0, match.start()) + 1
        words = _WORDS_BEFORE.search(
            text[max(line_start, match.start() - LEAST_CHARS) : match.start()]
        )
        found.append(f"{words[0] if words else ''}{number}".strip())
    return list(dict.fromkeys(found))


def quoted_in(text: str) -> list[str]:
    """Strings in quotation marks or backticks, each once, in order."""
    found = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]
    return list(dict.fromkeys(found))


def first_sentence(text: str, max_chars: int) -> str:
    """The first sentence, on one line."""
    pieces = [piece for piece in _SENTENCE_END.split(text.strip()) if piece.strip()]
    return one_line(pieces[0] if pieces else "", max_chars)


def last_paragraph(text: str, max_chars: int) -> str:
    """The last paragraph, on one line."""
    pieces = [piece for piece in text.strip().split("\n\n") if piece.strip()]
    return one_line(pieces[-1] if pieces else "", max_chars)


def one_line(text: str, max_chars: int) -> str:
    """The text with blanks folded, cut where no character is torn; a cut is marked."""
    folded = " ".join(text.split())
    if len(folded) <= max_chars:
        return folded
    return f"{truncate_text(folded, max_chars)} …"


def head_and_tail(text: str, max_chars: int) -> str:
    """A long text by its two ends; a shorter one as it is."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{truncate_text(text, half)} … {text[-half:]}"
