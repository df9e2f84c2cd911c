"""`sessions/{session}/export`: a session in the format of another tool."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import joined, json_response, to_json
from api.auth import need_operate
from api.openapi import FREE
from api.schema import Component, Operation, Operations, Parameters
from api.views import ReadView
from ctxengine.engine.exporters.registry import FORMATS
from ctxengine.service.export_session import export_session

FORMAT_HEADER = "Export-Format"
LEFT_OUT_HEADER = "Export-Left-Out"


class ExportView(ReadView):
    """A session as a document that other tools read."""

    parameters: ClassVar[Parameters] = {
        "format": pagination.word(
            "The format; left out, the one that holds most of the session.", *FORMATS
        ),
        "report": pagination.flag(
            "Answer `{format, left_out, document}`; without it the document alone."
        ),
        "raw": pagination.RAW,
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="export_session",
            summary="Export a session",
            tag="sessions",
            answer=Component("SessionExport", FREE),
            answer_note="The document in its format, or the report with it.",
            parameters=parameters,
            problems=("invalid_parameter", "content_gone"),
            description=(
                f"Headers: `{FORMAT_HEADER}` names the format, `{LEFT_OUT_HEADER}` counts what the format "
                "has no place for; `report=1` lists it. Import the document to get the same items again."
            ),
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """The document."""
        query = self.query()
        raw = query.get("raw", False)
        if raw:
            need_operate(request)
        made = export_session(
            actor=self.actor(), session_id=session, format=query.get("format", ""), raw=raw
        )
        body = made.text.encode()
        if query.get("report", False):
            lines = to_json([line.as_json() for line in made.left_out])
            body = joined({"format": to_json(made.format), "left_out": lines, "document": body})
        response = json_response(body)
        response[FORMAT_HEADER] = made.format
        response[LEFT_OUT_HEADER] = str(sum(line.items for line in made.left_out))
        return response
