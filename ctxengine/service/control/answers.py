"""The registry of control tools' handlers, and what a handler gets and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from ctxengine.engine.events import EventDraft
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow


@dataclass(frozen=True, slots=True)
class ControlCall:
    """A control call as a handler sees it. `arguments` is the text of a JSON object."""

    session: SessionRow
    run: RunRow
    log: PostgresLog
    plan: Plan
    arguments: str
    response_sequence: int
    """Sequence the response that holds the call will have."""
    now: datetime
    pending: tuple[EventDraft, ...] = ()
    """Events of the same response that will be appended before this call's result."""


@dataclass(frozen=True, slots=True)
class ControlAnswer:
    """A handler's answer: the result the model gets, with the trust of what it quotes."""

    text: str
    trust: Trust = Trust.PLATFORM
    source: str = "platform"
    is_error: bool = False
    drafts: list[EventDraft] = field(default_factory=list)
    """Further events the answer implies; appended right behind the result."""


Handler = Callable[[ControlCall], ControlAnswer]
