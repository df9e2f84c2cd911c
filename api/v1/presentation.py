"""`sessions/{session}/presentation`: pin, fold or exclude part of the history by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from api.answers import stored_json
from api.auth import OPERATE, Scopes
from api.openapi import TEXT, WHOLE, component_of, listed, nullable, record
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build
from api.shapes.scalars import Flag, Text
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.engine.lexeme import Node
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import Actor, Present

PRESENTED = Component(
    "Presented",
    record(
        {
            "event": nullable(WHOLE),
            "form": TEXT,
            "sequences": listed(WHOLE),
            "item": nullable(TEXT),
            "verdict": component_of("PresentationCost", NetCost).schema,
            "reasoning_dropped": WHOLE,
        }
    ),
)
PRESENT = Record(
    Member("target", Text(), required=True, note="An event such as 12, or an item such as 12.0."),
    Member("form", Text(), required=True, note="How it is to stand in requests."),
    Member("scope", Text(), note="What is meant by the target."),
    Member("preview", Flag(), note="Say what it would save and re-cache, and change nothing."),
    Member("note", Text()),
    spec=Present,
)


class PresentWrite(JsonWrite[Present]):
    """`POST sessions/{session}/presentation`."""

    def parse(self, body: Node) -> Present:
        """Target and form."""
        return build(Present, PRESENT.read(body, ""))

    def perform(self, actor: Actor, spec: Present, ids: Mapping[str, Any]) -> Done:
        """Write the act."""
        done = set_presentation(actor=actor, session_id=ids["session"], spec=spec)
        return Done(done.as_json(), stored_json(done.as_json()))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer."""
        return stored_json(dict(resource))


class PresentationView(WriteView):
    """How parts of a session's history stand in requests."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = PresentWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="set_presentation",
            summary="Pin, fold or exclude part of the history, or release it",
            tag="sessions",
            answer=PRESENTED,
            answer_note="What the act marks, what it saves in each request, and what it re-caches once.",
            body=PRESENT,
            problems=("invalid_target", "session_ended", "stale_head"),
        )
    }
