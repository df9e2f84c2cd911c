"""Hostile text made harmless to the eye: what steers or hides is drawn instead of obeyed (ui 8).

Escaping stops markup; it does not stop bidirectional controls, zero-width characters, NUL or lone
surrogates, which change what a reader sees. Each is replaced by a readable sign.
"""

from __future__ import annotations

import re
from html import escape

from django.utils.safestring import SafeString, mark_safe

_NAMES = {
    0x00: "NUL",
    0x08: "BS",
    0x0B: "VT",
    0x0C: "FF",
    0x0D: "CR",
    0x1B: "ESC",
    0x7F: "DEL",
    0xAD: "SHY",
    0x061C: "ALM",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2028: "LSEP",
    0x2029: "PSEP",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
}

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SPACES = str.maketrans({" ": "·", "\t": "→", "\u00a0": "⍽"})


def plain(text: str) -> str:
    """The text with every hidden or steering character written out; for titles and attributes."""
    return _HIDDEN.sub(lambda match: f"⟦{_name(match.group())}⟧", text)


def one_line(text: str) -> str:
    """`plain`, with line ends and tabs written out as well."""
    return plain(text.replace("\n", " ⏎ ").replace("\t", " "))


def visible(text: str) -> SafeString:
    """The text as HTML: escaped, with hidden characters as marked signs."""
    return mark_safe(_HIDDEN.sub(_sign, escape(text)))  # noqa: S308  escaped right here


def drawn_spaces(text: str) -> str:
    """Blanks as glyphs, for changes that differ in white space alone."""
    return text.translate(_SPACES)


def hidden_count(text: str) -> int:
    """How many characters `visible` would draw."""
    return sum(1 for _ in _HIDDEN.finditer(text))


def _name(character: str) -> str:
    point = ord(character)
    return _NAMES.get(point, f"U+{point:04X}")


def _sign(match: re.Match[str]) -> str:
    point = ord(match.group())
    return f'<span class="cc" title="U+{point:04X}">{_name(match.group())}</span>'
