"""`sessions/{session}/working-state`: what the session must not forget, and the user's hand on its constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import json_response, to_json
from api.auth import READ, Scopes
from api.edits import EITHER, PatchView
from api.openapi import FLAG, FREE, TEXT, WHOLE, listed, nullable, record
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build, texts
from api.shapes.scalars import Text
from api.views import Done, JsonWrite
from ctxengine.engine.lexeme import Node
from ctxengine.service.specs import Actor, ChangeConstraints
from ctxengine.service.working_state import change_constraints, working_state_view

_ENTRY = {"trust": TEXT, "sequence": WHOLE}
WORKING_STATE = Component(
    "WorkingState",
    record(
        {
            "objective": nullable(record({**_ENTRY, "text": TEXT, "supersedes": nullable(WHOLE)})),
            "constraints": listed(record({**_ENTRY, "id": TEXT, "text": TEXT})),
            "tasks": listed(
                record(
                    {
                        **_ENTRY,
                        "id": TEXT,
                        "title": TEXT,
                        "status": {
                            "type": "string",
                            "enum": ["open", "active", "blocked", "completed", "dropped"],
                        },
                        "tool": TEXT,
                        "call_id": TEXT,
                    }
                )
            ),
            "facts": listed(
                record(
                    {
                        **_ENTRY,
                        "id": TEXT,
                        "statement": TEXT,
                        "source_event_ids": listed(WHOLE),
                        "origin": TEXT,
                        "established_at": TEXT,
                    }
                )
            ),
            "questions": listed(record({**_ENTRY, "id": TEXT, "text": TEXT, "call_id": TEXT})),
            "next_action": nullable(record({**_ENTRY, "text": TEXT})),
            "run": nullable(TEXT),
            "through": WHOLE,
            "event": nullable(WHOLE),
            "tokens": WHOLE,
            "cap_tokens": WHOLE,
            "erased": FLAG,
            "caps": FREE,
            "carry": FREE,
        }
    ),
)
CHANGE_CONSTRAINTS = Record(
    Member("remove_constraints", texts(), note="Ids of constraints to lift."),
    Member("add_constraints", texts()),
    Member("principal", Text(), note="On whose behalf; a runtime's key must name it."),
    Member("note", Text()),
    spec=ChangeConstraints,
)


class ChangeConstraintsWrite(JsonWrite[ChangeConstraints]):
    """`PATCH sessions/{session}/working-state`."""

    def parse(self, body: Node) -> ChangeConstraints:
        """What to lift and what to add."""
        return build(ChangeConstraints, CHANGE_CONSTRAINTS.read(body, ""))

    def perform(self, actor: Actor, spec: ChangeConstraints, ids: Mapping[str, Any]) -> Done:
        """Change the constraints."""
        view = change_constraints(actor=actor, session_id=ids["session"], spec=spec)
        return Done({"session": str(ids["session"])}, to_json(view.as_json()))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The state as it stands."""
        view = working_state_view(actor=actor, session_id=UUID(resource["session"]))
        return to_json(view.as_json())


class WorkingStateView(PatchView):
    """A session's working state."""

    scopes: ClassVar[Scopes] = {"GET": READ, "PATCH": EITHER}
    write = ChangeConstraintsWrite()
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_working_state",
            summary="Look at a session's working state",
            tag="sessions",
            answer=WORKING_STATE,
            answer_note="The state, with the trust and the event of each entry, its caps and carry rules.",
        ),
        "PATCH": Operation(
            id="change_constraints",
            summary="Lift or add constraints on the user's behalf",
            tag="sessions",
            answer=WORKING_STATE,
            answer_note="The state after the change. The next step shows it.",
            body=CHANGE_CONSTRAINTS,
            problems=(
                "principal_required",
                "unknown_constraint",
                "constraints_full",
                "working_state_full",
                "session_ended",
                "stale_head",
            ),
        ),
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """The state as it stands."""
        self.query()
        view = working_state_view(actor=self.actor(), session_id=session)
        return json_response(to_json(view.as_json()))
