"""A shelf for the texts of a long transcript: a file without a name, gone with whoever holds it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ctxengine.engine.importers.shelf import Shelved


class FileShelf:
    """Keeps texts in a file, one behind the other."""

    def __init__(self, descriptor: int) -> None:
        """Write to an open file that is empty."""
        self._file, self._end = descriptor, 0

    def put(self, text: str) -> Shelved:
        """Keep a text.

        Raises:
            OSError: there is no room for it.
        """
        data = text.encode("utf-8", "surrogatepass")
        at, self._end = self._end, self._end + len(data)
        view = memoryview(data)
        while view:
            view = view[os.pwrite(self._file, view, self._end - len(view)) :]
        return partial(self._read, at, len(data))

    def _read(self, at: int, length: int) -> str:
        pieces = []
        while length:
            piece = os.pread(self._file, length, at)
            if not piece:
                raise OSError("A text that was put aside is no longer there.")
            pieces.append(piece)
            at, length = at + len(piece), length - len(piece)
        return b"".join(pieces).decode("utf-8", "surrogatepass")


@contextmanager
def shelf() -> Iterator[FileShelf]:
    """A shelf that is there until the block is left; no other process can open it."""
    with tempfile.TemporaryFile(prefix="ctxengine-import-") as file:
        yield FileShelf(file.fileno())
