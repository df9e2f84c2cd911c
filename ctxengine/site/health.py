"""Health: `livez` says that this process runs, `healthz` that it can serve, database included, and who does the jobs."""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ctxengine.service.jobs.presence import workers_present

_log = logging.getLogger(__name__)
_ASK_THE_BROKER_EVERY_S = 2.0


@never_cache
@require_safe
def livez(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers at all: a reason to restart it is when this fails, not when the database does."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 `{"status": "ok", "broker", "workers"}`, or 503 naming the part that does not answer.

    A database whose schema is older than this code is such a part: whoever sends requests waits until `migrate` has run.
    Broker and workers do not make a web process unhealthy: it takes jobs without them, and they are done later.
    """
    try:
        if _schema.is_behind():
            return JsonResponse({"status": "unavailable", "part": "schema"}, status=503)
        workers = workers_present()
    except DatabaseError as error:
        _log.warning("health check: the database does not answer (%s)", type(error).__name__)
        return JsonResponse({"status": "unavailable", "part": "database"}, status=503)
    return JsonResponse({"status": "ok", "broker": _broker.state(), "workers": workers})


class _Schema:
    """Whether migrations of this code are missing in the database; once none is, none will be."""

    def __init__(self) -> None:
        self._is_here = False

    def is_behind(self) -> bool:
        """Ask the database, until it has them all."""
        if not self._is_here:
            loader = MigrationLoader(connection)
            missing = loader.disk_migrations.keys() - loader.applied_migrations.keys()
            if missing:
                _log.warning("health check: %d migrations are missing", len(missing))
            self._is_here = not missing
        return not self._is_here


class _Broker:
    """How the broker was when last asked; a busy health check does not ask it each time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked_at = -_ASK_THE_BROKER_EVERY_S
        self._state = "unreachable"

    def state(self) -> str:
        """`ok`, `unreachable`, or `none` where messages are switched off."""
        if not settings.CTX_JOB_SENDER:
            return "none"
        due = time.monotonic() - self._asked_at >= _ASK_THE_BROKER_EVERY_S
        if due and self._lock.acquire(blocking=False):
            # One asks, the others answer with what was last known: a dead broker holds up nobody else.
            try:
                from workers.send import broker_answers  # Celery, which only this needs

                self._state = "ok" if broker_answers() else "unreachable"
                self._asked_at = time.monotonic()
            finally:
                self._lock.release()
        return self._state


_broker = _Broker()
_schema = _Schema()
