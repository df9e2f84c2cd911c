"""Estimating text: nearest tokenizer times class prior, or characters weighed (design 7.4)."""

from __future__ import annotations

from ctxengine.engine.tokens.classes import (
    ContentClass,
    Profile,
    code_share,
    profile,
    total_mass,
)
from ctxengine.engine.tokens.counters import count
from ctxengine.engine.tokens.families import Family


def count_text(text: str, family: Family) -> int:
    """Tokens of a text in a family, rounded up; framing is not included.

    Exact families give the vocabulary's own count. The unknown family weighs characters, and there
    a longer text never costs less than a part of it. Pure: the same text gives the same number.
    """
    if not text:
        return 0
    if family.encoding is None:
        return _rounded_up(total_mass(text), 100)
    tokens = count(text, family.encoding)
    if family.priors is None:
        return tokens
    measured = profile(text)
    weighted = sum(mass * family.priors[kind] for mass, kind in _masses_by_class(measured, family))
    return _rounded_up(tokens * weighted, 100 * measured.total)


def _masses_by_class(measured: Profile, family: Family) -> tuple[tuple[int, ContentClass], ...]:
    """Split a profile between the classes of the prior table; the masses add up to its total."""
    prose = measured.words + measured.marks
    if measured.is_json:
        spoken: tuple[tuple[int, ContentClass], ...] = ((prose, ContentClass.JSON),)
    else:
        as_code = prose * max(code_share(measured), _foreign_share(measured)) // 100
        spoken = ((as_code, ContentClass.CODE), (prose - as_code, ContentClass.ENGLISH))
    return (
        *spoken,
        (measured.cjk, ContentClass.CJK),
        (measured.script, ContentClass.SCRIPT),
        (measured.emoji, ContentClass.EMOJI),
        (measured.digits, ContentClass.DIGITS),
        (measured.dense, ContentClass.BASE64),
        (measured.blanks, ContentClass.WHITESPACE),
    )


def _foreign_share(measured: Profile) -> int:
    """How far ASCII words belong to an accented language, whose density is that of code, 0 to 100."""
    return min(100, 1000 * measured.script // measured.words) if measured.words else 0


def _rounded_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
