"""Which workers live: each holds a shared advisory lock while its connection does, and Postgres counts them.

A killed worker's lock goes with its connection, so nothing has to expire. Behind a pooler that lends out connections by
transaction the count is not to be trusted.
"""

from __future__ import annotations

from django.db import connection

from ctxengine.service.jobs.sweep import SWEEP_LOCK

_PRESENT = 2
_shown_on = "ctx_worker_shown"


def show_presence() -> None:
    """Count as a living worker for as long as this thread's connection lasts. Cheap to call again."""
    connection.ensure_connection()
    held = connection.connection
    if getattr(connection, _shown_on, None) is held:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", (SWEEP_LOCK, _PRESENT))
    setattr(connection, _shown_on, held)


def workers_present() -> int:
    """How many workers live."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2 AND granted"
            " AND datname = current_database()",
            (SWEEP_LOCK, _PRESENT),
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0
