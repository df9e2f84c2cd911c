"""What the templates of search, saved views and the operations pages receive (style 2.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ctxengine.ledger.models import AlertChange, AlertRule
from ctxengine.ledger.queries.audit import AuditLine
from ctxengine.ledger.queries.news import Newer
from ctxengine.ledger.queries.paging import Page
from ctxengine.ledger.queries.people import KeyLine, MemberLine
from ctxengine.ledger.queries.search import Hit, Lag, SearchFacets
from ctxengine.ledger.queries.sessions import SessionLine
from ctxengine.service.alerts.measures import Measure
from ctxengine.service.issue_key import IssuedKey
from ctxengine.service.retention.kinds import RetentionKind
from inspector.contexts import SessionFrame, Shell, Tab, ViewsBox


@dataclass(frozen=True, slots=True)
class NewsFragment:
    """What an open page has not shown yet."""

    found: Newer
    what: str
    back: str
    """Where it is shown."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Items found by their text."""

    shell: Shell
    query: str
    problem: str
    chosen: dict[str, str]
    narrowed: tuple[tuple[str, str], ...]
    """Filters that stand in the address beside the query."""
    facets: SearchFacets
    page: Page[Hit]
    sessions: tuple[SessionLine, ...]
    """Sessions whose title, agent or model has the words."""
    lag: Lag
    asked: bool
    """Whether something was looked for at all."""
    indexing: bool
    """Whether the job that catches up was asked for just now."""
    views: ViewsBox
    address: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """P14: the audit log."""

    shell: Shell
    tabs: tuple[Tab, ...]
    problem: str
    chosen: dict[str, str]
    actions: tuple[str, ...]
    actors: tuple[str, ...]
    page: Page[AuditLine]
    filtered: bool
    address: str


@dataclass(frozen=True, slots=True)
class KeysPage:
    """P14: API keys."""

    shell: Shell
    tabs: tuple[Tab, ...]
    keys: tuple[tuple[KeyLine, str], ...]
    """Each with its state."""
    issued: IssuedKey | None
    """A key that was made just now: shown this once."""
    scopes: tuple[tuple[str, str], ...]
    """Each with what it allows."""
    lives: tuple[tuple[str, str], ...]
    """Days until a key expires, with words."""
    problem: str
    given: Mapping[str, str]
    may_act: bool


@dataclass(frozen=True, slots=True)
class MembersPage:
    """P14: members and roles."""

    shell: Shell
    tabs: tuple[Tab, ...]
    members: tuple[MemberLine, ...]
    roles: tuple[tuple[str, str], ...]
    """Each with what it allows."""
    problem: str
    done: str
    given: Mapping[str, str]
    may_act: bool


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """Alert rules and what they found."""

    shell: Shell
    tabs: tuple[Tab, ...]
    rules: tuple[tuple[AlertRule, Measure | None], ...]
    changes: tuple[AlertChange, ...]
    measures: tuple[Measure, ...]
    windows: tuple[tuple[int, str], ...]
    hosts: tuple[str, ...]
    """Hosts that may be told."""
    problem: str
    done: str
    given: Mapping[str, str]
    may_act: bool


@dataclass(frozen=True, slots=True)
class RetentionLine:
    """One kind of what is stored."""

    kind: RetentionKind
    days: int
    """0: for ever."""
    due: int
    """How many are over that time."""


@dataclass(frozen=True, slots=True)
class RetentionPage:
    """How long what is kept."""

    shell: Shell
    tabs: tuple[Tab, ...]
    lines: tuple[RetentionLine, ...]
    due: int
    """Over their time, of all kinds."""
    problem: str
    done: str
    may_act: bool


@dataclass(frozen=True, slots=True)
class ConfigurePage:
    """A session's settings that may change while it lives."""

    shell: Shell
    frame: SessionFrame
    policy_name: str
    """`name@version` of the policy in force."""
    ttl: str
    ttls: tuple[tuple[str, str], ...]
    compaction: str
    compactions: tuple[tuple[str, str], ...]
    summary_model: str
    problem: str
    done: bool
    blocked: str
    """Why nothing can be changed; empty when it can."""
    may_act: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How one item stood in a request, or in a run of requests that had it alike."""

    request_id: UUID
    """Of the newest."""
    label: str
    at: datetime
    form: str
    """Word for the form."""
    form_key: str
    code: str
    """Why, without figures: neighbours of one code are one line."""
    reason: str
    """Why, with the figures of the newest."""
    row: str
    first_label: str
    """Label of the oldest of the run; the same where it is one."""
    count: int


@dataclass(frozen=True, slots=True)
class TourStep:
    """One stop of the tour."""

    title: str
    look: str
    """What to look at, and why."""
    href: str
    """Empty where the sample that shows it is not loaded."""
    link: str


@dataclass(frozen=True, slots=True)
class TourPage:
    """The first run: five questions, each answered by a page of a sample session."""

    shell: Shell
    steps: tuple[TourStep, ...]
    loaded: bool


@dataclass(frozen=True, slots=True)
class GlossaryPage:
    """Every word of the console, explained."""

    shell: Shell
    groups: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]
    """Title, then key, word and meaning of each term."""
