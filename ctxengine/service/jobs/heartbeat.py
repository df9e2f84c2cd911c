"""The sign of life of a running job: a thread that renews the lease and writes progress."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from django.db import Error, connection

from ctxengine.service.jobs.context import JobContext

_log = logging.getLogger(__name__)
_LOOK_S = 0.5
"""How often the thread looks whether something is to be written."""


class Heartbeat:
    """Beats while the block runs. A database that is away for a while is asked again, not given up."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="job-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        every = self._context.lease.seconds / 3
        renewed = time.monotonic()
        try:
            while not self._stop.wait(_LOOK_S):
                if time.monotonic() - renewed < every and not self._context.unwritten():
                    continue
                try:
                    self._context.flush()
                    renewed = time.monotonic()
                except Error as error:
                    _log.warning("a job's heartbeat found no database (%s)", type(error).__name__)
                    connection.close()
        finally:
            connection.close()
