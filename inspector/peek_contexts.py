"""What the drawer beside a list receives: one session or request at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ctxengine.ledger.queries.plans import EpochLine
from ctxengine.ledger.queries.request import RequestDetail
from ctxengine.ledger.queries.requests import RequestLine
from ctxengine.ledger.queries.session import Act
from ctxengine.ledger.queries.sums import Bill
from inspector.contexts import SessionFrame, Tab
from inspector.request_contexts import CachePanel
from inspector.ruler import Ruler, Segment


@dataclass(frozen=True, slots=True)
class RequestGlance:
    """A request's ruler and cache, as narrow as a drawer."""

    request: RequestDetail
    ruler: Ruler
    window: tuple[Segment, ...]
    """The ruler's own parts, with the labels that fit here."""
    yielded: tuple[str, ...]
    """Titles of the classes that gave something up."""


@dataclass(frozen=True, slots=True)
class SessionPeek:
    """A session beside the list of sessions."""

    slug: str
    frame: SessionFrame
    newest: RequestGlance | None
    outlined: tuple[UUID, str] | None
    """Id and label of the newest request where an import has only outlined it: it has no rows to show yet."""
    epochs: tuple[EpochLine, ...]
    compactions: tuple[Act, ...]
    bill: Bill


@dataclass(frozen=True, slots=True)
class RequestPeek:
    """A request beside the list of requests."""

    slug: str
    title: str
    """Of its session."""
    glance: RequestGlance
    tabs: tuple[Tab, ...]
    cache: CachePanel
    cut: str
    unattributed: int | None


@dataclass(frozen=True, slots=True)
class OutlinedPeek:
    """A request that an import only outlined, beside the list of requests: a look rebuilds nothing."""

    slug: str
    title: str
    """Of its session."""
    line: RequestLine
    address: str
    """Of its page, which rebuilds it."""
