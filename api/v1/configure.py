"""`PATCH sessions/{session}`: another configuration from the next run on (design 7.16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import json_response, to_json
from api.auth import READ, Scopes
from api.edits import EITHER, PatchView
from api.openapi import component_of
from api.reads.sessions import session_facts
from api.schema import Operation, Operations
from api.shapes.containers import Record, build
from api.v1.sessions import OPEN_SESSION, SessionView
from api.views import Done, JsonWrite
from ctxengine.engine.lexeme import Node
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure, Configured
from ctxengine.service.specs import Actor

CONFIGURED = component_of("Configured", Configured)
CONFIGURE = Record(
    *(
        OPEN_SESSION.members[name]._replace(required=False)
        for name in ("model", "agent", "tools", "persona", "snapshot", "policy", "environment")
    ),
    spec=Configure,
)


class ConfigureWrite(JsonWrite[Configure]):
    """`PATCH sessions/{session}`."""

    def parse(self, body: Node) -> Configure:
        """The fields to change."""
        return build(Configure, CONFIGURE.read(body, ""))

    def perform(self, actor: Actor, spec: Configure, ids: Mapping[str, Any]) -> Done:
        """Record the choice."""
        done = configure_session(actor=actor, session_id=ids["session"], spec=spec)
        resource = {"fields": done.fields, "event_sequence": done.event_sequence}
        return Done(resource, to_json(done))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer."""
        return to_json(Configured(**resource))


class ConfiguredSessionView(PatchView):
    """One session: look at it, or choose another configuration."""

    scopes: ClassVar[Scopes] = {"GET": READ, "PATCH": EITHER}
    write = ConfigureWrite()
    operations: ClassVar[Operations] = {
        **SessionView.operations,
        "PATCH": Operation(
            id="configure_session",
            summary="Choose another model, agent, persona, policy, snapshot or environment",
            tag="sessions",
            answer=CONFIGURED,
            answer_note="What changes together at the next run's start, as one new epoch.",
            body=CONFIGURE,
            problems=(
                "session_ended",
                "agent_changed",
                "unsupported_provider",
                "invalid_schema",
                "duplicate_tool",
                "unknown_class",
                "summary_model_not_allowed",
                "invalid_content",
            ),
        ),
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """The session's facts."""
        self.query()
        return json_response(to_json(session_facts(self.actor().tenant_id, session)))
