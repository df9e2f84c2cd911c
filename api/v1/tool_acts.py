"""`sessions/{session}/tools/{tool}/revoke` and `restore`: refusing a tool's calls without touching the prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from api.answers import to_json
from api.auth import OPERATE, Scopes
from api.openapi import component_of
from api.schema import Operation, Operations
from api.shapes.containers import Member, Record
from api.shapes.scalars import Text
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.plan_specs import ToolAct
from ctxengine.service.revoke_tool import restore_tool, revoke_tool
from ctxengine.service.specs import Actor

TOOL_ACT = component_of("ToolAct", ToolAct)
_MAX_NOTE_CHARS = 2000
NOTE = Record(
    Member("note", Text(maxLength=_MAX_NOTE_CHARS), required=True, note="Why, for the audit log.")
)


class ToolActWrite(JsonWrite[str]):
    """One of the two acts."""

    def __init__(self, act: Callable[..., ToolAct]) -> None:
        """`act` is the use case."""
        self._act = act

    def parse(self, body: Node) -> str:
        """The note."""
        note: str = NOTE.read(body, "")["note"]
        return note

    def perform(self, actor: Actor, spec: str, ids: Mapping[str, Any]) -> Done:
        """Revoke or restore."""
        done = self._act(actor=actor, session_id=ids["session"], name=ids["tool"], note=spec)
        resource = {name: getattr(done, name) for name in ToolAct.__dataclass_fields__}
        return Done(resource, to_json(done))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer."""
        return to_json(ToolAct(**resource))


def _operation(name: str, summary: str, note: str) -> Operations:
    return {
        "POST": Operation(
            id=name,
            summary=summary,
            tag="sessions",
            answer=TOOL_ACT,
            answer_note=note,
            body=NOTE,
            problems=("session_ended", "unknown_tool", "reason_required", "stale_head"),
        )
    }


class RevokeToolView(WriteView):
    """Revoking a tool."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = ToolActWrite(revoke_tool)
    operations: ClassVar[Operations] = _operation(
        "revoke_tool",
        "Refuse a tool's calls from now on",
        "The tool stays advertised; its calls are answered with the refusal.",
    )


class RestoreToolView(WriteView):
    """Restoring a revoked tool."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = ToolActWrite(restore_tool)
    operations: ClassVar[Operations] = _operation(
        "restore_tool", "Allow a revoked tool's calls again", "The tool can be called again."
    )
