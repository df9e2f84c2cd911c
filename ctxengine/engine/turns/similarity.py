"""Likeness of meaning between a directive and closed turns, where an embedder is configured (capacity spec 4 and 10)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence

from ctxengine.engine.turns.card import TurnCard, card_text

MIN_LIKENESS = 0.5
"""A cosine below this says nothing."""
MAX_TEXT_CHARS = 8_000
"""Most of a text that is handed to an embedder."""


def text_to_embed(card: TurnCard) -> str:
    """What of a closed turn is embedded: its card. Secrets are masked in it already."""
    return card_text(card)[:MAX_TEXT_CHARS]


def pack(vector: Iterable[float]) -> bytes:
    """A vector for storage: 4 bytes a number, scaled to length 1; empty for one without direction.

    Raises:
        ValueError: a number is not finite.
    """
    numbers = [float(number) for number in vector]
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError("An embedding holds a number that is not finite.")
    length = math.sqrt(sum(number * number for number in numbers))
    return array("f", [number / length for number in numbers]).tobytes() if length else b""


def likeness_of(asked: bytes, turns: Mapping[int, bytes]) -> dict[int, float]:
    """How like a directive each turn is, from `MIN_LIKENESS` to 1; less like ones and those of another length are left out."""
    if not asked:
        return {}
    wanted = _unpacked(asked)
    likeness: dict[int, float] = {}
    for number, stored in turns.items():
        if len(stored) != len(asked):
            continue
        cosine = math.fsum(a * b for a, b in zip(wanted, _unpacked(stored), strict=True))
        if cosine >= MIN_LIKENESS:
            likeness[number] = min(1.0, cosine)
    return likeness


def _unpacked(data: bytes) -> Sequence[float]:
    found = array("f")
    found.frombytes(data)
    return found
