"""`runs/{run}/end` and `sessions/{session}/end`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from api.answers import to_json
from api.openapi import TEXT, record
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build
from api.shapes.scalars import Text
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.access import run_of
from ctxengine.service.end_run import end_run
from ctxengine.service.end_session import end_session
from ctxengine.service.specs import Actor, EndRun

END_RUN = Record(
    Member("outcome", Text(), note="How the run ended; left out: completed."), spec=EndRun
)
END_SESSION = Record()

RUN_ENDED = Component("RunEnded", record({"state": TEXT, "outcome": TEXT}))
SESSION_ENDED = Component("SessionEnded", record({"state": TEXT}))


class EndRunWrite(JsonWrite[EndRun]):
    """`POST runs/{run}/end`."""

    def parse(self, body: Node) -> EndRun:
        """The outcome."""
        return build(EndRun, END_RUN.read(body, ""))

    def perform(self, actor: Actor, spec: EndRun, ids: Mapping[str, Any]) -> Done:
        """End the run; its reasoning is dropped."""
        end_run(actor=actor, run_id=ids["run"], spec=spec)
        resource = {"run": str(ids["run"])}
        return Done(resource, self.rebuild(actor, resource))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The state it is in since; a run that had ended before keeps its outcome."""
        run = run_of(actor, UUID(resource["run"]))
        return to_json({"state": run.state, "outcome": run.outcome})


class EndSessionWrite(JsonWrite[None]):
    """`POST sessions/{session}/end`."""

    def parse(self, body: Node) -> None:
        """Nothing but an empty object."""
        END_SESSION.read(body, "")

    def perform(self, actor: Actor, spec: None, ids: Mapping[str, Any]) -> Done:
        """End the session: no further run starts."""
        end_session(actor=actor, session_id=ids["session"])
        return Done({}, self.rebuild(actor, {}))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The state it is in since."""
        return to_json({"state": "ended"})


class EndRunView(WriteView):
    """The end of a run."""

    write = EndRunWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="end_run",
            summary="End a run",
            tag="runs",
            answer=RUN_ENDED,
            answer_note="The run has ended.",
            body=END_RUN,
            body_required=False,
            problems=("stale_head",),
        )
    }


class EndSessionView(WriteView):
    """The end of a session."""

    write = EndSessionWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="end_session",
            summary="End a session",
            tag="sessions",
            answer=SESSION_ENDED,
            answer_note="The session has ended.",
            body=END_SESSION,
            body_required=False,
            problems=("stale_head",),
        )
    }
