"""What the templates of turns and of evidence receive (style 2.12)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ctxengine.ledger.queries.request import BuiltManifest
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.turns.cards import CardView
from ctxengine.service.turns.evidence import Evidence
from inspector.console_contexts import Standing
from inspector.contexts import SessionFrame, Shell


@dataclass(frozen=True, slots=True)
class TurnView:
    """One closed turn with its form and its value."""

    card: CardView
    form: str
    """In the newest request; empty where that names no span with it."""
    form_words: str
    reason: str
    recency: float | None
    relevance: float | None
    anaphora: float | None
    value: float | None
    """The largest of the three: what turns are ranked by."""
    bar: int
    """Width of the value's bar, of 90."""


@dataclass(frozen=True, slots=True)
class TurnsPage:
    """P8: turns and cards."""

    shell: Shell
    frame: SessionFrame
    turns: tuple[TurnView, ...]
    total: int
    after: int | None
    """Number of the last turn shown, where there are more."""
    asked: str
    """The directive that the values are about."""
    given: str
    """The one that the address names; empty where it is the newest message."""
    newest: BuiltManifest | None
    """The newest request."""


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """P9: one stored result, its forms, and recall tried out."""

    shell: Shell
    session: SessionHead
    session_id: UUID
    evidence: Evidence
    standings: tuple[Standing, ...]
    lines: str
    """Range asked for; empty for a recall without one."""
    part_tokens: int
    """What the part would cost in the next request, counted."""
    problem: str
