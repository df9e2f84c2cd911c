"""What the page of a session's checkpoints receives."""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.ledger.models import Job
from ctxengine.service.boundary.read import CheckpointLine
from inspector.contexts import SessionFrame, Shell


@dataclass(frozen=True, slots=True)
class OperationView:
    """How one compaction ended, with what to do about it."""

    event: int
    outcome: str
    code: str
    says: str
    remedy: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class CheckpointsPage:
    """Checkpoints of a boundary session, how each was made, and what failed."""

    shell: Shell
    frame: SessionFrame
    lines: tuple[CheckpointLine, ...]
    detail: CheckpointLine | None
    operations: tuple[OperationView, ...]
    jobs: tuple[Job, ...]
    may_act: bool
    undone: bool
