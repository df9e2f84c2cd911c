"""A lost race is redone once, then refused (design 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ctxengine.service.specs import ServiceError

Result = TypeVar("Result")


def redo_once(work: Callable[[], Result]) -> Result:
    """Do the work again when another writer moved the session's head in between.

    Raises:
        ServiceError: `stale_head` (409) when the second try loses as well, or whatever else the work raises.
    """
    try:
        return work()
    except ServiceError as error:
        if error.code != "stale_head":
            raise
    return work()
