"""What kind of content a text is, told from its characters alone (design 7.4, class prior).

A `Profile` splits a text into masses, one per kind of character. A mass is what such characters
cost an unknown tokenizer on the safe side, in hundredths of a token. Masses only grow when text is
added on either side, so the sum of them is an estimate that never shrinks when a text gets longer.
"""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from typing import NamedTuple


class ContentClass(StrEnum):
    """Kinds of content whose token density differs between tokenizers."""

    ENGLISH = "english"
    CODE = "code"
    JSON = "json"
    CJK = "cjk"
    SCRIPT = "script"
    """Alphabetic writing beyond ASCII: accented Latin, Cyrillic, Arabic, Devanagari and others."""
    DIGITS = "digits"
    """Numbers, hex, identifiers and logs."""
    BASE64 = "base64"
    EMOJI = "emoji"
    WHITESPACE = "whitespace"
    MIXED = "mixed"


class Profile(NamedTuple):
    """Masses of a text in hundredths of a token; see the module's docstring."""

    words: int
    """ASCII words of ordinary length."""
    marks: int
    """ASCII punctuation and control characters."""
    digits: int
    dense: int
    """Letters and digits mixed in one run, or runs too long to be words: hex, base64, tokens."""
    blanks: int
    cjk: int
    script: int
    emoji: int
    """Emoji, and every character rare enough to be paid by the byte."""
    is_json: bool

    @property
    def total(self) -> int:
        """All masses together, in hundredths of a token."""
        return sum(self[:8])


_LETTER_COST, _DIGIT_COST, _MARK_COST = 36, 90, 90
_SPACE_COST, _LINE_COST = 10, 70
_DENSE_COST, _DENSE_FREE = 100, 1344
"""A run of n letters costs what words do, or n tokens less 13.44 when that is more."""

_SHAPES = (
    bytes(
        ord("a") if chr(code).isalpha() else ord("0") if chr(code).isdigit() else ord(" ")
        for code in range(128)
    )
    + b" " * 128
)
"""Every letter as `a`, every digit as `0`, all else as a space: runs of one shape cost the same and are counted together."""
_LETTERS = bytes(code for code, shape in enumerate(_SHAPES) if shape == ord("a"))
_DIGITS = bytes(code for code, shape in enumerate(_SHAPES) if shape == ord("0"))
_LONG_WORD = 21
"""Letters from which a run is too long to be a word."""
_LETTERS_ALONE = b"a" * _LONG_WORD

_SCRIPT_BLOCKS = (
    ("cjk", 120, "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef"),
    ("script", 80, "\u00a0-\u052f"),
    ("script", 130, "\u0530-\u0dff\u0e00-\u0eff\u10a0-\u10ff\u1e00-\u1fff"),
    ("script", 100, "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2500-\u259f"),
    ("emoji", 150, "\u200b-\u200f\u2100-\u22ff\u2460-\u24ff\u25a0-\u27bf\ufe00-\ufe0f"),
    ("emoji", 250, "\U0001f000-\U0001faff"),
)
_BLOCK_PATTERNS = tuple(
    (kind, cost, re.compile(f"[{block}]+")) for kind, cost, block in _SCRIPT_BLOCKS
)
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_BY_THE_BYTE = 100


def profile(text: str) -> Profile:
    """Measure a text. Linear in its length."""
    return Profile(*_masses(text), _looks_like_json(text))


def total_mass(text: str) -> int:
    """The total of a text's profile, without the rest of it (hundredths of a token)."""
    return sum(_masses(text))


def _masses(text: str) -> tuple[int, int, int, int, int, int, int, int]:
    """The masses in the order of a profile."""
    beyond = {"cjk": 0, "script": 0, "emoji": 0}
    if not text.isascii():
        _measure_beyond_ascii("".join(_BEYOND_ASCII.findall(text)), beyond)
    plain = text.encode("ascii", "ignore")
    # Each kind is counted by what is left without it: much faster than looking for every one of its characters.
    others = plain.translate(None, _LETTERS)
    neither = others.translate(None, _DIGITS)
    marked = neither.translate(None, b" \t")
    letters, digits = len(plain) - len(others), len(others) - len(neither)
    spaces = len(neither) - len(marked)
    lines = len(marked) - len(marked.translate(None, b"\n\r\f\v"))
    dense = in_runs = 0
    shapes = plain.translate(_SHAPES)
    if (digits and (b"a0" in shapes or b"0a" in shapes)) or _LETTERS_ALONE in shapes:
        for run, times in Counter(shapes.split()).items():
            run_letters = run.count(b"a")
            if run_letters == 0 or (run_letters == len(run) < _LONG_WORD):
                continue
            in_runs += len(run) * times
            letters -= run_letters * times
            digits -= (len(run) - run_letters) * times
            dense += _run_cost(run_letters, len(run)) * times
    marks = len(plain) - letters - digits - spaces - lines - in_runs
    blanks = spaces * _SPACE_COST + lines * _LINE_COST
    return (
        letters * _LETTER_COST, marks * _MARK_COST, digits * _DIGIT_COST, dense, blanks,
        beyond["cjk"], beyond["script"], beyond["emoji"],
    )  # fmt: skip


def content_class(text: str) -> ContentClass:
    """The one class that best names a text, for display."""
    measured = profile(text)
    total = measured.total
    if total == 0:
        return ContentClass.MIXED
    by_share = (
        (measured.cjk, ContentClass.CJK),
        (measured.script, ContentClass.SCRIPT),
        (measured.emoji, ContentClass.EMOJI),
        (measured.dense, ContentClass.BASE64),
        (measured.digits + measured.dense, ContentClass.DIGITS),
        (measured.blanks, ContentClass.WHITESPACE),
    )
    for mass, kind in by_share:
        if 2 * mass > total:
            return kind
    if measured.is_json:
        return ContentClass.JSON
    if measured.words == 0:
        return ContentClass.MIXED
    return ContentClass.CODE if code_share(measured) >= 50 else ContentClass.ENGLISH


def code_share(measured: Profile) -> int:
    """How far the words of a text read like code, 0 to 100, from the punctuation they carry."""
    letters = measured.words // _LETTER_COST
    marks = measured.marks // _MARK_COST
    per_mille = 1000 * marks // (letters + marks) if letters + marks else 0
    return max(0, min(100, (per_mille - 40) * 100 // 80))


def _run_cost(letters: int, length: int) -> int:
    if letters < length:
        return length * _DENSE_COST
    return max(length * _LETTER_COST, length * _DENSE_COST - _DENSE_FREE)


def _measure_beyond_ascii(rest: str, masses: dict[str, int]) -> None:
    for kind, cost, pattern in _BLOCK_PATTERNS:
        left = pattern.sub("", rest)
        masses[kind] += (len(rest) - len(left)) * cost
        rest = left
        if not rest:
            return
    masses["emoji"] += len(rest.encode("utf-8", "surrogatepass")) * _BY_THE_BYTE


def _looks_like_json(text: str) -> bool:
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") or stripped[-1:] not in ("}", "]"):
        return False
    return 100 * stripped.count('"') >= 4 * len(stripped)
