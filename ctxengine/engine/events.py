"""The one table of event types and their payloads (design 4).

A payload holds only fields that we author; foreign content lives in the event's body. Types stand in `event_types`, their rules
in `event_rules` and `event_rules_context`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ctxengine.engine.event_rules import CONVERSATION_RULES
from ctxengine.engine.event_rules_context import CONTEXT_RULES
from ctxengine.engine.event_types import EventRule, EventType
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind
from ctxengine.engine.trust.levels import Trust

EVENT_RULES: tuple[EventRule, ...] = (*CONVERSATION_RULES, *CONTEXT_RULES)

RULE_OF_EVENT = {rule.type: rule for rule in EVENT_RULES}


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What append derives once from an item's content; stored beside the event."""

    ordinal: int
    kind: ItemKind
    tokens: int
    pointer_tokens: int
    digest: str
    bytes_len: int
    chars_len: int
    name: str = ""
    call_id: str = ""
    wire_call_id: str = ""
    source: str = ""
    is_error: bool = False
    preview: str = ""
    excerpt_limit: int = 0
    """Limit (bytes) under which the item was counted as an excerpt; 0: counted whole."""


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event about to be appended: no sequence, no hash yet."""

    type: EventType
    trust: Trust
    payload: dict[str, Any] = field(default_factory=dict)
    run: str | None = None
    body: str | None = None
    """Raw text exactly as received; None for acts."""
    format: ContentFormat | None = None
    items: tuple[ItemFacts, ...] = ()
    answers: tuple[int, int] | None = None
    """For a result: (sequence, ordinal) of the call it answers."""
    owner: str = ""
    """Principal whose erasure takes the body along."""
    decoded: tuple[DecodedItem, ...] = field(default=(), compare=False, repr=False)
    """What the body decodes to, where the writer knows; it only spares a log from reading it again."""

    def __post_init__(self) -> None:
        unknown = set(self.payload) - set(RULE_OF_EVENT[self.type].payload)
        if unknown:
            msg = f"{self.type} carries no field {', '.join(sorted(unknown))}."
            raise ValueError(msg)


__all__ = [
    "EVENT_RULES",
    "RULE_OF_EVENT",
    "EventDraft",
    "EventRule",
    "EventType",
    "ItemFacts",
]
