"""What the pages of the replay lab receive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxengine.engine.manifest import Span
from ctxengine.ledger.models import Job, ReplayCellRow, ReplayRow, SessionRow
from ctxengine.ledger.queries.paging import Page
from ctxengine.service.replay.figures import ReplayStep
from inspector.contexts import Shell
from inspector.jsonview import JsonPart
from inspector.lab_conditions import Rival
from inspector.lab_curves import Curve
from inspector.request_contexts import RowLine
from inspector.ruler import Ruler


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """One replay in the list."""

    row: ReplayRow
    done: int
    wanted: int
    state: str
    """State of its job; empty where that is no longer kept."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be ticked."""

    value: str
    chosen: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class LabForm:
    """What can be replayed, and under what."""

    find: str
    """What sessions were looked for by."""
    sessions: tuple[tuple[SessionRow, bool], ...]
    """Those found, and whether each is the one chosen; the chosen one stands first."""
    engines: tuple[tuple[str, tuple[Choice, ...]], ...]
    """Engines and policies in groups, each group with its heading."""
    models: tuple[Choice, ...]
    other_models: str
    given: Mapping[str, str]
    """Budget, cache life and the other what-ifs, as they were typed."""


@dataclass(frozen=True, slots=True)
class LabPage:
    """P13: all replays, and the form for a new one."""

    shell: Shell
    page: Page[ReplayLine]
    form: LabForm | None
    """None for who may not start one."""
    problem: str
    narrowed: bool = False
    """Whether the replays are those of one session."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One cell of the matrix; `row` is None until it is there."""

    number: int
    engine: str
    model: str
    row: ReplayCellRow | None
    figures: Mapping[str, Any]
    cheapest: bool = False
    """Whether no cell of the same model keeps as many facts whole for less."""


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """P13: one replay, its matrix filling."""

    shell: Shell
    row: ReplayRow
    cells: tuple[MatrixCell, ...]
    job: Job | None
    running: bool
    settings: tuple[str, ...]
    """What it assumed, in words; empty where all was the session's own."""
    rivals: tuple[Rival, ...] = ()
    """The same session under other conditions."""
    lives: tuple[tuple[str, str], ...] = ()
    """Lives of cache entries under which it can be replayed again; none for who may not."""
    again: tuple[tuple[str, str], ...] = ()
    """Its other conditions, as the form sends them."""


@dataclass(frozen=True, slots=True)
class CellPage:
    """P13: one cell, step by step."""

    shell: Shell
    row: ReplayRow
    cell: ReplayCellRow
    curves: tuple[Curve, ...]
    steps: tuple[Mapping[str, Any], ...]
    first: int
    """Number of the first step in the table."""
    total: int
    older: int | None
    newer: int | None
    builds: bool
    """Whether its requests can be opened: a peer policy builds none."""


@dataclass(frozen=True, slots=True)
class SimulatedPage:
    """P13: one simulated step, shown as a request."""

    shell: Shell
    row: ReplayRow
    cell: ReplayCellRow
    step: ReplayStep
    ruler: Ruler
    region_a: tuple[RowLine, ...]
    region_b: tuple[RowLine, ...]
    sum_a: int
    sum_b: int
    out: tuple[tuple[Span, str], ...]
    total: int
    parts: tuple[tuple[JsonPart, str], ...]
    """The newest parts of the body, each with its coloured text where it is short enough."""
    left_out_parts: int
    body_bytes: int
    sent: str
    """Id of the recorded request that has the same hash; empty where none has."""
    previous: int | None
    following: int | None
