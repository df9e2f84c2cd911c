"""`sessions/{session}/events`: the ledger itself."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response
from api.auth import need_operate
from api.openapi import FREE, TEXT, TIME, UUID_TEXT, WHOLE, nullable, page_of, record
from api.reads.events import event_page
from api.schema import Component, Operation, Operations, Parameters
from api.views import ReadView
from ctxengine.engine.events import EventType

BODY_FORMS = {
    "text": {**TEXT, "description": "As a model would see it, secrets masked."},
    "raw_base64": {
        "type": "string",
        "format": "byte",
        "description": "As received; secrets masked without `raw=1`.",
    },
    "erased_at": nullable(TIME),
}
EVENT = Component(
    "Event",
    record(
        {
            "sequence": WHOLE,
            "type": {"type": "string", "enum": [kind.value for kind in EventType]},
            "run": nullable(UUID_TEXT),
            "trust": TEXT,
            "payload": FREE,
            "body_length": {**WHOLE, "description": "Bytes."},
            "body_sha256": {**TEXT, "description": "Over salt and bytes; empty without a body."},
            "prev_hash": TEXT,
            "hash": TEXT,
            "recorded_at": TIME,
            "body": nullable(record(BODY_FORMS)),
        },
        optional=("body",),
    ),
)


class EventsView(ReadView):
    """The events of a session, oldest first."""

    parameters: ClassVar[Parameters] = {
        "after": pagination.sequence("Only events after this sequence."),
        "type": pagination.word("Only this type.", *(kind.value for kind in EventType)),
        "run": pagination.identifier("Only events of this run."),
        "bodies": pagination.flag("With the content of each event, secrets masked."),
        "raw": pagination.RAW,
        "limit": pagination.limit(),
        "cursor": pagination.cursor(int),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_events",
            summary="Read a session's events, oldest first",
            tag="sessions",
            answer=page_of("EventPage", EVENT),
            answer_note="One page; with bodies it may hold fewer events than `limit`.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """One page of events."""
        query = self.query()
        if query.get("raw"):
            need_operate(request)
        page = event_page(self.actor(), session, query)
        return json_response(page.as_json())
