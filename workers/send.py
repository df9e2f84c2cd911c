"""Handing messages to the broker, from any process, without ever waiting long for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from kombu import Producer
from kombu.exceptions import ChannelError
from kombu.pools import ProducerPool

from workers.app import app, queue_on_broker, transport_options
from workers.tasks import RUN_JOB

_QUIET_S = 3.0
"""After a failure nobody tries again for this long, so that callers do not queue up behind a dead broker."""
_POOL_SIZE = 8
_POOL_WAIT_S = 2.0


Result = TypeVar("Result")


class BrokerAway(ConnectionError):
    """The broker did not answer a moment ago."""


class _Sender:
    """The producers of one process; a forked process makes its own and leaves its parent's sockets alone."""

    def __init__(self) -> None:
        options = transport_options(app.conf.broker_url)
        once = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
        connection = app.connection_for_write(transport_options=options | once)
        self._producers = ProducerPool(connections=connection.Pool(_POOL_SIZE), limit=_POOL_SIZE)
        self.has_worked = False

    def use(self, talk: Callable[[Producer], Result]) -> Result:
        """Talk to the broker over one of the producers."""
        with self._producers.acquire(block=True, timeout=_POOL_WAIT_S) as producer:
            told = talk(producer)
        self.has_worked = True
        return told


_senders: dict[int, _Sender] = {}
_quiet_until = 0.0
_lock = threading.Lock()


def send_job(tenant_id: UUID, job_id: UUID, queue: str) -> None:
    """Send the message that wakes a worker for a job.

    Raises:
        BrokerAway: it did not answer, now or a moment ago.
    """
    global _quiet_until
    if time.monotonic() < _quiet_until:
        raise BrokerAway
    try:
        _talk(
            lambda producer: app.send_task(
                RUN_JOB,
                (str(tenant_id), str(job_id)),
                queue=queue_on_broker(queue),
                producer=producer,
                retry=False,
            )
        )
    except Exception as error:
        _quiet_until = time.monotonic() + _QUIET_S
        raise BrokerAway(type(error).__name__) from error


def waiting(queue: str) -> int | None:
    """How many messages wait in a queue; None where the broker does not answer."""

    def ask(producer: Producer) -> int:
        with producer.connection.channel() as channel:
            try:
                declared = channel.queue_declare(queue_on_broker(queue), passive=True)
            except ChannelError:
                return 0  # no such queue: nothing waits in it
            return int(declared.message_count)

    try:
        return _talk(ask)
    except Exception:
        return None


def broker_answers() -> bool:
    """Whether the broker accepts a connection and talks to us."""
    return waiting("upkeep") is not None


def _talk(talk: Callable[[Producer], Result]) -> Result:
    """Talk to the broker; connections that broke since they were last used are made anew, once."""
    sender = _sender()
    try:
        return sender.use(talk)
    except Exception:
        # Kombu does not mend a pool whose broker was restarted.
        with _lock:
            if _senders.get(os.getpid()) is sender:
                del _senders[os.getpid()]
        if not sender.has_worked:
            raise
    return _sender().use(talk)


def _sender() -> _Sender:
    pid = os.getpid()
    with _lock:
        if pid not in _senders:
            _senders[pid] = _Sender()
        return _senders[pid]
