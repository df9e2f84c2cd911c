"""The values that go into `build()` and the one that comes out (design 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.yields import Allocation
from ctxengine.engine.fresh import Runtime
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Opaque, Unit
from ctxengine.engine.manifest import Budget, Manifest
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.wire.base import Fragment, Marker, WireParams, WirePrefix, WireRenderer


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
    row_tokens: Mapping[int, int] = field(default_factory=dict)
    """Tokens of what no span accounts for, by row: omission 9, opaque reasoning 10, corrections 13, runtime 14."""
    source: str = "estimated"
    """Where body figures come from: `counted` or `estimated`."""
    imported: bool = False
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


class RenderMemo(Protocol):
    """Keeps renderings of carried units; a hit may only save time, never change bytes."""

    def get(self, sequence: EventSeq, form: str) -> Rendered | None:
        """The rendering of the unit that starts at `sequence`, if kept."""
        ...

    def put(self, sequence: EventSeq, form: str, rendered: Rendered) -> None:
        """Keep one."""
        ...


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
    segments: tuple[Segment, ...]
    unit_digests: dict[EventSeq, str]
    opaque_units: tuple[EventSeq, ...]
    """Units whose bytes hold opaque reasoning."""
    absent: tuple[str, ...]
    """Why bytes were replaced by recorded digests: `opaque`, `erased`."""
    renderer: WireRenderer
    prefix: WirePrefix
    params: WireParams
    unit_tokens: dict[EventSeq, int]
    """Tokens of each unit in the form it has here."""
    nonce_key: bytes = field(repr=False, default=b"")
