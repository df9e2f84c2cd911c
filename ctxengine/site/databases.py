"""Django's DATABASES entry: the database that DATABASE_URL names, else the embedded Postgres of the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dj_database_url

from ctxengine.site import env
from ctxengine.site.postgres.server import EmbeddedPostgres

_POSTGRES = "django.db.backends.postgresql"
_SCHEMES = ("postgres://", "postgresql://")
_POOL_WAIT_S = 5


def database_settings(*, url: str | None, data: Path, pool_size: int) -> dict[str, Any]:
    """One entry of Django's DATABASES.

    Args:
        url: what DATABASE_URL says, or None for the embedded server.
        data: the instance's data folder, where the embedded server lives.
        pool_size: the most connections one process keeps open; 0 opens one for each request.

    Raises:
        SettingError: the address is not one of a Postgres database.
    """
    entry = _from_url(url) if url else _embedded(data)
    options = entry.setdefault("OPTIONS", {})
    options.setdefault("connect_timeout", 10)
    if pool_size:
        # A server that was restarted leaves dead connections in the pool: ask each before it is used.
        entry["CONN_HEALTH_CHECKS"] = True
        options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": _POOL_WAIT_S}
    return entry


def _from_url(url: str) -> dict[str, Any]:
    wanted = "an address like postgresql://user:password@host:5432/name"
    if not url.startswith(_SCHEMES):
        raise env.SettingError("DATABASE_URL", url.partition(":")[0] + ":…", wanted)
    try:
        entry: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError:
        raise env.SettingError("DATABASE_URL", "(not readable)", wanted) from None
    if not entry.get("NAME"):
        raise env.SettingError("DATABASE_URL", "without a database name", wanted)
    entry["ENGINE"] = _POSTGRES
    return entry


def _embedded(data: Path) -> dict[str, Any]:
    address = EmbeddedPostgres(data).address()
    return {
        "ENGINE": _POSTGRES,
        "NAME": address.database,
        "USER": address.user,
        "PASSWORD": address.password,
        "HOST": str(address.socket_folder),
        "PORT": "",
    }
