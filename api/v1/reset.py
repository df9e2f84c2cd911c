"""`sessions/{session}/reset`: set everything so far aside and go on from a handoff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from api.answers import stored_json
from api.openapi import NUMBER, TEXT, record
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build
from api.shapes.scalars import Text
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.specs import Actor, ResetSession
from ctxengine.service.working_set.reset import reset_session

RESET = Record(
    Member(
        "handoff",
        Text(minLength=1, maxLength=100_000),
        note="What the session goes on from; left out: taken from the session itself, without a model.",
    ),
    Member("note", Text(maxLength=1_000), note="Why, for the audit log."),
    spec=ResetSession,
)

SESSION_RESET = Component(
    "SessionReset",
    record({"event": NUMBER, "turns": NUMBER, "through": NUMBER, "tokens": NUMBER, "by": TEXT}),
)


class ResetWrite(JsonWrite[ResetSession]):
    """`POST sessions/{session}/reset`."""

    def parse(self, body: Node) -> ResetSession:
        """The handoff and the reason."""
        return build(ResetSession, RESET.read(body, ""))

    def perform(self, actor: Actor, spec: ResetSession, ids: Mapping[str, Any]) -> Done:
        """Write the handoff; the next run starts from it."""
        done = reset_session(actor=actor, session_id=ids["session"], spec=spec).as_json()
        return Done(done, self.rebuild(actor, done))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The figures of the reset."""
        return stored_json(dict(resource))


class ResetView(WriteView):
    """The reset of a session."""

    write = ResetWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="reset_session",
            summary="Reset a session with a handoff",
            tag="sessions",
            answer=SESSION_RESET,
            answer_note="The turns so far are set aside.",
            body=RESET,
            body_required=False,
            problems=(
                "reset_unavailable",
                "run_open",
                "session_ended",
                "nothing_to_reset",
                "too_long",
                "stale_head",
            ),
        )
    }
