"""Exact counts by the two published byte-pair vocabularies (design 7.4).

The ranks are package data, so nothing is fetched. Text is counted in pieces, because the library
underneath gives up on blank runs of about a million characters and slows down on very long words;
a cut at a line feed costs no accuracy that matters (some tokens in a million).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache, partial
from importlib import resources
from types import FunctionType
from typing import Any

import tiktoken
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from ctxengine.engine.errors import EngineError
from ctxengine.engine.tokens.native_count import TextCounter, native_counter

PIECE_CHARS = 1 << 16
"""Longest piece given to the tokenizer at once."""


class Encoding(StrEnum):
    """Vocabularies that are shipped."""

    O200K = "o200k_base"
    CL100K = "cl100k_base"


_CONSTRUCTORS: dict[Encoding, Callable[[], dict[str, Any]]] = {
    Encoding.O200K: openai_public.o200k_base,
    Encoding.CL100K: openai_public.cl100k_base,
}
_RANKS_SHA256 = {
    Encoding.O200K: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    Encoding.CL100K: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


class VocabularyDamaged(EngineError):
    """A shipped vocabulary is not the file it should be."""

    code = "vocabulary_damaged"


def count(text: str, encoding: str) -> int:
    """Tokens of a text; names of special tokens in it count as the plain text they are.

    Lone surrogates count as the replacement character. Pure: the loaded vocabulary is the only
    thing kept.

    Raises:
        ValueError: no vocabulary of that name is shipped.
        VocabularyDamaged: the package data was changed.
    """
    counted = _counter(encoding)
    if len(text) <= PIECE_CHARS:
        return counted(text)
    # The same pieces whoever counts, so that a count does not depend on what is installed.
    return sum(map(counted, _pieces(text)))


def reference_count(text: str, encoding: str) -> int:
    """What the reference library says of one piece of text; raises as `count` does."""
    return len(_load(Encoding(encoding)).encode_ordinary(text))


@lru_cache(maxsize=len(Encoding))
def _counter(encoding: str) -> TextCounter:
    name = Encoding(encoding)
    return native_counter(name.value) or partial(reference_count, encoding=name)


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + PIECE_CHARS
        if end < len(text):
            # A line feed near the front would make pieces too many and too small.
            line_end = text.rfind("\n", start + PIECE_CHARS // 2, end)
            end = line_end + 1 if line_end >= 0 else end
        yield text[start:end]
        start = end


@lru_cache(maxsize=len(Encoding))
def _load(encoding: Encoding) -> tiktoken.Encoding:
    constructor = _CONSTRUCTORS[encoding]
    # The library's own definition, with our reader in the place of its download.
    offline = FunctionType(
        constructor.__code__,
        {**constructor.__globals__, "load_tiktoken_bpe": _ranks_reader(encoding)},
    )
    return tiktoken.Encoding(**offline())


def _ranks_reader(encoding: Encoding) -> Callable[..., dict[bytes, int]]:
    def read(*_: object, **__: object) -> dict[bytes, int]:
        packed = resources.files(__package__) / "data" / f"{encoding}.tiktoken.gz"
        data = gzip.decompress(packed.read_bytes())
        found = hashlib.sha256(data).hexdigest()
        if found != _RANKS_SHA256[encoding]:
            raise VocabularyDamaged(
                f"The vocabulary {encoding} should have SHA-256 {_RANKS_SHA256[encoding]} and has "
                f"{found}; install the package again."
            )
        pairs = (line.split() for line in data.splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in pairs}

    return read
