"""Writing parts of logs while the next part is being made: COPY by a thread, on the connection of the caller's transaction.

The database works on one part while this process derives the next. There is never more than one part on its way, so that memory
stays bounded, and nobody else may use the connection until `wait` has returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple

from django.db import connection

from ctxengine.ledger.bulk import copy_command
from ctxengine.ledger.copy_lines import Columns


class _Lines(NamedTuple):
    """What is copied into one table."""

    command: str
    data: bytes


class LogWriter:
    """One transaction's writer; leaving the block ends its thread, whatever the block raised."""

    def __init__(self) -> None:
        """Nothing runs before the first part is sent."""
        self._pool = ThreadPoolExecutor(1, "log-writer")
        self._sent: Future[None] | None = None
        self._part: list[_Lines] = []

    def __enter__(self) -> LogWriter:
        """Begin; the caller has a transaction open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for what is on its way; its failure is raised unless the block has failed already."""
        try:
            self.wait()
        except Exception:
            if error is None:
                raise
        finally:
            self._pool.shutdown()

    @property
    def busy(self) -> bool:
        """Whether the connection is in use."""
        return self._sent is not None and not self._sent.done()

    def add(self, columns: Columns, lines: Iterable[str]) -> None:
        """Put lines of one table into the part that is sent next."""
        data = "".join(lines).encode()
        if data:
            self._part.append(_Lines(copy_command(columns), data))

    def send(self) -> None:
        """Begin to write what was added, once the part before is written.

        Raises:
            Exception: what writing the part before has raised.
        """
        self.wait()
        part, self._part = self._part, []
        if part:
            connection.ensure_connection()
            self._sent = self._pool.submit(_write, connection.connection, part)

    def wait(self) -> None:
        """Return when the connection is free.

        Raises:
            Exception: what writing has raised, as the database layer names it.
        """
        sent, self._sent = self._sent, None
        if sent is not None:
            with connection.wrap_database_errors:
                sent.result()


def _write(raw: Any, part: list[_Lines]) -> None:
    """In the thread: the driver's own connection, since the framework's belongs to the caller's thread."""
    with raw.cursor() as cursor:
        for command, data in part:
            with cursor.copy(command) as stream:
                stream.write(data)
