"""What could be taken for an envelope's delimiter (design 7.6).

A look-alike is something like `<`, perhaps a slash, and something like the tag name, with any
blanks, invisible characters or character references between. The pattern is linear on any input:
all repetitions are possessive and start where no other match can be under way.
"""

from __future__ import annotations

import re
import unicodedata

TAG = "untrusted"
"""Name of the delimiter, whatever the trust of the content: everything enveloped is data."""

STUFFING = "~"
"""What an escaped look-alike carries inside its name, one more than the original did."""

_HEAD, _TAIL = TAG[:2], TAG[2:]

_OPENERS = "<\u02c2\u00ab\u1438\u2039\u226a\u226e\u227a\u2329\u276c\u276e\u27e8\u27ea\u2991"
_OPENERS += "\u29fc\u2aa1\u2abb\u3008\u300a\ufe64\uff1c\U0001d236"
_SLASHES = "/\u2044\u2215\u2571\u27cb\u29f8\u3033\uff0f\u2216\u29f5\u29f9\ufe68\uff3c"

_JUNK = (
    "\\s\\x00-\\x20\\x7f-\\xa0\\xad\u0300-\u036f\u0483-\u0489\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u2000-\u200f\u2028-\u202f\u205f-\u206f\u20d0-\u20ff"
    "\u2400-\u2426\u2800\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0\ufff0-\ufffd"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

_COMPATIBLE_RANGES = (
    (0x00C0, 0x0250),
    (0x1D00, 0x1DC0),
    (0x1E00, 0x1F00),
    (0x2070, 0x20A0),
    (0x2100, 0x2150),
    (0x249C, 0x24EA),
    (0xA640, 0xA800),
    (0xAB30, 0xAB70),
    (0xFF21, 0xFF5B),
    (0x1D400, 0x1D800),
    (0x1F110, 0x1F18A),
)
"""Blocks where letters live that compatibility decomposition turns into Latin ones."""

_DRAWN_ALIKE = {
    "u": "\u03c5\u0446\u057d\u1d1c\uab52\u028b\u222a\u22c3\u0438",
    "n": "\u043f\u0578\u057c\u0274\u03b7\u039d\u2229\u22c2\u1f20",
    "t": "\u0442\u0422\u03c4\u03a4\u1d1b\u2020\u22a4\u13a2",
    "r": "\u0433\u0280\u1d26\u13a1\u13d2\u027e",
    "s": "\u0455\u0405\ua731\u0282\u13da\u054f$\u00a7",
    "e": "\u0435\u0415\u03b5\u0395\u04bd\u1d07\u0454\u212e\u13ac",
    "d": "\u0501\u0257\u1d05\u0111\u0110\u00f0\u13a0\u13e7",
}
"""Letters of other scripts that are drawn like ours and that no decomposition connects."""


def _letter_class(letter: str) -> str:
    position = ord(letter) - ord("a")
    found = {letter, letter.upper(), *_DRAWN_ALIKE[letter]}
    # Regional indicators and the negative circled, squared and negative squared capitals.
    found.update(chr(start + position) for start in (0x1F1E6, 0x1F150, 0x1F130, 0x1F170))
    for first, end in _COMPATIBLE_RANGES:
        for code in range(first, end):
            decomposed = unicodedata.normalize("NFKD", chr(code)).strip("()").casefold()
            if decomposed.startswith(letter):
                found.add(chr(code))
    return "[" + re.escape("".join(sorted(found))) + "]"


def _references(*codes: int) -> str:
    """Written references to ASCII characters: HTML, percent and backslash forms."""
    decimal = "|".join(str(code) for code in codes)
    hexadecimal = "|".join(f"{code:02x}" for code in codes)
    return (
        rf"&(?:amp;)*+#0*+(?:{decimal})(?!\d);?"
        rf"|&(?:amp;)*+#x0*+(?:{hexadecimal})(?![\da-f]);?"
        rf"|\\u00(?:{hexadecimal})|\\x(?:{hexadecimal})|\\u\{{0*+(?:{hexadecimal})\}}"
        rf"|%(?:25)*+(?:{hexadecimal})"
    )


def _build(between_halves: str) -> re.Pattern[str]:
    opener_reference = (
        _references(ord("<")) + r"|&(?:amp;)*+(?:lt|lang|laquo|lsaquo|langle|ll|nvlt);?"
    )
    letter_references = {c: _references(ord(c), ord(c.upper())) for c in sorted(set(TAG))}
    meaningful = "|".join([opener_reference, *letter_references.values()])
    blank_reference = (
        rf"(?!{meaningful})(?:&(?:amp;)*+(?:#\d{{1,8}};?|#x[\da-f]{{1,8}};?|(?:nbsp|shy);?"
        r"|[a-z]{2,24};)"
        r"|\\u[\da-f]{4}|\\x[\da-f]{2}|\\u\{[\da-f]{1,6}\}|\\[nrtfvb0]|%(?:25)*+[\da-f]{2})"
    )
    junk = rf"(?:[{_JUNK}]++|{blank_reference})*+"
    before_name = (
        rf"(?:[{_JUNK}{re.escape(_SLASHES)}]++|{blank_reference}"
        r"|\\(?!u[\da-f{]|x[\da-f]))*+"
    )

    def spelled(letters: str) -> str:
        return junk.join(f"(?:{_letter_class(c)}|{letter_references[c]})" for c in letters)

    return re.compile(
        rf"(?P<opener>[{re.escape(_OPENERS)}]|{opener_reference})(?P<between>{before_name})"
        rf"{spelled(_HEAD)}{between_halves}{junk}{spelled(_TAIL)}",
        re.IGNORECASE,
    )


BARE = _build("")
"""An unescaped look-alike."""

STUFFED = _build(f"(?P<stuffing>{re.escape(STUFFING)}*+)")
"""A look-alike with any number of stuffing characters, zero included."""

_SKIPPED = bytes(range(0x21)) + b"\x7f/" + STUFFING.encode()
_LOWER = bytes.maketrans(b"UNTRSED", b"untrsed")


def may_hold_lookalike(text: str) -> bool:
    """A cheap first question: False is certain, True asks for the full pattern."""
    if not text.isascii():
        return True
    if "&" in text or "%" in text or "\\" in text:
        return True
    return "<" in text and TAG.encode() in text.encode().translate(_LOWER, _SKIPPED)


def is_closing(match: re.Match[str]) -> bool:
    """Whether a look-alike imitates the closing delimiter: a slash stands before its name."""
    between = match["between"]
    return any(slash in between for slash in (*_SLASHES, "\\", "47", "2f", "2F", "sol"))
