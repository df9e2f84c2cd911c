"""Cutting values out of JSON text without touching a byte of the rest.

Works on text that a parser has already accepted, so positions are found by skipping values, never
by rewriting them.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import JSONDecoder
from typing import NamedTuple

_WHITESPACE = " \t\n\r"


def _kept(text: str) -> str:
    return text


_decoder = JSONDecoder(strict=False, parse_int=_kept, parse_float=_kept)


class Span(NamedTuple):
    """Half-open range of characters."""

    start: int
    end: int


class Member(NamedTuple):
    """One member of an object: key, span of `"key":value`, span of the value alone."""

    key: str
    whole: Span
    value: Span


def element_spans(array: str) -> tuple[Span, ...]:
    """Where each element of this JSON array stands in its text."""
    spans: list[Span] = []
    position = _skip(array, array.index("[") + 1)
    while array[position] != "]":
        end = _decoder.raw_decode(array, position)[1]
        spans.append(Span(position, end))
        position = _after_comma(array, end)
    return tuple(spans)


def member_spans(obj: str) -> tuple[Member, ...]:
    """Where each member of this JSON object stands in its text, repeated keys included."""
    members: list[Member] = []
    position = _skip(obj, obj.index("{") + 1)
    while obj[position] != "}":
        key, key_end = _decoder.raw_decode(obj, position)
        value_start = _skip(obj, _skip(obj, key_end) + 1)
        end = _decoder.raw_decode(obj, value_start)[1]
        members.append(Member(key, Span(position, end), Span(value_start, end)))
        position = _after_comma(obj, end)
    return tuple(members)


def without(text: str, spans: tuple[Span, ...], drop: Iterable[int]) -> str:
    """Text of a container without the values at these places; what stays keeps its bytes.

    Each dropped value takes along the separator that follows it, or the one in front when it is the
    last that stays.
    """
    dropped = frozenset(drop)
    kept = [index for index in range(len(spans)) if index not in dropped]
    if not dropped:
        return text
    if not kept:
        return text[: spans[0].start] + text[spans[-1].end :]
    pieces = [text[: spans[0].start]]
    for place, index in enumerate(kept):
        last = place == len(kept) - 1
        stop = spans[index].end if last else spans[index + 1].start
        pieces.append(text[spans[index].start : stop])
    pieces.append(text[spans[-1].end :])
    return "".join(pieces)


def _skip(text: str, position: int) -> int:
    while text[position] in _WHITESPACE:
        position += 1
    return position


def _after_comma(text: str, position: int) -> int:
    position = _skip(text, position)
    return _skip(text, position + 1) if text[position] == "," else position
