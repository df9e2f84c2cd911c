"""What the templates of a request's tabs and of a comparison receive (style 2.12)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ctxengine.engine.layout import Row
from ctxengine.engine.manifest import RowTotal, Span
from ctxengine.ledger.queries.events import EventPage
from ctxengine.ledger.queries.guards import GuardVerdict
from ctxengine.ledger.queries.items import ItemLine
from ctxengine.ledger.queries.request import Neighbours, RequestDetail
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.specs import Replay
from inspector.bodydiff import PartChange
from inspector.contexts import SessionFrame, Shell, Tab
from inspector.jsonview import JsonPart
from inspector.ruler import Ruler, Segment


@dataclass(frozen=True, slots=True)
class ChangedBytes:
    """Which digest changed since the request before."""

    what: str
    digests: tuple[tuple[str, str, str], ...]
    """What is digested, before and after; empty where one of both has no such part."""


@dataclass(frozen=True, slots=True)
class CachePanel:
    """The cache of a request: predicted, expected of the provider, reported, and why they differ."""

    buckets: tuple[tuple[str, int | None, int | None, int | None], ...]
    """Bucket, predicted by our counts, expected in the provider's tokens, reported by it."""
    state: str
    """`ok`, `warn`, `bad` or nothing."""
    judged: str
    cause: str
    """Our cause in words; empty where we have none."""
    causeless: str
    """What stands instead of a cause."""
    reason: str
    """The provider's own reason, in its word; empty where it gives none."""
    missed: int | None
    """Tokens that the provider says were missed."""
    disagreement: bool
    basis: str
    rules: str = ""
    """By whose word it was predicted, where it is not the provider's."""
    changed: ChangedBytes | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether less was read than predicted, or the provider contradicts our cause."""
        return self.state == "bad" or self.disagreement


@dataclass(frozen=True, slots=True)
class Walk:
    """Neighbours of a request inside a filtered list."""

    query: str
    """Query string of the list."""
    back: str
    """Address of the list."""
    newer: tuple[UUID, str] | None
    older: tuple[UUID, str] | None


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """What every tab of a request shows around its pane."""

    request: RequestDetail
    session: SessionHead
    near: Neighbours
    walk: Walk | None
    """The way through the filtered list that one came from; None where one came from elsewhere."""
    ruler: Ruler
    tabs: tuple[Tab, ...]
    ladder: tuple[tuple[str, str, str, int], ...]
    """Yield steps in order: class title, outcome, words, tokens given up."""
    cut: str
    on_checkpoint: bool
    """Whether a checkpoint stands for its settled history, instead of a cut."""
    budget: tuple[tuple[str, str, int | None, bool], ...]
    """Arithmetic: name, how it comes about, tokens, and whether they are over a limit of their own."""
    unattributed: int | None
    """Billed prompt minus what the rows explain; None where nothing was reported for our bytes."""
    accounted: int | None
    markers: tuple[tuple[str, str, str], ...]
    """Cache markers: name, what it closes, life."""
    cache: CachePanel
    guards: tuple[GuardVerdict, ...] = ()
    """What drift guards said of its answer."""


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
class ProofsPage:
    """The newest requests of a session, proven."""

    shell: Shell
    frame: SessionFrame
    proofs: tuple[tuple[UUID, str, Replay], ...]
    """Request, label, verdict."""


@dataclass(frozen=True, slots=True)
class TakeAwayPage:
    """P5, last tab: ways to take the request along."""

    shell: Shell
    frame: RequestFrame
    gone: str
    """Why there is no body; empty when there is."""
    command: str
    """The shell command; empty where it is too long to be shown."""
    command_size: str


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item as it stands in the request."""

    line: ItemLine
    row: int
    form: str
    form_words: str
    reason: str
    code: str
    """Why, without figures."""
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
    waits: bool
    """Whether the body is large and is asked for once the page stands."""
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
    newer_epoch: int
    """The larger of their epochs."""
    epoch_above: int | None
    """The session's epoch after that one, behind which its list begins with it; None where there is none."""
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
