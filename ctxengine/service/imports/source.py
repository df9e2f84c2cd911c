"""Where a transcript's text comes from: bytes at hand, or a file that is read line by line (design 7.17).

Bytes at hand (REST, a small upload, a small file) are held whole, unpacked where they are packed. A file on disk that is long
or packed is read twice from there: for its digest, then for its lines. Where those are JSON lines of a conversation, what is
held of it is what its entries are known by; a document is one value and has to be held whole.
"""

from __future__ import annotations

import gc
import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Self

from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import Transcript
from ctxengine.service.imports.packed import MAGIC_BYTES, is_packed, unpacked
from ctxengine.service.imports.shelf_file import shelf
from ctxengine.service.imports.unreadable import Unreadable

MAX_FILE_BYTES = 256 * 1024 * 1024
"""Largest transcript that is read, unpacked."""
STREAMED_FROM = 8 << 20
"""Bytes of a file on disk from which it is read line by line; a packed one always is, since its length says nothing."""

_SNIFFED_BYTES = 65_536
_ZIP = b"PK\x03\x04"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_CHUNK = 1 << 20
_COLLECTED = 8 << 20
"""Bytes of lines after which what reading them left behind is collected."""


class Source(ABC):
    """A file's content, for as long as a block: its digest, and once its transcript."""

    def __init__(self, sha256: str) -> None:
        """Hold nothing yet.

        Args:
            sha256: hexadecimal digest of the bytes as they were given.
        """
        self.sha256 = sha256
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what the transcript needed."""
        self._stack.close()

    @abstractmethod
    def transcript(self, name: str) -> Transcript:
        """Read it.

        Raises:
            Unreadable: the bytes are no text.
            NotATranscript: the text is no transcript.
        """


class Bytes(Source):
    """Content that is at hand; it is let go of while it is read."""

    def __init__(self, data: bytes) -> None:
        """Take the bytes over."""
        super().__init__(hashlib.sha256(data).hexdigest())
        self._data = [data]

    def transcript(self, name: str) -> Transcript:
        """Read it; see `Source`."""
        return read(_text(self._data.pop()), name=name)


class LongFile(Source):
    """A long file, read from disk; long texts lie on a shelf until the block is left."""

    def __init__(self, path: Path) -> None:
        """Take its digest.

        Raises:
            OSError: it cannot be read.
        """
        self._path = path
        with path.open("rb") as file:
            super().__init__(hashlib.file_digest(file, "sha256").hexdigest())

    def transcript(self, name: str) -> Transcript:
        """Read it; see `Source`."""
        return read(self._lines(), name=name, shelf=self._stack.enter_context(shelf()))

    def _lines(self) -> Iterator[str]:
        seen = hashlib.sha256()
        try:
            with self._path.open("rb") as file:
                yield from _decoded(_unpacked_lines(_Watched(file, seen)))
                while chunk := file.read(_CHUNK):
                    seen.update(chunk)
        except OSError as error:
            raise Unreadable(f"The file cannot be read: {error.strerror or error}.") from error
        if seen.hexdigest() != self.sha256:
            raise Unreadable("The file changed while it was read; import it again.")


class _Watched:
    """A file of which everything that is read goes into a digest."""

    def __init__(self, file: BinaryIO, seen: hashlib._Hash) -> None:
        self._file, self._seen = file, seen

    def read(self, length: int) -> bytes:
        chunk = self._file.read(length)
        self._seen.update(chunk)
        return chunk


def problem_of(path: Path) -> str:
    """What can be said against a file from its size and its beginning; empty when nothing can.

    Raises:
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        return f"The file has {_megabytes(size)}; at most {_megabytes(MAX_FILE_BYTES)} are read. Split it."
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return _binary(head)


def _binary(head: bytes) -> str:
    """What can be said against bytes that are no text."""
    strange = _strange(head)
    if strange or b"\0" not in head or is_packed(head):
        return strange
    return "The file is binary: it holds zero bytes."


def _strange(head: bytes) -> str:
    """What can be said against a file of another kind, known by its first bytes, that people take for a transcript."""
    if head.startswith(_ZIP):
        return (
            "The file is a zip archive; transcripts are read unpacked. An Inspect log (.eval) is one too: "
            "write it as JSON with `inspect log dump`."
        )
    if head.startswith(_UTF_16):
        return (
            "The file is text in UTF-16; transcripts are read in UTF-8. Save it in that encoding."
        )
    return ""


def is_long(path: Path) -> bool:
    """Whether a file is read line by line.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        packed = is_packed(file.read(MAGIC_BYTES))
    return packed or path.stat().st_size >= STREAMED_FROM


def _text(data: bytes) -> str:
    if not data:
        raise Unreadable("The file is empty.")
    strange = _strange(data[:4])
    if strange:
        raise Unreadable(strange)
    if is_packed(data):
        data = _unpacked(data)
    if len(data) > MAX_FILE_BYTES:
        raise _too_long()
    try:
        return data.decode("utf-8-sig", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _no_text(error.start) from error


def _unpacked(data: bytes) -> bytes:
    out = io.BytesIO()
    for piece in unpacked([data]):
        out.write(piece)
        # Unpacking stops at the limit, so that a small file cannot fill the memory.
        if out.tell() > MAX_FILE_BYTES:
            raise _too_long()
    return out.getvalue()


def _unpacked_lines(file: _Watched) -> Iterator[bytes]:
    """Lines with their ends; only a line feed ends one."""
    waiting: list[bytes] = []
    length = 0
    for chunk in _unpacked_chunks(file):
        length += len(chunk)
        if length > MAX_FILE_BYTES:
            raise _too_long()
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            waiting.append(line + b"\n")
            yield _handed_over(waiting)
        if rest:
            waiting.append(rest)
    if waiting:
        yield _handed_over(waiting)


def _handed_over(pieces: list[bytes]) -> bytes:
    """Pieces as one; nobody holds them any longer."""
    whole = b"".join(pieces)
    pieces.clear()
    return whole


def _unpacked_chunks(file: _Watched) -> Iterator[bytes]:
    first = file.read(_CHUNK)
    chunks = chain([first], iter(partial(file.read, _CHUNK), b""))
    return unpacked(chunks) if is_packed(first) else chunks


def _decoded(lines: Iterator[bytes]) -> Iterator[str]:
    before, encoding, collected = 0, "utf-8-sig", 0
    for line in lines:
        if before - collected >= _COLLECTED:
            # The values of lines hold each other in circles, and the import keeps the collector off.
            gc.collect(0)
            collected = before
        try:
            text = line.decode(encoding, "surrogatepass")
        except UnicodeDecodeError as error:
            raise _no_text(before + error.start) from error
        before, encoding = before + len(line), "utf-8"
        # A line may be the whole file: it is held once, by whoever asked for it.
        del line
        yield text
        del text


def _no_text(at: int) -> Unreadable:
    return Unreadable(f"The file is binary or not UTF-8 (at byte {at:,}).")


def _too_long() -> Unreadable:
    return Unreadable(f"The file has more than {_megabytes(MAX_FILE_BYTES)}; split it.")


def _megabytes(length: int) -> str:
    return f"{length / 1_000_000:,.1f} MB"
