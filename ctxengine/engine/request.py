"""The values that go into `build()` and the one that comes out (design 3 and 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.yields import Allocation
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.packet import Tile
from ctxengine.engine.fresh import Runtime
from ctxengine.engine.history.projection import Projection, SentBlock
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Opaque, Unit
from ctxengine.engine.manifest import Budget, Manifest
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.skills import LoadedSkill
from ctxengine.engine.stretch import Stretch
from ctxengine.engine.tail import NO_TAIL, Tail
from ctxengine.engine.wire.base import Fragment, Marker, WireParams, WirePrefix, WireRenderer
from ctxengine.engine.working_state.state import EMPTY, WorkingState


@dataclass(frozen=True, slots=True)
class MemoryLines:
    """Lines of row 13 that stay after the allocation, best first, as (id, text)."""

    knowledge: Sequence[tuple[str, str]] = ()
    recall: Sequence[tuple[str, str]] = ()
    corrections: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What lies before the cut."""

    units: int = 0
    turns: int = 0
    tokens: int = 0
    through: EventSeq = EventSeq(0)
    """Last sequence that is not shown."""


class RecordedDigest(NamedTuple):
    """A unit's digest as first rendered, and why its bytes may be gone: `opaque` or `erased`."""

    digest: str
    why: str


@dataclass(frozen=True, slots=True)
class RunInput:
    """The run as one step sees it: everything `build()` may look at beside plan, checkpoint and principal."""

    nonce_key: bytes = field(repr=False)
    session_key: str
    step: str
    """What tells this step apart within the session (its content head); part of fresh rows' nonces."""
    history: Sequence[Unit]
    """Carried units from the cut on, oldest first."""
    active: Sequence[Unit]
    """Units of the open run."""
    allocation: Allocation
    fixed: Frame
    left_out: LeftOut
    runtime: Runtime
    memory: MemoryLines = MemoryLines()
    tail: Tail = NO_TAIL
    """Intent, stance and thread, where the engine has them."""
    skills: Sequence[LoadedSkill] = ()
    """Skills loaded so far, in load order."""
    sent: Sequence[SentBlock] = ()
    """Fresh rows of earlier steps that stay where they are, oldest first."""
    added: str | None = None
    """What this step adds to them; None where rows 11 to 14 move."""
    added_tokens: Mapping[int, int] = field(default_factory=dict)
    """Tokens of `added` by row."""
    added_rows: Mapping[str, str] = field(default_factory=dict)
    """Digests of the parts in `added`, by part."""
    added_trust: Mapping[str, int] = field(default_factory=dict)
    """Tokens of `added` by trust level."""
    fresh_place: EventSeq = EventSeq(0)
    """What is added stands before the first unit that starts here or later: no earlier request has shown that one."""
    holds_fresh: bool = False
    """Whether rows 11 to 14 wait for the next step, because the newest answer waits for a tool that its provider runs."""
    unsent: Collection[str] | None = None
    """Ids of calls of the provider's tools that stand as notes with their results, as the request recorded them; None: they
    are found when it is built."""
    lone_results: bool = False
    """Whether results whose call is not in view are among them."""
    abandoned: Collection[EventSeq] = frozenset()
    """Units in which such a call or result stands as a note."""
    fresh: RecordedDigest | None = None
    """The recorded digest of rows 11 to 14, where some of their content is no longer kept."""
    tiles: Sequence[Tile] = ()
    """What stands in row 9 for everything before the cut, where at least one summary does; empty: the omission line."""
    summary: RecordedDigest | None = None
    """The recorded digest of row 9, where a summary is no longer kept."""
    pinned: Sequence[Unit] = ()
    """Units before the cut that an operator wants whole, or that were promoted; they stand behind history."""
    projection: Projection | None = None
    """What the engine shows of everything before the run; None where the allocation cuts history."""
    marks: Marks = field(default_factory=Marks)
    """An operator's acts on single units and items."""
    state: WorkingState = EMPTY
    """The working state as this run sees it, within its limits."""
    row_tokens: Mapping[int, int] = field(default_factory=dict)
    """Tokens of what no span accounts for, by row: row 9, opaque reasoning and the line in front of pinned
    units 10, skills 11, corrections 13, runtime 14."""
    source: str = "estimated"
    """Where body figures come from: `counted` or `estimated`."""
    sized_for: str = ""
    """The fallback leg whose budget this is, where one admits less than the session's own model."""
    imported: bool = False
    history_ttl: Literal["5m", "1h"] = "5m"
    """Life asked for the history's cache entries."""
    digests: Mapping[EventSeq, RecordedDigest] = field(default_factory=dict)
    """Units whose opaque or erased bytes may be gone: their recorded digests then stand in for the bytes."""


@dataclass(frozen=True, slots=True)
class CheckpointInput:
    """The run's checkpoint: reasoning blocks by the sequence of the response they came in."""

    opaque: Mapping[EventSeq, Sequence[Opaque]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A unit's fragments and what hashing needs of them."""

    fragments: tuple[Fragment, ...]
    digest: str
    """sha256 over the fragments' bytes."""


class Segment(NamedTuple):
    """A stretch of the request behind the prefix: one unit, or one block of rows 9 to 14."""

    row: int
    unit: EventSeq | None
    """Sequence that opens the unit; None for rows that are no ledger unit."""
    form: str
    digest: str
    first: int
    """Index of its first fragment."""
    end: int
    """One past its last fragment."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What `build()` returns."""

    body: bytes
    """The provider's request body, cache markers included; empty when opaque bytes are missing."""
    request_sha256: str
    plan: Plan
    manifest: Manifest
    budget: Budget
    markers: tuple[Marker, ...]
    fragments: tuple[Fragment, ...]
    stretches: tuple[Stretch, ...]
    """What stands behind the prefix, in wire order."""
    opaque_units: tuple[EventSeq, ...]
    """Units whose bytes hold opaque reasoning."""
    absent: tuple[str, ...]
    """Why bytes were replaced by recorded digests: `opaque`, `erased`."""
    renderer: WireRenderer
    prefix: WirePrefix
    params: WireParams
    nonce_key: bytes = field(repr=False, default=b"")
    unsent: tuple[str, ...] | None = None
    """Ids of calls of the provider's tools that stand as notes with their results, in order; None where all of them do."""
    abandoned: Collection[EventSeq] = frozenset()
    """Units in which such a call or result stands as a note."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The stretches unit by unit."""
        return tuple(_segments(self.stretches))

    @property
    def unit_digests(self) -> dict[EventSeq, str]:
        """Segment digest of each unit in the form it has here."""
        return {
            unit.sequence: digest
            for stretch in self.stretches
            for unit, digest in zip(stretch.units, stretch.digests, strict=False)
        }

    def marked_digests(self, marks: Marks) -> dict[EventSeq, str]:
        """Segment digests of units that may stand otherwise in other requests, in a form of the same name.

        They are those that an operator marked, or of which an item was left out, and those that hold a call or a result of
        the provider's tools as a note.
        """
        if not marks and not self.abandoned:
            return {}
        by_hand, out = {*marks.pinned, *marks.folded}, set(marks.excluded)
        digests = self.unit_digests
        return {
            unit.sequence: digests[unit.sequence]
            for stretch in self.stretches
            for unit in stretch.units
            if unit.sequence in by_hand
            or unit.sequence in self.abandoned
            or any(str(item.id) in out for item in unit.items)
        }

    @property
    def unit_tokens(self) -> dict[EventSeq, int]:
        """Tokens of each unit in the form it has here."""
        return {
            unit.sequence: unit.pointer_tokens if stretch.form == "pointer" else unit.tokens
            for stretch in self.stretches
            for unit in stretch.units
        }


def _segments(stretches: Sequence[Stretch]) -> Iterator[Segment]:
    base = 0
    for stretch in stretches:
        end = base + len(stretch.fragments)
        if not stretch.units:
            yield Segment(stretch.row, None, stretch.form, stretch.digests[0], base, end)
        base -= stretch.bounds[0].fragments
        ends = [base + totals.fragments for totals in stretch.bounds]
        for unit, digest, first, last in zip(
            stretch.units, stretch.digests, ends, ends[1:], strict=False
        ):
            yield Segment(stretch.row, unit.sequence, stretch.form, digest, first, last)
        base = end
