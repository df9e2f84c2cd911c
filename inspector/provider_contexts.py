"""What the template of the providers' page receives."""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.ledger.queries.providers import ProviderLine
from inspector.contexts import Shell


@dataclass(frozen=True, slots=True)
class ProvidersPage:
    """Provider health."""

    shell: Shell
    lines: tuple[ProviderLine, ...]
    window: str
    windows: tuple[str, ...]
