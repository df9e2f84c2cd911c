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
    """One page of them."""
    after: str
    """Cursor of the next page; empty on the last one."""
    detail: CheckpointLine | None
    operations: tuple[OperationView, ...]
    failed: OperationView | None
    """The newest compaction, where it failed and none has come about since."""
    jobs: tuple[Job, ...]
    may_act: bool
    done: str
    """What was done just now, in words; empty where nothing was."""
