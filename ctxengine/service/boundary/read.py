"""Reading a session's checkpoints and the operations that made them, or did not; no opaque content among it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ctxengine.engine.boundary.checkpoint import (
    Checkpoint,
    checkpoint_of,
    contract_of,
    holds,
    made_checkpoints,
)
from ctxengine.engine.boundary.failures import FAILURE_OF
from ctxengine.engine.compaction.acts import BOUNDARY_KINDS
from ctxengine.engine.events import EventType
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.standing import history_acts
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow, UnitRow
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.boundary.look import marks_of
from ctxengine.service.specs import Actor
from ctxengine.service.undo_compaction import UndoBar, undo_bar
from ctxengine.service.wiring import log_of, plan_from

_LATEST = 200


@dataclass(frozen=True, slots=True)
class CheckpointLine:
    """One checkpoint with what became of it."""

    event: EventRecord
    point: Checkpoint
    state: str
    """`in_force`, `superseded`, `unusable` or `undone`."""
    bytes_len: int
    note: str | None
    """Text of a portable note; None for a native window, which is opaque, and for one that was erased."""
    bar: UndoBar | None = None
    """Why it cannot be undone now; None where it can, and for one that is undone."""

    again: int = 0
    """Tokens of the units it covers that are shown again behind it (our count)."""

    @property
    def written_by(self) -> str:
        """The model that made it; for notes of before that was kept, the kind of writer alone."""
        payload = self.event.payload
        if self.point.kind == "native":
            return str(payload["model"])
        writer = payload.get("writer") or {}
        return str(writer.get("model") or payload["compactor"])

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        point, payload = self.point, self.event.payload
        return {
            "event": point.sequence,
            "at": self.event.recorded_at.isoformat(),
            "kind": point.kind,
            "state": self.state,
            "first": payload["first_sequence"],
            "through": point.replaced,
            "turns": point.turns,
            "units": point.units,
            "tokens_before": point.tokens_before,
            "tokens_after": point.tokens,
            "counted": payload["counted"],
            "items": payload["items"],
            "bytes": self.bytes_len,
            "written_by": self.written_by,
            "gaps": list(point.gaps),
            "again_tokens": self.again,
            "base": payload["base"],
            "source_sha256": point.source,
            "contract_sha256": point.contract,
            "window_sha256": payload["window_sha256"],
            "retained": list(point.shown),
            "recovered": point.recovered,
            "ranges": [list(entry) for entry in point.ranges],
            "left_out": [list(entry) for entry in point.left_out],
            "inline": point.inline,
            "note": self.note,
            "undo_first": self.bar.first if self.bar else None,
        }


@dataclass(frozen=True, slots=True)
class OperationLine:
    """How one compaction ended."""

    event: EventRecord

    def as_json(self) -> dict[str, Any]:
        """Plain data, the failure with its words."""
        payload = self.event.payload
        kind = FAILURE_OF.get(payload["code"] or "")
        return {
            "event": self.event.sequence,
            "at": self.event.recorded_at.isoformat(),
            "operation": payload["operation"],
            "outcome": payload["outcome"],
            "code": payload["code"],
            "retryable": payload["retryable"],
            "says": kind.says if kind else "",
            "remedy": kind.remedy if kind else "",
            "checkpoint": payload["checkpoint"],
            "prefix_sha256": payload["prefix_sha256"],
        }


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """All of a session's, newest first."""

    lines: tuple[CheckpointLine, ...]
    operations: tuple[OperationLine, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "checkpoints": [line.as_json() for line in self.lines],
            "operations": [line.as_json() for line in self.operations],
        }


def checkpoints_of(*, actor: Actor, session_id: UUID) -> Checkpoints:
    """A session's checkpoints and operations.

    Raises:
        ServiceError: 404.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    events = [
        event
        for event in log.latest({EventType.COMPACTED})
        if event.payload["kind"] in BOUNDARY_KINDS
    ]
    undone = {event.payload["compaction"] for event in log.latest({EventType.COMPACTION_UNDONE})}
    lines = _lines(session, log, events, undone)
    finished = log.latest({EventType.BOUNDARY_FINISHED}, limit=_LATEST)
    return Checkpoints(tuple(lines), tuple(OperationLine(event) for event in finished))


def _lines(
    session: SessionRow, log: PostgresLog, events: list[EventRecord], undone: set[int]
) -> list[CheckpointLine]:
    contract = contract_of(plan_from(log, plan_row_of(session)))
    marks, below = marks_of(log), log.head().sequence + 1
    acts, alive = history_acts(log), made_checkpoints(log)
    points = [checkpoint_of(event) for event in events]
    tokens = _tokens_of(session, {shown for point in points for shown in point.shown})
    found: list[CheckpointLine] = []
    standing = False
    for event, point in zip(events, points, strict=True):
        text = log.body(event.body.id) if event.body is not None else None
        sound = holds(point, log, contract=contract, marks=marks, below=below)
        if event.sequence in undone:
            state = "undone"
        elif not sound:
            state = "unusable"
        else:
            state = "superseded" if standing else "in_force"
            standing = True
        found.append(
            CheckpointLine(
                event,
                point,
                state,
                event.body.length if event.body else 0,
                text if point.kind == "note" else None,
                None if event.sequence in undone else undo_bar(acts, alive, event),
                sum(tokens.get(shown, 0) for shown in point.shown),
            )
        )
    return found


def _tokens_of(session: SessionRow, units: Collection[int]) -> dict[int, int]:
    """Tokens of units (our count), by the sequence that opens each."""
    rows = UnitRow.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, sequence__in=units
    )
    return dict(rows.values_list("sequence", "tokens"))
