"""Cutting text where no character is torn (design 7.6; a label survives every transformation)."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_MAX_STEP_BACK = 256
"""A longer cluster is no writing; cutting inside it is better than losing the text."""


def truncate_text(text: str, max_chars: int) -> str:
    """The longest head of at most `max_chars` code points that tears no user-perceived character.

    Emoji joined by U+200D, flags, Hangul syllables, combining marks, variation selectors and
    CR LF stay whole or are left out. Clusters beyond 256 code points are cut.

    Raises:
        ValueError: `max_chars` is negative.
    """
    if max_chars < 0:
        raise ValueError(f"A text cannot be cut to {max_chars} characters; give 0 or more.")
    if len(text) <= max_chars:
        return text
    lowest = max(0, max_chars - _MAX_STEP_BACK)
    for cut in range(max_chars, lowest - 1, -1):
        if _is_boundary(text, cut):
            return text[:cut]
    return text[:max_chars]


def _is_boundary(text: str, cut: int) -> bool:
    if cut in (0, len(text)):
        return True
    before, after = text[cut - 1], text[cut]
    if before.isascii() and after.isascii():
        return not (before == "\r" and after == "\n")
    if before in "\r\n" or after in "\r\n":
        return True
    if _extends(after) or before == _JOINER:
        return False
    if _is_flag_half(before) and _is_flag_half(after):
        return _flag_halves_before(text, cut) % 2 == 0
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    return not _hangul_joins(before, after)


def _extends(character: str) -> bool:
    code = ord(character)
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character in (_JOINER, "\u200c")
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
    )


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_halves_before(text: str, cut: int) -> int:
    start = cut
    while start > 0 and cut - start < _MAX_STEP_BACK and _is_flag_half(text[start - 1]):
        start -= 1
    return cut - start


def _hangul_joins(before: str, after: str) -> bool:
    if "\u1100" <= before <= "\u115f":
        return "\u1100" <= after <= "\u11a7" or "\uac00" <= after <= "\ud7a3"
    if "\u1160" <= before <= "\u11a7" or "\uac00" <= before <= "\ud7a3":
        return "\u1160" <= after <= "\u11ff"
    return "\u11a8" <= before <= "\u11ff" and "\u11a8" <= after <= "\u11ff"
