"""Places at which a process of the product dies, or loses its database: installed in real processes that a test starts.

A test names one place in a file; the process reads it when its next call or job begins, and removes it when it comes to pass.
Nothing of the product knows of this: the places are Django's, or functions that stand in for a stage of the product's work.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

Act = Literal["die", "die_with_all", "drop", "kill_postgres", "no_space", "crash"]
FILE = "CTX_TEST_DEATH_FILE"
"""Environment name: where the test writes what shall happen."""
CLOCK = "CTX_TEST_CLOCK_FILE"
"""Environment name: seconds that the process's clock is ahead, or behind."""
COUNTS = "CTX_TEST_COUNT_FILE"
"""Environment name: where a process writes how many places each call went past."""
_here = threading.local()


def arm(path: Path, place: str, when: str, nth: int = 1, act: Act = "die", **more: Any) -> None:
    """Let the next call or job meet a fault before or after it passes a place for the nth time.

    Args:
        more: `tenant`, whose jobs alone meet it; `always`, for one that stays; `pid`, of the Postgres to kill.
    """
    plan = {"place": place, "when": when, "nth": nth, "act": act, **more}
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(plan), encoding="utf-8")
    draft.replace(path)


def install(*targets: str) -> None:
    """Make the places: each commit, each statement, and functions given as `module:name`."""
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

    _wrap(BaseDatabaseWrapper, "commit", "commit")
    _wrap(CursorWrapper, "execute", "statement")
    for target in targets:
        module, _, name = target.partition(":")
        _wrap(import_module(module), name, target)


def bend_clock() -> None:
    """Let this process's clock be as far off as a file says, wherever the product reads it."""
    from django.utils import timezone

    from ctxengine.service import clock

    def bent(read: Callable[[], datetime]) -> Callable[[], datetime]:
        def now() -> datetime:
            return read() + timedelta(seconds=_seconds_off())

        return now

    for module, name in ((clock, "utc_now"), (timezone, "now")):
        straight = getattr(module, name)
        for loaded in list(sys.modules.values()):
            if getattr(loaded, name, None) is straight:
                setattr(loaded, name, bent(straight))


def _seconds_off() -> float:
    with suppress(KeyError, OSError, ValueError):
        return float(Path(os.environ[CLOCK]).read_text())
    return 0.0


def begin(tenant: str = "") -> None:
    """Start a call or a job: read what shall happen in it."""
    _here.passed = {}
    _here.plan = None
    with suppress(KeyError, OSError, ValueError):
        plan = json.loads(Path(os.environ[FILE]).read_text(encoding="utf-8"))
        if plan.get("tenant", "") == tenant:
            _here.plan = plan


def end(what: str) -> None:
    """Note how many places a call went past, where a test wants to know."""
    path = os.environ.get(COUNTS)
    if path:
        with Path(path).open("a", encoding="utf-8") as out:
            out.write(json.dumps({"call": what, **_here.passed}) + "\n")


def _wrap(owner: Any, name: str, place: str) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def passing(*arguments: Any, **options: Any) -> Any:
        passed = getattr(_here, "passed", None)
        if passed is None:
            return inner(*arguments, **options)
        passed[place] = nth = passed.get(place, 0) + 1
        _meet(place, "before", nth)
        result = inner(*arguments, **options)
        _meet(place, "after", nth)
        return result

    setattr(owner, name, passing)


def _meet(place: str, when: str, nth: int) -> None:
    plan = _here.plan
    if plan is None or (plan["place"], plan["when"], plan["nth"]) != (place, when, nth):
        return
    _here.plan = None
    if not plan.get("always"):
        Path(os.environ[FILE]).unlink(missing_ok=True)
    _ACTS[plan["act"]](plan)


def _drop(_plan: dict[str, Any]) -> None:
    """Let the server end this process's connection."""
    import psycopg
    from django.db import connection

    own = connection.connection.info
    with psycopg.connect(
        host=own.host, user=own.user, password=own.password, dbname=own.dbname, autocommit=True
    ) as control:
        control.execute("SELECT pg_terminate_backend(%s, 5000)", [own.backend_pid])


def _no_space(_plan: dict[str, Any]) -> None:
    import errno

    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _crash(_plan: dict[str, Any]) -> None:
    raise RuntimeError("a defect that a test has put here")


_ACTS = {
    "die": lambda _plan: os.kill(os.getpid(), signal.SIGKILL),
    "die_with_all": lambda _plan: os.killpg(0, signal.SIGKILL),
    "drop": _drop,
    "kill_postgres": lambda plan: os.kill(plan["pid"], signal.SIGKILL),
    "no_space": _no_space,
    "crash": _crash,
}
