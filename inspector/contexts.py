"""What each page's template receives: one frozen dataclass for each page (style 2.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.ledger.models import AlertRule, SavedView
from ctxengine.ledger.queries.events import EventPage
from ctxengine.ledger.queries.imports import ImportDetail, ImportJob, ImportLine, RepairLine
from ctxengine.ledger.queries.items import ItemContent
from ctxengine.ledger.queries.jobs import JobCounts
from ctxengine.ledger.queries.lookup import Found
from ctxengine.ledger.queries.overview import Counts, WorstSession
from ctxengine.ledger.queries.paging import Page, Total
from ctxengine.ledger.queries.promises import Promise
from ctxengine.ledger.queries.request_facets import RequestFacets
from ctxengine.ledger.queries.requests import RequestLine
from ctxengine.ledger.queries.session import RunPage, SessionHead, Strip
from ctxengine.ledger.queries.sessions import Facets, SessionLine
from ctxengine.ledger.queries.sums import Bill
from ctxengine.service.import_transcript import ImportOutcome
from inspector.access import Viewer
from inspector.itemview import PartView
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
    news: str = ""
    """Where the page asks whether there is something newer; empty where it does not."""


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
class JobsTile:
    """The figures of `components/jobs_tile.html`."""

    counts: JobCounts
    workers: int
    state: str
    """`ok`, `warn` or `bad`."""
    verdict: str


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """P1: is the fleet healthy?"""

    shell: Shell
    window: str
    windows: tuple[str, ...]
    since: datetime
    tiles: tuple[Tile, ...]
    jobs: JobsTile
    counts: Counts
    bill: Bill
    promises: tuple[Promise, ...]
    broken: int
    firing: tuple[AlertRule, ...]
    """Alerts that fire now."""
    worst: tuple[WorstSession, ...]


@dataclass(frozen=True, slots=True)
class ViewsBox:
    """The saved views of a list, and the form that saves this one."""

    page: str
    views: tuple[SavedView, ...]
    current: str
    """Query string of the list as it stands, without its place."""
    owner: str


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
    total: Total | None
    """None where counting would read too much."""
    narrowed: tuple[tuple[str, str], ...]
    """Filters without a field in the form, as another page's figure set them."""
    filtered: bool
    address: str
    """The query string of this list, for the twins and the detail pages."""
    views: ViewsBox


@dataclass(frozen=True, slots=True)
class Option:
    """One value that a filter can take."""

    value: str
    label: str
    number: int | None
    """How often it occurs in what was counted; None where it was not looked for."""


@dataclass(frozen=True, slots=True)
class Select:
    """A filter with a closed set of values."""

    name: str
    label: str
    none: str
    """What the choice of no value is called."""
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class RequestsPage:
    """P4: requests across sessions."""

    shell: Shell
    query: str
    problem: str
    chosen: dict[str, str]
    selects: tuple[Select, ...]
    facets: RequestFacets
    page: Page[RequestLine]
    total: Total | None
    """None where counting would read too much."""
    narrowed: tuple[tuple[str, str], ...]
    """Filters without a field in the form, as another page's figure set them."""
    filtered: bool
    address: str
    views: ViewsBox


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
    may_act: bool


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
    newest: bool
    """Whether the newest events are on the page."""
    follow: bool
    """Whether later ones join them as they come."""
    events_url: str
    rows_url: str
    """Where further lines of the table come from."""


@dataclass(frozen=True, slots=True)
class EventRows:
    """Further lines of the table of events."""

    slug: str
    session_id: UUID
    events: EventPage
    chosen: str
    meanings: dict[str, str]
    seen: int | None
    """The newest event that the page now shows or has passed over, where these are newer ones; None for older ones."""
    events_url: str
    rows_url: str


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
    standings: tuple[Any, ...]
    """`console_contexts.Standing`: how it stood in the newest requests."""


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
    page: Page[ImportLine]
    may_import: bool
    limit: str
    """Largest file that is taken."""
    outcome: ImportOutcome | None
    problem: str
    rehearsed: bool
    """Whether the outcome is that of a rehearsal, which keeps nothing."""
    known_sha256: str
    """Of the outcome, where its report is kept."""
    formats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportPage:
    """One imported file and its repair report."""

    shell: Shell
    detail: ImportDetail
    by_action: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RepairTextPage:
    """The whole text that one line of a repair report set aside."""

    shell: Shell
    line: ImportLine
    repair: RepairLine


@dataclass(frozen=True, slots=True)
class ImportJobPage:
    """An upload that a worker reads: how far it is, and the report once it has ended."""

    shell: Shell
    job: ImportJob
    detail: ImportDetail | None


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
