"""Compactions as REST shows them: every one with its fate, and the ranges that cover the history before the cut."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ctxengine.service.boundary.read import checkpoints_of
from ctxengine.service.compactions import compactions_of
from ctxengine.service.specs import Actor


def compaction_list(actor: Actor, session_id: UUID) -> dict[str, Any]:
    """All compactions of a session, newest first; raises the service's 404."""
    found = compactions_of(actor=actor, session_id=session_id).as_json()
    return found | checkpoints_of(actor=actor, session_id=session_id).as_json()
