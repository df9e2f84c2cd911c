"""What gzip data holds: every member of it, one behind the other, and nothing else."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator

from ctxengine.service.imports.unreadable import Unreadable

_MAGIC = b"\x1f\x8b"
MAGIC_BYTES = len(_MAGIC)
"""Bytes of a file's beginning from which it is known whether it is packed."""
_TAKEN = 1 << 14
"""Bytes unpacked at a time. The end of a member copies what is left of them, and a file may consist of ends."""
_GIVEN = 1 << 20
"""Most bytes that are given at a time."""


def is_packed(head: bytes) -> bool:
    """Whether a file that begins like this is gzip data."""
    return head.startswith(_MAGIC)


def unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What packed data holds, in pieces; zero bytes between and behind its members are padding.

    The caller counts and stops: a little data can hold very much.

    Raises:
        Unreadable: it is damaged or truncated, or what follows a member is none.
    """
    pieces = _pieces(chunks)
    rest = next(pieces, b"")
    while rest:
        rest = _next_member((yield from _member(rest, pieces)), pieces)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for at in range(0, len(chunk), _TAKEN):
            yield chunk[at : at + _TAKEN]


def _member(rest: bytes, pieces: Iterator[bytes]) -> Generator[bytes, None, bytes]:
    """One member's content; returns what was taken beyond its end."""
    unpacker = zlib.decompressobj(wbits=31)
    while not unpacker.eof:
        rest = rest or next(pieces, b"")
        if not rest:
            raise Unreadable("The gzip data is truncated.")
        try:
            given = unpacker.decompress(rest, _GIVEN)
        except zlib.error as error:
            raise Unreadable(f"The gzip data is damaged: {error}.") from error
        rest = unpacker.unconsumed_tail
        if given:
            yield given
    return unpacker.unused_data


def _next_member(rest: bytes, pieces: Iterator[bytes]) -> bytes:
    """The beginning of the next member; empty at the end of the data."""
    while len(rest := rest.lstrip(b"\0")) < MAGIC_BYTES and (piece := next(pieces, b"")):
        rest += piece
    if rest and not is_packed(rest):
        raise Unreadable(
            f"The gzip data is followed by bytes that are no gzip data (they begin with {rest[:4].hex(' ')})."
            " Cut them off, or pack the file anew."
        )
    return rest
