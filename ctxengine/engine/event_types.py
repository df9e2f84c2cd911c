"""Every type an event can have, and what a rule says of one (design 4)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EventType(StrEnum):
    """Every type an event can have."""

    SESSION_OPENED = "session.opened"
    SESSION_IMPORTED = "session.imported"
    SESSION_ENDED = "session.ended"
    PLAN_CREATED = "context.plan.created"
    EPOCH_ROTATED = "context.epoch.rotated"
    USER_MESSAGE = "user.message.created"
    INPUT_RECEIVED = "run.input.received"
    SUMMARY_IMPORTED = "summary.imported"
    REQUEST_STARTED = "model.request.started"
    RESPONSE_COMPLETED = "model.response.completed"
    RESPONSE_FAILED = "model.response.failed"
    TOOL_RESULT = "tool.result.received"
    CALL_REFUSED = "call.refused"
    RUN_ENDED = "run.ended"
    TURN_CLOSED = "turn.closed"
    SESSION_RESET = "session.reset"
    WORKING_SET_PLANNED = "context.working_set.planned"
    YIELD_APPLIED = "context.yield.applied"
    WINDOW_LEARNED = "context.window.learned"
    LEGS_CHOSEN = "context.legs.chosen"
    MEMORY_READ = "context.memory.read"
    FRESH_SENT = "context.fresh.sent"
    SNAPSHOT_USED = "context.snapshot.used"
    SKILL_OFFERED = "skill.offered"
    SKILL_LOADED = "skill.loaded"
    TOOL_REVOKED = "tool.revoked"
    TOOL_RESTORED = "tool.restored"
    AUTHORITY_CHANGED = "session.authority.changed"
    SESSION_CONFIGURED = "session.configured"
    PERSON_ERASED = "person.erased"
    CONTENT_EXPIRED = "content.expired"
    WORKING_STATE_UPDATED = "context.working_state.updated"
    COMPACTED = "context.compacted"
    COMPACTION_UNDONE = "context.compaction.undone"
    COMPACTION_REFUSED = "context.compaction.refused"
    PRESENTATION_SET = "context.presentation.set"
    FACTS_OFFERED = "context.facts.offered"
    BUDGET_PRESSURE = "context.budget.pressure"
    BUDGET_EXCEEDED = "context.budget.exceeded"
    CACHE_SHORTFALL = "context.cache.shortfall"
    BOUNDARY_STARTED = "context.boundary.started"
    BOUNDARY_FINISHED = "context.boundary.finished"
    BOUNDARY_FRAGMENT = "context.boundary.fragment"
    PRESENTATION_EMITTED = "presentation.emitted"
    PRESENTATION_FEEDBACK = "presentation.feedback"
    PRESENTATION_SELECTED = "presentation.selected"
    READING_TAKEN = "run.reading.taken"
    READING_MISSED = "run.reading.missed"
    TOOLS_FOUND = "tools.found"
    GUARD_JUDGED = "guard.judged"
    GUARD_SPOKE = "guard.spoke"


ERASURES = (EventType.PERSON_ERASED, EventType.CONTENT_EXPIRED)
"""Events that blanked bodies: they carry the moment that the bodies carry, and the digests of what was kept of plans."""


class EventRule(NamedTuple):
    """What events of one type mean and carry."""

    type: EventType
    meaning: str
    payload: tuple[str, ...]
    """Allowed payload fields; an event with another field is refused at append."""
    content: bool = False
    """Content events open the next step (design 2)."""
    act: bool = False
    """Acts (rotation, operator) open the next step as well, without adding content."""
