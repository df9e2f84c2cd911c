"""The thread of a worker's main process that sweeps, asks for upkeep, and shows that the worker lives."""

from __future__ import annotations

import logging
import threading
import time

from django.db import Error, connection

from ctxengine.service.alerts.look import look_at_alerts
from ctxengine.service.expire import ask_for_upkeep
from ctxengine.service.jobs.presence import show_presence
from ctxengine.service.jobs.sweep import sweep
from ctxengine.service.search.job import ask_for_index
from workers.send import waiting

_log = logging.getLogger(__name__)
_EVERY_S = 2.0
_UPKEEP_EVERY_S = 600.0
_LOOK_EVERY_S = 30.0


class Sweeper:
    """Sweeps every two seconds until it is stopped. A database that is away is asked again."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self._upkeep_at = 0.0
        self._look_at = time.monotonic() + _LOOK_EVERY_S

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with the round that is under way."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        try:
            while True:
                self._round()
                if self._stop.wait(_EVERY_S):
                    return
        finally:
            connection.close()

    def _round(self) -> None:
        try:
            show_presence()
            sweep(waiting=waiting)
            if time.monotonic() >= self._upkeep_at:
                ask_for_upkeep()
                self._upkeep_at = time.monotonic() + _UPKEEP_EVERY_S
            if time.monotonic() >= self._look_at:
                ask_for_index()
                look_at_alerts()
                self._look_at = time.monotonic() + _LOOK_EVERY_S
        except Error as error:
            _log.warning("the sweeper found no database (%s)", type(error).__name__)
            connection.close()
        except Exception:
            # A round that meets a defect must not be the last one.
            _log.exception("a round of the sweeper failed")
            connection.close()
