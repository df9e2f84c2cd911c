"""Granted scopes as a plan remembers them: hashes, outside the prompt (spec, Authorization changes; Prefix epochs)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def scope_hashes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Sorted hashes of granted scopes, so that a plan can tell a new grant without naming any."""
    return tuple(sorted({scope_hash(scope) for scope in scopes}))


def scope_hash(scope: str) -> str:
    """sha256 (hex) of one scope."""
    return hashlib.sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()


def newly_granted(pinned: tuple[str, ...] | None, granted: Iterable[str] | None) -> bool:
    """Whether a new run's grant calls for another plan.

    A reduction never does: it is enforced where a call is made. Pins that are initialised and empty are pins; a plan made
    before anybody stated an authority is rebuilt once, at the first run that states one.

    Args:
        pinned: the plan's own hashes; None when no authority was known.
        granted: scopes of the new run; None when nobody stated them.
    """
    if granted is None:
        return False
    return pinned is None or not set(scope_hashes(granted)) <= set(pinned)
