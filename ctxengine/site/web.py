"""How gunicorn's processes are set up: what was loaded is left out of garbage collection, which then stays short.

The program itself is hundreds of thousands of objects that never go. A full pass over them takes a tenth of a second or two, in
the middle of whatever call allocates the last straw.
"""

from __future__ import annotations

import gc
from typing import Any

_YOUNG, _MIDDLE, _OLD = 20_000, 20, 50
"""Allocations before a pass over the young, and passes over one generation before one over the next."""


def post_worker_init(worker: Any) -> None:
    """Called by gunicorn in each process, once the application is loaded."""
    from django.urls import get_resolver

    get_resolver().url_patterns  # noqa: B018  else the first call loads every door
    settle()


def settle() -> None:
    """Take everything that is loaded now for permanent."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
