"""`sessions/{session}/epochs`: rebuild the frozen prefix, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from api.answers import to_json
from api.auth import OPERATE, Scopes
from api.reads.plans import figures_of, plan_view
from api.schema import Operation, Operations
from api.shapes.containers import Member, Record, texts
from api.shapes.scalars import Text, Whole
from api.v1.plans import PLAN
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import Actor

_MAX_NOTE_CHARS = 2000

ROTATE = Record(
    Member("reason", Text(minLength=1, maxLength=64), required=True, note="A rotation reason."),
    Member("note", Text(maxLength=_MAX_NOTE_CHARS), note="For the people who ask later."),
    Member("tools", texts(), note="With `tool_removed_for_security`: the tools that leave."),
    Member("expected_epoch", Whole(minimum=1), note="The epoch you have seen; another one is 409."),
)


class Rotation(NamedTuple):
    """Why the prefix is rebuilt."""

    reason: str
    note: str
    tools: tuple[str, ...] = ()
    expected_epoch: int | None = None


class RotateWrite(JsonWrite[Rotation]):
    """`POST sessions/{session}/epochs`."""

    def parse(self, body: Node) -> Rotation:
        """Reason and note."""
        values = ROTATE.read(body, "")
        return Rotation(
            values["reason"],
            values.get("note", ""),
            values.get("tools", ()),
            values.get("expected_epoch"),
        )

    def perform(self, actor: Actor, spec: Rotation, ids: Mapping[str, Any]) -> Done:
        """Pin a new plan."""
        plan = rotate_epoch(
            actor=actor,
            session_id=ids["session"],
            reason=spec.reason,
            note=spec.note,
            tools=spec.tools,
            expected_epoch=spec.expected_epoch,
        )
        resource = {
            "session": str(ids["session"]),
            "epoch": plan.epoch,
            "figures": figures_of(plan),
        }
        return Done(resource, to_json(plan), 201)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The plan of that epoch."""
        session, epoch, figures = (resource[name] for name in ("session", "epoch", "figures"))
        return to_json(plan_view(actor.tenant_id, session, epoch, figures))


class EpochsView(WriteView):
    """The epochs of a session."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = RotateWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="rotate_epoch",
            summary="Rebuild the frozen prefix as a new epoch",
            tag="sessions",
            answer=PLAN,
            answer_note="The new plan; the provider's cache starts over from it.",
            status=201,
            body=ROTATE,
            problems=(
                "session_ended",
                "plan_overflow",
                "stale_epoch",
                "stale_head",
                "invalid_content",
            ),
        )
    }
