"""`sessions/{session}/items/{item}`: one item's whole content, as received and as a model sees it."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.auth import need_operate
from api.openapi import FLAG, FREE, SHA256, TEXT, TIME, UUID_TEXT, WHOLE, listed, nullable, record
from api.reads.items import item_facts
from api.schema import Component, Operation, Operations, Parameters
from api.views import ReadView
from ctxengine.engine.ids import ItemId
from ctxengine.engine.items import ItemKind

ITEM = Component(
    "Item",
    record(
        {
            "id": {**TEXT, "description": "`sequence.ordinal`."},
            "kind": {"type": "string", "enum": [kind.value for kind in ItemKind]},
            "trust": TEXT,
            "run": nullable(UUID_TEXT),
            "name": {**TEXT, "description": "Tool name, of calls and results."},
            "call_id": {**TEXT, "description": "As received."},
            "wire_call_id": {**TEXT, "description": "As requests show it."},
            "source": TEXT,
            "is_error": FLAG,
            "tokens": WHOLE,
            "pointer_tokens": WHOLE,
            "bytes": WHOLE,
            "characters": WHOLE,
            "digest": SHA256,
            "recorded_at": TIME,
            "erased_at": nullable(TIME),
            "format": TEXT,
            "text": {**TEXT, "description": "Its text as a model would see it, secrets masked."},
            "text_base64": {
                "type": "string",
                "format": "byte",
                "description": "Its text as received, UTF-8 with surrogates passed through; secrets masked without `raw=1`.",
            },
            "arguments": nullable(
                {**TEXT, "description": "Call arguments as a model would see them."}
            ),
            "arguments_base64": nullable(
                {
                    "type": "string",
                    "format": "byte",
                    "description": "The same as received; secrets masked without `raw=1`.",
                }
            ),
            "parts": listed({**FREE, "description": "Kinds and measures of its parts."}),
            "body_base64": {
                "type": "string",
                "format": "byte",
                "description": "The whole body of its event as received; secrets masked without `raw=1`.",
            },
            "problem": {**TEXT, "description": "Why the content cannot be read, else empty."},
        }
    ),
)


class ItemView(ReadView):
    """One item of a session."""

    parameters: ClassVar[Parameters] = {"raw": pagination.RAW}
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_item",
            summary="Read an item whole",
            tag="sessions",
            answer=ITEM,
            answer_note="The item with its content.",
            parameters=parameters,
            problems=("invalid_parameter",),
        )
    }

    def get(self, request: Request, session: UUID, item: ItemId) -> HttpResponse:
        """The item."""
        raw = self.query().get("raw", False)
        if raw:
            need_operate(request)
        return json_response(to_json(item_facts(self.actor(), session, item, raw=raw)))
