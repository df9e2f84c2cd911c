"""File locks that the kernel frees when their holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """One advisory lock on a file, held by this process until released or dead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle is not None

    def acquire(self, *, shared: bool = False, wait: bool = True) -> bool:
        """Take the lock; False where `wait` is off and somebody else is in the way."""
        if self._handle is not None:
            return True
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file's exclusive lock, waiting for it."""
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
