"""What each page's template receives: one frozen dataclass for each page (style 2.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ctxengine.engine.layout import Row
from ctxengine.engine.manifest import RowTotal, Span
from ctxengine.ledger.queries.events import EventPage
from ctxengine.ledger.queries.imports import ImportDetail, ImportLine
from ctxengine.ledger.queries.items import ItemContent, ItemLine
from ctxengine.ledger.queries.lookup import Found
from ctxengine.ledger.queries.overview import Counts, EstimatorError, Promise, WorstSession
from ctxengine.ledger.queries.paging import Page
from ctxengine.ledger.queries.plans import EpochLine, PlanDetail, PlannedTool
from ctxengine.ledger.queries.request import Neighbours, RequestDetail
from ctxengine.ledger.queries.requests import RequestLine
from ctxengine.ledger.queries.session import RunPage, SessionHead, Strip
from ctxengine.ledger.queries.sessions import Facets, SessionLine
from ctxengine.ledger.queries.sums import Bill
from ctxengine.service.import_transcript import ImportOutcome
from ctxengine.service.specs import Replay
from inspector.access import Viewer
from inspector.bodydiff import PartChange
from inspector.itemview import PartView
from inspector.jsonview import JsonPart
from inspector.ruler import Ruler, Segment
from inspector.strip import StripView


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the path to a page."""

    label: str
    href: str = ""
    """Empty for the page itself."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab; each has its own address."""

    label: str
    href: str
    on: bool


@dataclass(frozen=True, slots=True)
class Shell:
    """What surrounds every page."""

    viewer: Viewer
    title: str
    active: str
    """Name of the navigation entry that is lit."""
    crumbs: tuple[Crumb, ...] = ()
    keys: Mapping[str, str] | None = None
    """Addresses for the page's own keys: `next`, `previous`, `diff`, `raw`."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure of the overview with its verdict in words."""

    title: str
    figure: str
    of: str
    state: str
    """`ok`, `warn`, `bad` or `plain`."""
    verdict: str
    detail: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """P1: is the fleet healthy?"""

    shell: Shell
    window: str
    windows: tuple[str, ...]
    since: datetime
    tiles: tuple[Tile, ...]
    counts: Counts
    bill: Bill
    estimator: EstimatorError | None
    promises: tuple[Promise, ...]
    broken: int
    worst: tuple[WorstSession, ...]


@dataclass(frozen=True, slots=True)
class SessionsPage:
    """P2: sessions, searched and filtered; the address holds the whole state."""

    shell: Shell
    query: str
    problem: str
    """Why the query cannot be read; empty when it can."""
    chosen: dict[str, str]
    """Selected value of each filter."""
    facets: Facets
    page: Page[SessionLine]
    filtered: bool
    address: str
    """The query string of this list, for the twins and the detail pages."""


@dataclass(frozen=True, slots=True)
class RequestsPage:
    """P4: requests across sessions."""

    shell: Shell
    query: str
    problem: str
    chosen: dict[str, str]
    models: tuple[str, ...]
    statuses: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    """Budget classes that can yield, with their titles."""
    page: Page[RequestLine]
    filtered: bool
    address: str


@dataclass(frozen=True, slots=True)
class SessionFrame:
    """What every tab of a session shows above its pane."""

    head: SessionHead
    tabs: tuple[Tab, ...]
    parent: tuple[UUID, int] | None
    """Session and run number that started this one."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """P3: strip, runs and what was billed."""

    shell: Shell
    frame: SessionFrame
    strip: Strip
    view: StripView
    older: int | None
    """Number of the first request of the window before this one."""
    newer: int | None
    runs: RunPage
    bill: Bill
    children: tuple[tuple[UUID, str], ...]
    recent: EventPage


@dataclass(frozen=True, slots=True)
class EventsPage:
    """The events of a session with their chain."""

    shell: Shell
    frame: SessionFrame
    events: EventPage
    types: tuple[str, ...]
    chosen: str
    meanings: dict[str, str]
    opened: int | None
    """Sequence asked for by the address; it is unfolded."""


@dataclass(frozen=True, slots=True)
class PlanPage:
    """The pinned plan of an epoch, and the list of epochs."""

    shell: Shell
    frame: SessionFrame
    epochs: tuple[EpochLine, ...]
    plan: PlanDetail | None
    texts: tuple[tuple[Row, str, int | None], ...]
    """Rows of region A with their text and, where known, tokens."""
    groups: tuple[tuple[str, str, tuple[PlannedTool, ...]], ...]
    """Tool groups: name, what it means, tools."""
    policy: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """What every tab of a request shows around its pane."""

    request: RequestDetail
    session: SessionHead
    near: Neighbours
    ruler: Ruler
    tabs: tuple[Tab, ...]
    ladder: tuple[tuple[str, str, str, int], ...]
    """Yield steps in order: class title, outcome, words, tokens given up."""
    cut: str
    budget: tuple[tuple[str, str, int | None], ...]
    """Arithmetic: name, how it comes about, tokens."""
    unattributed: int | None
    """Billed prompt minus what the rows explain; None where nothing was reported for our bytes."""
    accounted: int | None
    markers: tuple[tuple[str, str, str], ...]
    """Cache markers: name, what it closes, life."""


@dataclass(frozen=True, slots=True)
class RowLine:
    """One of the fifteen rows."""

    row: Row
    total: RowTotal
    trusts: tuple[str, ...]
    cap: int | None
    bar: int | None
    """Width of the used part of the bar, of 90; None without a cap."""
    near_cap: bool
    words: tuple[str, ...]
    """Why it looks as it does."""
    source: str
    """`≈` for estimates."""


@dataclass(frozen=True, slots=True)
class RowsPage:
    """P5, first tab: the fifteen rows."""

    shell: Shell
    frame: RequestFrame
    region_a: tuple[RowLine, ...]
    region_b: tuple[RowLine, ...]
    sum_a: int
    sum_b: int
    out: tuple[tuple[Span, str], ...]
    """Left-out spans with what they lost to."""


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item as it stands in the request."""

    line: ItemLine
    row: int
    form: str
    form_words: str
    reason: str
    tokens: int
    """Tokens in this form; what it would have cost when left out."""


@dataclass(frozen=True, slots=True)
class SpanView:
    """One span of the manifest."""

    place: int
    """Place in the manifest, from 0: what `?span=` names."""
    span: Span
    row: Row
    form_words: str
    reason: str


@dataclass(frozen=True, slots=True)
class ItemsPage:
    """P5: items of the request, left-out ones included."""

    shell: Shell
    frame: RequestFrame
    spans: tuple[SpanView, ...]
    items: tuple[ItemView, ...]
    older: str
    chosen: dict[str, str]
    kinds: tuple[str, ...]
    trusts: tuple[str, ...]
    forms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One part of the provider's request body."""

    part: JsonPart
    html: str
    """Coloured text; empty when it is loaded on opening."""
    open: bool
    """Whether it is unfolded at first: only what takes a few lines."""


@dataclass(frozen=True, slots=True)
class JsonPage:
    """P5: the provider JSON, rebuilt for this view."""

    shell: Shell
    frame: RequestFrame
    lines: tuple[JsonLine, ...]
    total_parts: int
    first: int
    """Place of the first part shown, from 0."""
    older: int | None
    newer: int | None
    only: str
    """Path of the single part shown; empty for all."""
    gone: str
    """Why the body cannot be shown; empty when it can."""
    length: int
    markers_hidden: int
    """Hidden or steering characters that the text draws."""


@dataclass(frozen=True, slots=True)
class JsonFragment:
    """One part of the body, on its own."""

    html: str


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One row of two requests."""

    row: Row
    before: int
    after: int
    changed: bool

    @property
    def difference(self) -> int:
        """After minus before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two requests side by side."""

    before: RequestDetail
    after: RequestDetail
    same_bytes: int | None
    """None when the bytes of one side are no longer kept."""
    same_tokens: int
    first_byte: int | None
    first_row: Row | None
    first_item: str
    event_sequence: int | None
    event_type: str
    cause: str
    detail: str
    gone: str
    """Why the bodies cannot be compared part by part; empty when they can."""
    appended_only: bool
    """Whether everything that was sent before is still there, but for the fresh rows."""
    moved: bool
    """Whether fresh rows gave way to new items, so that more than the end of the body changed."""
    rows: tuple[ChangeRow, ...]
    parts: tuple[PartChange, ...]
    before_track: tuple[Segment, ...]
    after_track: tuple[Segment, ...]
    change_x: str
    """Where the first changed token lies on the track."""
    identical_session: bool
    equal_rows: int
    difference: int
    """Tokens of the later request minus those of the earlier one."""


@dataclass(frozen=True, slots=True)
class ChangePage:
    """P5: what changed since the previous request."""

    shell: Shell
    frame: RequestFrame
    comparison: Comparison | None
    """None for the first request of a session."""


@dataclass(frozen=True, slots=True)
class DiffPage:
    """P6: any two requests."""

    shell: Shell
    comparison: Comparison
    before_title: str
    after_title: str
    earlier: tuple[tuple[UUID, str], ...]


@dataclass(frozen=True, slots=True)
class RequestEventsPage:
    """P5: events since the previous request."""

    shell: Shell
    frame: RequestFrame
    events: EventPage
    meanings: dict[str, str]


@dataclass(frozen=True, slots=True)
class ProofPage:
    """The answer of a replay."""

    shell: Shell
    frame: RequestFrame
    replay: Replay


@dataclass(frozen=True, slots=True)
class ItemPage:
    """One item with its content."""

    shell: Shell
    session: SessionHead
    content: ItemContent
    parts: tuple[PartView, ...]
    whole: bool
    """Whether everything is shown; a long text is shown in part, and says so."""
    lookalikes: int
    """Places that look like an envelope's delimiter."""


@dataclass(frozen=True, slots=True)
class ItemFragment:
    """An item's content inside a list."""

    session: SessionHead
    content: ItemContent
    parts: tuple[PartView, ...]
    whole: bool
    lookalikes: int
    slug: str


@dataclass(frozen=True, slots=True)
class EventBodyPage:
    """The body of an event as text."""

    shell: Shell
    session: SessionHead
    sequence: int
    text: str
    sha256: str
    length: int
    shown: int
    """Characters shown."""
    erased_at: datetime | None


@dataclass(frozen=True, slots=True)
class ImportsPage:
    """Imported files, and the form that imports one."""

    shell: Shell
    imports: tuple[ImportLine, ...]
    may_import: bool
    limit_bytes: int
    outcome: ImportOutcome | None
    problem: str
    rehearsed: bool
    """Whether the outcome is that of a rehearsal, which keeps nothing."""
    formats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportPage:
    """One imported file and its repair report."""

    shell: Shell
    detail: ImportDetail
    by_action: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JumpPage:
    """What a pasted text may name, when it is not exactly one thing."""

    shell: Shell
    text: str
    found: tuple[tuple[Found, str], ...]
    """Each with its address."""


@dataclass(frozen=True, slots=True)
class ShortcutsPage:
    """The keys, for reading without JavaScript."""

    shell: Shell
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
