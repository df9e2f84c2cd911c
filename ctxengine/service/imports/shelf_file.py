"""A shelf for the texts of a long transcript: a file without a name beside the uploads, gone with whoever holds it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from ctxengine.engine.importers.shelf import Shelved
from ctxengine.service.imports.staged import made_folder
from ctxengine.service.imports.unreadable import Unreadable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says where no more can be written."""


class FileShelf:
    """Keeps texts in a file, one behind the other."""

    def __init__(self, descriptor: int) -> None:
        """Write to an open file that is empty."""
        self._file, self._end = descriptor, 0

    def put(self, text: str) -> Shelved:
        """Keep a text.

        Raises:
            Unreadable: there is no room for it, or it cannot be written.
        """
        data = text.encode("utf-8", "surrogatepass")
        at, self._end = self._end, self._end + len(data)
        view = memoryview(data)
        try:
            while view:
                view = view[os.pwrite(self._file, view, self._end - len(view)) :]
        except OSError as error:
            raise _not_kept(error) from error
        return partial(self._read, at, len(data))

    def _read(self, at: int, length: int) -> str:
        pieces = []
        while length:
            try:
                piece = os.pread(self._file, length, at)
            except OSError as error:
                raise _gone(error.strerror or str(error)) from error
            if not piece:
                raise _gone("the file ends before them")
            pieces.append(piece)
            at, length = at + len(piece), length - len(piece)
        return b"".join(pieces).decode("utf-8", "surrogatepass")


@contextmanager
def shelf() -> Iterator[FileShelf]:
    """A shelf that is there until the block is left; no other process can open it.

    Raises:
        Unreadable: there is no room for it in the data folder, or it cannot be made there.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile(prefix="import-", dir=made_folder()))
        except OSError as error:
            raise _not_kept(error) from error
        yield FileShelf(file.fileno())


def _not_kept(error: OSError) -> Unreadable:
    said = error.strerror or str(error)
    if error.errno in _FULL:
        return Unreadable(
            "There is no room for the texts of this file: they are put aside in the data folder while it is read"
            f" ({said}). Make room there and import it again."
        )
    return Unreadable(
        f"The texts of this file cannot be put aside in the data folder while it is read: {said}."
    )


def _gone(said: str) -> Unreadable:
    return Unreadable(f"The texts of this file that were put aside cannot be read again: {said}.")
