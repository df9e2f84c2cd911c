"""The one table of event types and their payloads (design 4).

A payload holds only fields that we author; foreign content lives in the event's body.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind
from ctxengine.engine.trust.levels import Trust


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
    YIELD_APPLIED = "context.yield.applied"
    WINDOW_LEARNED = "context.window.learned"
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
    WORKING_STATE_UPDATED = "context.working_state.updated"
    COMPACTED = "context.compacted"
    COMPACTION_UNDONE = "context.compaction.undone"
    COMPACTION_REFUSED = "context.compaction.refused"
    PRESENTATION_SET = "context.presentation.set"
    FACTS_OFFERED = "context.facts.offered"
    BUDGET_PRESSURE = "context.budget.pressure"
    BUDGET_EXCEEDED = "context.budget.exceeded"
    CACHE_SHORTFALL = "context.cache.shortfall"


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


EVENT_RULES: tuple[EventRule, ...] = (
    EventRule(
        EventType.SESSION_OPENED,
        "A session was opened.",
        (
            "engine",
            "provider",
            "model",
            "agent",
            "agent_version",
            "principal",
            "occasion",
            "parent_run",
        ),
    ),
    EventRule(
        EventType.SESSION_IMPORTED,
        "A foreign transcript became this session.",
        ("file_sha256", "format", "key", "items_in", "parent_session"),
    ),
    EventRule(EventType.SESSION_ENDED, "No further run may start.", ("outcome",)),
    EventRule(
        EventType.PLAN_CREATED,
        "Region A was resolved and pinned.",
        (
            "epoch",
            "prefix_sha256",
            "wire_prefix_sha256",
            "prefix_tokens",
            "policy",
            "builder",
            "skipped_tool_names",
            "warnings",
        ),
    ),
    EventRule(
        EventType.EPOCH_ROTATED,
        "Region A was rebuilt, with the reasons.",
        (
            "epoch",
            "reasons",
            "note",
            "prefix_sha256",
            "wire_prefix_sha256",
            "prefix_tokens",
            "recached_tokens",
            "price_usd",
            "price_source",
            "builder",
            "policy",
            "persona_revision",
            "skipped_tool_names",
            "removed_tool_names",
            "warnings",
            "opaque_dropped",
        ),
        act=True,
    ),
    EventRule(
        EventType.USER_MESSAGE,
        "A user's message: opens a run.",
        ("format", "run_number", "scopes", "timezone", "surface", "at", "extra"),
        content=True,
    ),
    EventRule(
        EventType.INPUT_RECEIVED,
        "User-role content that reached an open run.",
        ("format", "retain", "source", "at", "extra"),
        content=True,
    ),
    EventRule(
        EventType.SUMMARY_IMPORTED,
        "A summary or compaction block found in a foreign transcript.",
        ("format", "at", "extra"),
        content=True,
    ),
    EventRule(
        EventType.REQUEST_STARTED,
        "A request was built and handed out.",
        (
            "request",
            "step",
            "epoch",
            "prefix_sha256",
            "request_sha256",
            "tokens",
            "reconstructed",
            "reasoning_dropped",
        ),
    ),
    EventRule(
        EventType.RESPONSE_COMPLETED,
        "What the model said, opaque reasoning taken out.",
        (
            "format",
            "request",
            "stop_reason",
            "usage",
            "latency_ms",
            "response_model",
            "opaque",
            "reasoning_dropped",
            "unwrapped",
            "found_tools",
            "arguments_invalid",
            "at",
            "extra",
        ),
        content=True,
    ),
    EventRule(
        EventType.RESPONSE_FAILED,
        "The provider refused or failed a request.",
        ("request", "status", "code", "next"),
    ),
    EventRule(
        EventType.TOOL_RESULT,
        "One tool result.",
        (
            "format",
            "answers",
            "is_error",
            "synthetic",
            "retain",
            "operation_id",
            "source",
            "at",
            "extra",
        ),
        content=True,
    ),
    EventRule(
        EventType.CALL_REFUSED,
        "A call was not executed; a structured answer went back.",
        ("answers", "code"),
    ),
    EventRule(EventType.RUN_ENDED, "A run ended.", ("outcome", "opaque_dropped")),
    EventRule(
        EventType.YIELD_APPLIED,
        "Bytes already sent were given up, down to the low-water mark.",
        (
            "class",
            "floor_sequence",
            "model",
            "plan_total",
            "policy",
            "before",
            "after",
            "items",
            "forced_by",
            "verdict",
            "reasoning_dropped",
        ),
    ),
    EventRule(
        EventType.WINDOW_LEARNED,
        "A provider refused a request as too long; the run is measured anew with what it said.",
        ("request", "rejected", "maximum", "factor_millionths", "taught"),
        act=True,
    ),
    EventRule(
        EventType.MEMORY_READ,
        "Knowledge, recall and correction lines read once for one step.",
        ("format", "knowledge", "recall", "corrections", "content_sequence"),
    ),
    EventRule(
        EventType.FRESH_SENT,
        "A block of fresh rows that stays where it was first sent, until its run ends.",
        (
            "format",
            "before",
            "rows",
            "tokens",
            "by_row",
            "by_trust",
            "digest",
            "content_sequence",
        ),
    ),
    EventRule(
        EventType.SNAPSHOT_USED,
        "A run's request is about to carry the session's memory snapshot.",
        ("trace", "watermark", "epoch", "items"),
    ),
    EventRule(
        EventType.SKILL_OFFERED,
        "A skill of the catalog, with its body.",
        ("format", "name", "trust", "tokens", "counter"),
    ),
    EventRule(
        EventType.SKILL_LOADED,
        "The model loaded a skill: its body stands in every later request.",
        ("format", "name", "trust", "tokens", "counter", "offered"),
        act=True,
    ),
    EventRule(
        EventType.TOOL_REVOKED,
        "Calls of a tool are refused from now on; it stays advertised.",
        ("name", "note"),
        act=True,
    ),
    EventRule(
        EventType.TOOL_RESTORED,
        "Calls of a revoked tool are allowed again.",
        ("name", "note"),
        act=True,
    ),
    EventRule(
        EventType.AUTHORITY_CHANGED,
        "The scopes granted to the session changed.",
        ("granted", "reduced", "scope_hashes", "resolves"),
        act=True,
    ),
    EventRule(
        EventType.SESSION_CONFIGURED,
        "Another configuration was chosen; it applies at the next run's start.",
        ("format", "fields"),
    ),
    EventRule(
        EventType.PERSON_ERASED,
        "Content of a person was erased from this session.",
        ("bodies", "snapshot", "kept", "runs", "erasure"),
        act=True,
    ),
    EventRule(
        EventType.WORKING_STATE_UPDATED,
        "A typed transition of the working state; its texts are the body.",
        ("writer", "changed", "entries", "evicted", "keyframe", "causes"),
        act=True,
    ),
    EventRule(
        EventType.COMPACTED,
        "A summary took the place of an exact range of history, or of summaries before it.",
        (
            "kind",
            "first_sequence",
            "replaced_through_sequence",
            "depth",
            "merges",
            "came_with",
            "turns",
            "units",
            "sources",
            "elided",
            "constraints",
            "tokens_before",
            "tokens_after",
            "compactor",
            "detector",
            "masked",
            "source_sha256",
            "plan_total",
            "model",
            "policy",
            "forced_by",
            "reason",
            "verdict",
            "reasoning_dropped",
            "writer",
        ),
        act=True,
    ),
    EventRule(
        EventType.COMPACTION_UNDONE,
        "A compaction no longer counts; what it replaced is history again.",
        ("compaction", "came_with", "note", "verdict", "reasoning_dropped"),
        act=True,
    ),
    EventRule(
        EventType.COMPACTION_REFUSED,
        "No summary was installed, and why.",
        (
            "reason",
            "remedy",
            "first_sequence",
            "through_sequence",
            "tokens_before",
            "content_sequence",
            "forced_by",
            "verdict",
            "asked",
        ),
    ),
    EventRule(
        EventType.PRESENTATION_SET,
        "An operator pinned, folded, excluded or released part of the history.",
        ("scope", "sequences", "ordinal", "form", "note", "verdict", "reasoning_dropped"),
        act=True,
    ),
    EventRule(
        EventType.FACTS_OFFERED,
        "Facts that survived the session, offered as candidates to memory formation.",
        ("facts", "withheld", "principal", "authority"),
    ),
    EventRule(
        EventType.BUDGET_PRESSURE,
        "A yield step ran before a request.",
        ("request", "fits", "steps", "legacy_tool_excerpts"),
    ),
    EventRule(
        EventType.BUDGET_EXCEEDED,
        "What may never yield does not fit.",
        ("class", "needed", "available", "content_sequence"),
    ),
    EventRule(
        EventType.CACHE_SHORTFALL,
        "The provider read less from its cache than was predicted.",
        (
            "request",
            "expected_read",
            "reported_read",
            "tolerance",
            "basis",
            "cause",
            "provider_reason",
            "provider_missed",
            "disagreement",
        ),
    ),
)

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
