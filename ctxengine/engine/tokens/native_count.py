"""Counting by a native tokenizer where one is installed: the same counts, an order of magnitude sooner (design 7.4).

It is young, so nothing depends on it: it is used only if it gives, on texts of every awkward kind, the counts that the
reference library gave for them. Where it is absent or differs, the reference counts.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

TextCounter = Callable[[str], int]
"""Tokens of one piece of text."""


class Sample(NamedTuple):
    """A text and its tokens as the reference counts them."""

    text: str
    o200k_base: int
    cl100k_base: int


def native_counter(encoding: str) -> TextCounter | None:
    """The native counter of a vocabulary; None where there is none that counts as the reference does."""
    try:
        count: TextCounter = import_module("toktok")._encoding(encoding).count
        agrees = all(count(sample.text) == getattr(sample, encoding) for sample in SAMPLES)
    except Exception:  # another version may lack any of this, and may fail in any way
        return None
    return _carried(count) if agrees else None


def _carried(count: TextCounter) -> TextCounter:
    def counted(text: str) -> int:
        try:
            return count(text)
        except UnicodeEncodeError:
            # The reference joins paired surrogates and replaces lone ones; so does this.
            return count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    return counted


SAMPLES = (
    Sample("", 0, 0),
    Sample("Hello, world! It's what they'd've said.", 10, 12),
    Sample("<|endoftext|> and <|im_start|>user", 15, 14),
    Sample("                                                                      x", 2, 2),
    Sample("\n\n\n\r\n\t \n", 3, 3),
    Sample("def f(x):\n    return x ** 2  # squared\n", 14, 14),
    Sample('{"key": [1, 2.50, null], "k\\n": "\\u00e9"}', 23, 23),
    Sample("3141592653589793 0x1F 1,234", 15, 15),
    Sample(
        "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f \uc548\ub155", 7, 11
    ),
    Sample("caf\xe9 na\xefve \xdcber e\u0301 \ufb01", 8, 9),
    Sample(
        "\u041f\u0440\u0438\u0432\u0435\u0442 \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947",
        7,
        15,
    ),
    Sample("\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f600\xa9\u2028\xa0\u3000", 13, 19),
    Sample("ABCdefGHI HTTPServer iPhone DON'T", 9, 9),
    Sample("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 7, 7),
    Sample("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", 21, 21),
    Sample("\x00\x01\x7f\x85", 5, 5),
    Sample("====----^^^^____\\\\////", 6, 6),
    Sample("\U0001d2c0\ue000\ufffd", 6, 7),
)
"""Texts on which the two are held against each other; a test makes the figures anew from the reference."""
