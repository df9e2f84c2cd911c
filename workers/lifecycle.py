"""What a worker does when it starts and ends: log as the site does, sweep, and let no process outlive it."""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
from typing import Any

from celery.signals import setup_logging, worker_process_init, worker_ready, worker_shutdown

from workers.sweeper import Sweeper

_PR_SET_PDEATHSIG = 1
_sweepers: list[Sweeper] = []


def leave_logging_alone(**_: Any) -> None:
    """Django has set it up; Celery's own account of each message is left out, since job rows have it."""
    for name in ("celery", "kombu", "amqp"):
        logging.getLogger(name).setLevel(logging.WARNING)


def start_sweeping(**_: Any) -> None:
    """Begin to sweep, in the main process alone."""
    sweeper = Sweeper()
    _sweepers.append(sweeper)
    sweeper.start()


def stop_sweeping(**_: Any) -> None:
    """End it."""
    while _sweepers:
        _sweepers.pop().stop()


def die_with_the_worker(**_: Any) -> None:
    """A process of the pool ends with its parent, even when that is killed (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


setup_logging.connect(leave_logging_alone)
worker_ready.connect(start_sweeping)
worker_shutdown.connect(stop_sweeping)
worker_process_init.connect(die_with_the_worker)
