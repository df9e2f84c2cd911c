"""`sessions/{session}/runs`: a user message opens a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from api.answers import to_json
from api.openapi import UUID_TEXT, WHOLE, record
from api.reads.runs import run_facts
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build, texts
from api.shapes.content import Message
from api.shapes.scalars import Flag, Moment, Text
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.specs import Actor, ReadingSpec, StartRun
from ctxengine.service.start_run import start_run

START_RUN = Record(
    Member("message", Message(), required=True, note="Text, or an array of content blocks."),
    Member("scopes", texts(), note="Scopes granted for this run; left out: the principal's."),
    Member("now", Moment(), note="The run's clock; left out: the server's."),
    Member("timezone", Text(), note="IANA name for the runtime row."),
    Member("surface", Text()),
    Member(
        "reading",
        Record(
            Member("act", Text()),
            Member("domains", texts()),
            Member("entities", texts()),
            Member("live_data", Flag(), note="A value as it stands now is asked for."),
            Member("uncertain", Flag()),
            spec=ReadingSpec,
        ),
        note="The runtime's own reading of the message; left out: its words are read.",
    ),
    spec=StartRun,
)

RUN = Component("Run", record({"id": UUID_TEXT, "number": WHOLE, "seed_event_sequence": WHOLE}))


class StartRunWrite(JsonWrite[StartRun]):
    """`POST sessions/{session}/runs`."""

    def parse(self, body: Node) -> StartRun:
        """The message and the run's settings."""
        return build(StartRun, START_RUN.read(body, ""))

    def perform(self, actor: Actor, spec: StartRun, ids: Mapping[str, Any]) -> Done:
        """Append the message and open the run."""
        started = start_run(actor=actor, session_id=ids["session"], spec=spec)
        return Done({"run": str(started.id)}, to_json(started), 201)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The run as it was opened."""
        return to_json(run_facts(actor.tenant_id, resource["run"]))


class RunsView(WriteView):
    """The runs of a session."""

    write = StartRunWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="start_run",
            summary="Append a user message and open a run",
            tag="runs",
            answer=RUN,
            answer_note="The run. Its history is every item below its seed.",
            status=201,
            body=START_RUN,
            problems=("run_open", "session_ended", "stale_head", "invalid_content"),
        )
    }
