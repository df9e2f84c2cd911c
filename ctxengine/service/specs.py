"""What the doors hand to the use cases, and what they get back.

Fields that hold foreign JSON (`*_raw`) are the exact text as received: doors cut them out of the request body and never
re-serialise them (design 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from ctxengine.engine.items import ContentFormat
from ctxengine.engine.legs.leg import MOST_LEGS
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.card_specs import CardSpec
from ctxengine.service.leg_specs import AssembledLeg
from ctxengine.service.spec_base import LONGEST_CALL_ID, Spec, ViewedText


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, and for which tenant. Every use case takes one and touches no other tenant."""

    tenant_id: UUID
    label: str
    """`key:PREFIX`, `user:NAME` or `system`."""
    idempotency_key: str = ""
    scopes: frozenset[str] = frozenset()
    """Scopes of the key that acts; empty for people, whose doors ask about roles, and for the system."""


class ModelRef(Spec):
    """The model a session is bound to."""

    provider: Annotated[str, StringConstraints(strip_whitespace=True, max_length=48)]
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    """Without blanks around it: with one it would be another model, unknown to every table and to the provider."""
    window: int | None = Field(default=None, ge=1024, le=100_000_000)
    """Context window in tokens, where the caller knows better than the model table."""
    max_output: int | None = Field(default=None, ge=1, le=10_000_000)


class AgentRef(Spec):
    """A versioned agent; (tenant, name, version) never changes."""

    name: str = Field(min_length=1, max_length=200)
    version: str = Field(min_length=1, max_length=100)
    instructions: str = ""


SideEffect = Literal[
    "none", "workspace_read", "network_read", "workspace_write", "network_write", "world"
]


class ToolSpec(Spec):
    """One tool as the runtime declares it."""

    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    input_schema_raw: str = '{"type":"object","properties":{}}'
    """JSON text of the schema, as received."""
    output_schema_raw: str | None = None
    required_scopes: tuple[str, ...] = ()
    side_effect: SideEffect = "world"
    result_trust: Trust = Trust.EXTERNAL_UNTRUSTED
    server: str = ""
    serves: tuple[str, ...] = ()
    always_loaded: bool = False
    observes: tuple[str, ...] = ()
    deferred: bool = False
    required: bool = False
    model_visible: bool = True
    presentation: str | None = Field(default=None, min_length=1, max_length=100)
    card: CardSpec | None = None
    synthesised: bool = False


class PolicySpec(Spec):
    """Figures of the budget policy that a session overrides. Caps are by class name."""

    policy_cap: int | None = Field(default=None, ge=1024)
    reserve: int | None = Field(default=None, ge=1)
    margin: float | None = Field(default=None, ge=0, lt=0.9)
    low_water: float | None = Field(default=None, gt=0, le=1)
    history_floor: int | None = Field(default=None, ge=0)
    inline_maximum_bytes: int | None = Field(default=None, ge=1_000, le=1_000_000_000)
    inline_maximum_chars: int | None = Field(default=None, ge=1_000, le=1_000_000_000)
    compaction: Literal["deterministic", "model", "none"] | None = None
    summary_model: str | None = Field(default=None, min_length=1, max_length=250)
    summary_tokens: int | None = Field(default=None, ge=200, le=100_000)
    expected_steps: int | None = Field(default=None, ge=1, le=100_000)
    deferral: Literal["index", "native"] | None = None
    offer_facts: bool | None = None
    surface: Literal["plan", "reading"] | None = None
    promotion: Literal["body", "definitions"] | None = None
    guards: Literal["auto", "on", "off"] | None = None
    summarize_trigger: float | None = Field(default=None, gt=0, le=1)
    summary_max_output_tokens: int | None = Field(default=None, ge=256, le=1_000_000)
    native_compaction_max_output_tokens: int | None = Field(default=None, ge=256, le=1_000_000)
    summary_source_tokens: int | None = Field(default=None, ge=1_000, le=100_000_000)
    retained_turns: int | None = Field(default=None, ge=0, le=1_000)
    archive_recovery: bool | None = None
    durable_checkpoints: Literal[True] | None = None
    """Checkpoints of a session are always durable; a caller may say so."""
    native_contract: Literal["on_demand", "inline"] | None = None
    native_input: Literal["whole", "elided"] | None = None
    caps: dict[str, int] = Field(default_factory=dict)
    history_ttl: Literal["5m", "1h"] | None = None
    """Life asked for the history's cache entries. No figure of the budget: it applies at once and rotates no epoch."""

    @property
    def states_budget(self) -> bool:
        """Whether it says anything about the budget; an empty one does: the default."""
        given = self.model_dump(exclude_none=True, exclude={"history_ttl"})
        return self.history_ttl is None or given != {"caps": {}}


class PrincipalSpec(Spec):
    """On whose behalf the agent works."""

    id: str = Field(min_length=1, max_length=200)
    scopes: tuple[str, ...] | None = None
    """Scopes granted; None when the caller states no authority, and then no tool is withheld for want of a scope."""


class SnapshotSpec(Spec):
    """The session-open memory snapshot."""

    trace_id: str = Field(default="", max_length=300)
    watermark: int = 0
    items: tuple[str, ...] = ()


class SkillSpec(Spec):
    """One skill of the catalog."""

    name: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=2_000)
    body: str = Field(min_length=1)
    trust: Trust = Trust.TRUSTED_CONFIGURATION
    """Who vouches for its text: below configuration trust it is shown as data, in an envelope."""


class OpenSession(Spec):
    """`POST sessions`."""

    engine: Literal["suffix", "working_set", "boundary"] = "suffix"
    model: ModelRef
    agent: AgentRef
    tools: tuple[ToolSpec, ...] = ()
    title: str = Field(default="", max_length=300)
    principal: PrincipalSpec | None = None
    occasion: Literal["interactive", "scheduled", "child"] = "interactive"
    parent_run: UUID | None = None
    persona: tuple[str, ...] | None = None
    """Entries given with the session; None pins the principal's persona document, where there is one."""
    skills: tuple[SkillSpec, ...] = ()
    memory: Literal["runtime", "embedded"] = "runtime"
    """Who reads recall lines: the runtime alone, or the embedded source as well."""
    snapshot: SnapshotSpec | None = None
    policy: PolicySpec | None = None
    environment: dict[str, str] = Field(default_factory=dict)


class Content(Spec):
    """Content as received: raw text and how to read it."""

    format: ContentFormat = ContentFormat.TEXT
    raw: str


class ReadingSpec(Spec):
    """A runtime's own reading of the directive (design 7.11)."""

    act: str = Field(default="answer", min_length=1, max_length=60)
    domains: tuple[str, ...] = Field(default=(), max_length=40)
    entities: tuple[str, ...] = Field(default=(), max_length=60)
    live_data: bool = False
    uncertain: bool = False


class StartRun(Spec):
    """`POST sessions/{id}/runs`."""

    message: Content
    reading: ReadingSpec | None = None
    scopes: tuple[str, ...] | None = None
    now: datetime | None = None
    timezone: str | None = None
    surface: str | None = Field(default=None, max_length=100)


class MemoryLine(Spec):
    """A recall, knowledge or correction line the runtime supplies for a step."""

    text: str
    id: str = ""
    score: float | None = None


LONGEST_WAIT_S = 300
"""Seconds that one call may wait for a summary at most."""


class Assemble(Spec):
    """`POST runs/{id}/assemble`."""

    recall: tuple[MemoryLine, ...] = ()
    corrections: tuple[MemoryLine, ...] = ()
    knowledge: tuple[MemoryLine, ...] = ()
    now: datetime | None = None
    timezone: str | None = None
    base_request_id: UUID | None = None
    legs: tuple[ModelRef, ...] | None = Field(default=None, max_length=MOST_LEGS)
    """Further models to build the request for; None: those of the run's request before."""
    compaction: Literal["job", "wait"] = "job"
    """Where a model must summarise first: say so at once, or wait for it."""
    wait_s: float = Field(default=30.0, ge=0, le=LONGEST_WAIT_S)
    """Longest wait (seconds)."""


class TakeResponse(Spec):
    """`POST runs/{id}/responses`: exactly one of `response_raw` and `error`."""

    request_id: UUID | None = None
    response_raw: str | None = None
    usage_raw: str | None = None
    latency_ms: int | None = Field(default=None, ge=0)
    first_token_ms: int | None = Field(default=None, ge=0)
    """From sending to the first token, where the runtime streams."""
    error_status: int | None = None
    error_body_raw: str | None = None
    leg: int | None = Field(default=None, ge=0, lt=MOST_LEGS)
    """Which of the request's legs it came from; None: the session's own model."""


class ToolResult(Spec):
    """One result of a tool call."""

    call_id: ViewedText = Field(min_length=1, max_length=LONGEST_CALL_ID)
    """The id the request showed the model (or the one the provider sent)."""
    content: Content | None = None
    """What the tool gave back; left out where `child_run` is given."""
    child_run: UUID | None = None
    """A finished child run whose answer is the result, with the trust it derives."""
    is_error: bool = False
    trust: Trust | None = None
    retain: Literal["objective", "reminder", "hook", "operation"] | None = None
    operation_id: str | None = None


class TakeToolResults(Spec):
    """`POST runs/{id}/tool-results`."""

    results: tuple[ToolResult, ...] = Field(min_length=1)


class TakeInput(Spec):
    """`POST runs/{id}/input`."""

    message: Content
    retain: Literal["objective", "reminder", "hook", "operation"] | None = None


class ChangeConstraints(Spec):
    """`PATCH sessions/{id}/working-state`: what the user alone may change."""

    remove_constraints: tuple[str, ...] = ()
    """Ids such as `c1`."""
    add_constraints: tuple[str, ...] = ()
    principal: str = Field(default="", max_length=200)
    """On whose behalf, when a runtime asks."""
    note: str = Field(default="", max_length=2000)


class Compact(Spec):
    """`POST sessions/{id}/compactions`: shrink history now."""

    through: int | None = Field(default=None, ge=1)
    """Last event to be replaced; None: down to the low-water mark."""
    merge: bool = False
    """Merge the summaries there are instead of making one."""
    force: bool = True
    """Do it even where the net-cost test says that it does not pay."""
    preview: bool = False
    """Say what would happen and what it would cost; change nothing."""
    summariser: Literal["deterministic", "model"] = "deterministic"
    """`model`: a job lets a model write it; a preview is of the one that needs none."""
    note: str = Field(default="", max_length=2000)


class UndoCompaction(Spec):
    """`POST sessions/{id}/compactions/{event}/undo`."""

    note: str = Field(default="", max_length=2000)


class Present(Spec):
    """`POST sessions/{id}/presentation`: how part of the history is to stand in requests."""

    target: str = Field(max_length=40)
    """An event number such as `12`, or an item id such as `12.0`."""
    form: Literal["pinned", "folded", "excluded", "automatic"]
    scope: Literal["item", "unit", "turn"] = "unit"
    preview: bool = False
    note: str = Field(default="", max_length=2000)


class ResetSession(Spec):
    """`POST sessions/{id}/reset`."""

    handoff: str | None = None
    """What the session goes on from; None takes it from the session itself."""
    note: str = Field(default="", max_length=1_000)


class EndRun(Spec):
    """`POST runs/{id}/end`."""

    outcome: Literal["completed", "failed", "interrupted", "cancelled"] = "completed"


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as REST shows it."""

    epoch: int
    prefix_sha256: str
    wire_prefix_sha256: str
    prefix_tokens: int
    tokens_by_class: dict[str, Any]
    tool_names: list[str]
    skipped_tool_names: list[str]
    warnings: list[str]
    reasons: list[str]
    policy: dict[str, Any]
    builder_version: str
    deferred_tool_names: list[str] = field(default_factory=list)
    skill_names: list[str] = field(default_factory=list)
    persona_revision: int | None = None
    """Revision of the persona document pinned; null when its entries came with the session."""
    recached_tokens: int = 0
    """What this epoch made the provider cache anew."""
    price_usd: str | None = None
    """The price of that, where the model's prices are known."""


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """Answer of open_session."""

    id: UUID
    plan: PlanView


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Answer of start_run."""

    id: UUID
    number: int
    seed_event_sequence: int


@dataclass(frozen=True, slots=True)
class Assembled:
    """Answer of assemble. `body` is the provider request as ready JSON bytes."""

    request_id: UUID
    body: bytes
    manifest: dict[str, Any]
    budget: dict[str, Any]
    cache: dict[str, Any]
    prefix_sha256: str
    wire_prefix_sha256: str
    request_sha256: str
    delta: bytes | None = None
    """Ready JSON of the delta form, where a known base request was named."""
    legs: tuple[AssembledLeg, ...] = ()


@dataclass(frozen=True, slots=True)
class CallAction:
    """What the runtime must do with one call of the answer."""

    id: str
    name: str
    action: Literal["execute", "answered", "refused"]
    arguments_raw: str = "{}"
    result: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseTaken:
    """Answer of take_response; for an error report `next` is `reassemble` or `fail`."""

    next: Literal["tools", "finish", "redo", "reassemble", "fail"]
    calls: list[CallAction] = field(default_factory=list)
    nudge: str | None = None
    """What the platform told the model beside its response; it stands in the next request."""
    code: str | None = None
    statement: str | None = None
    """What ends the turn in place of the model's answer; show it instead."""
    quoted: list[str] = field(default_factory=list)
    """Items the statement quotes, by id."""


@dataclass(frozen=True, slots=True)
class ResultsTaken:
    """Answer of take_tool_results: `assemble`, or `tools` while calls are open."""

    next: Literal["assemble", "tools"]
    open_calls: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Replay:
    """Answer of replay: verdict is `identical`, `identical_except`, `retired_builder` or `different`."""

    request_id: UUID
    verdict: str
    except_: list[str]
    recorded_sha256: str
    rebuilt_sha256: str
    first_difference: str | None = None

    @property
    def identical(self) -> bool:
        """Whether the request rebuilds to its hash (opaque and erased blocks by their recorded digests)."""
        return self.verdict in {"identical", "identical_except"}


class ServiceError(Exception):
    """A refusal with a stable code and an HTTP status."""

    def __init__(self, code: str, status: int, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status
        self.detail = detail
        self.extra = extra
