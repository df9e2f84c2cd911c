"""What the templates of operators' pages receive: plans, working state, compactions and the acts on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.layout import Row
from ctxengine.engine.working_state.carry import CarryRule
from ctxengine.engine.working_state.limits import Cap
from ctxengine.ledger.models import Job
from ctxengine.ledger.queries.epochs import EpochAct
from ctxengine.ledger.queries.events import EventLine
from ctxengine.ledger.queries.paging import Page
from ctxengine.ledger.queries.plans import EpochLine, PlanDetail, PlannedTool
from ctxengine.service.undo_compaction import UndoBar
from inspector.contexts import SessionFrame, Shell
from inspector.epochdiff import PlanComparison


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a preview."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ActPage:
    """An act before it is done: what it changes and costs, then a reason, then the button."""

    shell: Shell
    frame: SessionFrame
    heading: str
    explains: str
    figures: tuple[Figure, ...]
    blocked: str
    """Why there is nothing to confirm; empty when there is."""
    hidden: tuple[tuple[str, str], ...]
    """Fields of the form that carry what was previewed."""
    button: str
    back: str
    allowed: bool
    """Whether the person may act; otherwise this is only a preview."""
    problem: str = ""
    """Why the act was refused just now."""
    reason: str = ""
    comparison: PlanComparison | None = None
    content: str = ""
    """Text that the act is about."""
    choices: dict[str, Any] | None = None
    """What the form above the preview offers; None where there is nothing to choose."""


@dataclass(frozen=True, slots=True)
class EpochView:
    """One epoch with the act that began it."""

    line: EpochLine
    act: EpochAct | None
    """None for the first one."""
    words: tuple[str, ...]
    """What the reasons mean."""


@dataclass(frozen=True, slots=True)
class EpochsPage:
    """P7: the epochs of a session, newest first."""

    shell: Shell
    frame: SessionFrame
    page: Page[EpochView]
    total: int
    recached_tokens: int
    price_usd: str | None
    """Sum of the known prices; None where none is known."""
    unpriced: int
    """Rotations that re-cached tokens at an unknown price."""
    upcoming: tuple[Figure, ...]
    """What the next run's start would rotate; empty when it keeps the plan."""
    upcoming_reasons: tuple[str, ...]
    upcoming_problem: str
    made: int | None
    """Epoch that was begun just now, from this page."""
    may_act: bool


@dataclass(frozen=True, slots=True)
class EpochDiffPage:
    """Two epochs side by side."""

    shell: Shell
    frame: SessionFrame
    comparison: PlanComparison | None
    """None for a session with a single epoch."""
    epochs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RosterTool:
    """One tool of the roster, with what was done to it."""

    tool: PlannedTool
    revoked: bool
    act: str
    """`revoke`, `restore`, or empty where neither applies."""


@dataclass(frozen=True, slots=True)
class RosterGroup:
    """One group of the roster."""

    name: str
    meaning: str
    tools: tuple[RosterTool, ...]
    tokens: int
    """Of the definitions, whether they are sent or not."""


@dataclass(frozen=True, slots=True)
class PlanPage:
    """The pinned plan of an epoch, and the list of epochs."""

    shell: Shell
    frame: SessionFrame
    epochs: tuple[EpochLine, ...]
    plan: PlanDetail | None
    texts: tuple[tuple[Row, str, int | None], ...]
    """Rows of region A with their text and, where known, tokens."""
    groups: tuple[RosterGroup, ...]
    policy: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    """Persona, snapshot, authority and environment in words."""
    done: str
    """`revoked` or `restored`, right after that was done to `tool`; otherwise empty."""
    tool: str


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One entry of the working state."""

    field: str
    id: str
    text: str
    status: str
    trust: str
    sequence: int
    """Event that wrote it last."""
    sources: tuple[int, ...]
    """Events it rests on."""
    origin: str
    """Who claims it; empty for what the session concluded itself."""
    detail: str
    liftable: bool
    established_at: str = ""
    """When a fact was established, as recorded; empty where nobody said."""


@dataclass(frozen=True, slots=True)
class StateField:
    """One kind of entry with its rules."""

    title: str
    rule: CarryRule
    cap: Cap | None
    entries: tuple[StateEntry, ...]
    counted: int
    """Entries that count towards the cap."""


@dataclass(frozen=True, slots=True)
class StatePage:
    """P3: the working state."""

    shell: Shell
    frame: SessionFrame
    fields: tuple[StateField, ...]
    tokens: int
    cap_tokens: int
    bar: int
    """Width of the used part of the bar, of 160."""
    event: int | None
    erased: bool
    trust: str
    """Lowest level among the entries."""
    changes: tuple[EventLine, ...]
    may_act: bool
    done: str


@dataclass(frozen=True, slots=True)
class SpanLine:
    """One elided item of a summary."""

    item: str
    kind: str
    trust: str
    length: int
    event: int


@dataclass(frozen=True, slots=True)
class WriterView:
    """Who wrote a summary, where a model did, and what that cost."""

    model: str
    """`provider/model`."""
    chosen: str
    """`cheapest`, `session` or `named`."""
    prompt: str
    """Version of the prompt file."""
    window: int
    """The model's window (tokens)."""
    session_window: int
    fragments: int
    """Pieces in which the input was read."""
    job: UUID
    calls: int
    prompt_tokens: int
    output_tokens: int
    usd: str | None
    """Price of all calls, failed attempts included; None where no price is known."""


@dataclass(frozen=True, slots=True)
class CompactionView:
    """One compaction."""

    event: int
    at: Any
    state: str
    first: int
    through: int
    tokens_before: int
    tokens_after: int
    turns: int
    units: int
    depth: int
    merges: tuple[int, ...]
    reason: str
    forced_by: str
    verdict: Any
    """`NetCost`, or None where none was made."""
    kind: str
    compactor: str
    detector: str
    masked: int
    source_sha256: str
    spans: int
    writer: WriterView | None = None
    """None where no model was needed."""
    packet: bool = False
    """Whether it covers closed turns of a working set, as a cache: no cut goes with it."""

    reasoning_dropped: int = 0
    bar: UndoBar | None = None
    """Why it cannot be undone now."""

    @property
    def by_job(self) -> bool:
        """Whether a job wrote it on nobody's behalf: for a step that did not fit, or ahead of a packet's next growth."""
        return self.writer is not None and self.forced_by.startswith("job:")

    @property
    def saved(self) -> int:
        """Fewer tokens in each later request."""
        return self.tokens_before - self.tokens_after

    @property
    def request(self) -> UUID | None:
        """The request that did not fit; None where a person asked."""
        try:
            return UUID(self.forced_by)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class CompactionDetail:
    """What one compaction made."""

    line: CompactionView
    summary: str | None
    """None once erased."""
    constraints: tuple[str, ...]
    sources: int
    spans: tuple[SpanLine, ...]
    more_spans: int


@dataclass(frozen=True, slots=True)
class TileLine:
    """One stretch of the history before the cut."""

    first: int
    through: int
    told_by: str
    """`summary`, `omission`, `cards` or `handoff`."""
    event: int | None
    turns: int
    tokens: int


@dataclass(frozen=True, slots=True)
class MarkLine:
    """Something that stands as an operator wants it."""

    target: str
    form: str
    item: str
    """Item to link to."""
    scope: str


@dataclass(frozen=True, slots=True)
class CompactionsPage:
    """P8: what stands for history, who asked for it, and the way back."""

    shell: Shell
    frame: SessionFrame
    page: Page[CompactionView]
    detail: CompactionDetail | None
    tiles: tuple[TileLine, ...]
    refusals: tuple[EventLine, ...]
    marks: tuple[MarkLine, ...]
    jobs: tuple[Job, ...]
    """Summaries that a model is to write or is writing."""
    may_act: bool
    done: str
