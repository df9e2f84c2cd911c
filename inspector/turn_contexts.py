"""What the templates of turns and of evidence receive (style 2.12)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ctxengine.ledger.queries.request import BuiltManifest
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.turns.cards import CardView
from ctxengine.service.turns.evidence import Evidence
from ctxengine.service.turns.packets import PacketRange
from ctxengine.service.turns.seen_by import PlanInForce, SeenBy
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
    brackets: tuple[str, ...] = ()
    """Its place in each bracket of the page: `start`, `inside`, `end`, `only`; empty outside of it."""
    opened: tuple[Bracket, ...] = ()
    """The brackets whose part on this page begins with it."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """A stored packet over the turns it covers."""

    packet: PacketRange
    in_force: bool
    """Whether the newest plan shows it."""


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
    plan: PlanInForce | None
    """The plan in force, whose values are shown; None where no plan is, or another directive is weighed."""
    brackets: tuple[Bracket, ...]
    plans: bool
    """Whether the session can be planned anew for another model."""


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """One closed turn as it stands and as another model would see it."""

    card: CardView
    now: str
    """In words; empty where no plan is in force."""
    form: str
    """`TurnForm` under the other model."""
    form_words: str
    differs: bool
    recency: float | None
    relevance: float | None
    anaphora: float | None
    """Of those that the plan ranked; None where it names none."""


@dataclass(frozen=True, slots=True)
class FormCount:
    """How many turns stand in one form."""

    form: str
    words: str
    turns: int
    now: int | None
    """In the plan in force; None where there is none."""


@dataclass(frozen=True, slots=True)
class SeenByPage:
    """P8: the session as seen by another model."""

    shell: Shell
    frame: SessionFrame
    models: tuple[str, ...]
    """Known models, as `provider/model`."""
    model: str
    """The one that is looked through."""
    problem: str
    """Why it cannot be; empty when nothing is wrong."""
    directive: str
    given: str
    seen: SeenBy | None
    plan: PlanInForce | None
    counts: tuple[FormCount, ...]
    turns: tuple[SeenTurn, ...]
    after: int | None
    """Number of the last turn shown, where there are more."""


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
