"""`evidence/{id}`: one stored result in all its forms, and any part of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.auth import need_operate
from api.openapi import component_of
from api.problems import Problem
from api.schema import Operation, Operations, Parameters
from api.views import ReadView
from ctxengine.engine.evidence.window import LineRange, parse_range
from ctxengine.engine.ids import ItemId
from ctxengine.service.turns.evidence import Evidence, evidence_of

EVIDENCE = component_of("Evidence", Evidence)


class EvidenceView(ReadView):
    """One stored result."""

    parameters: ClassVar[Parameters] = {
        "lines": pagination.word("The lines wanted as `part`: one, or a range such as 1-200."),
        "chars": pagination.word(
            "The characters wanted as `part`, such as 1-8000; of the lines where both are named."
        ),
        "raw": pagination.RAW,
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_evidence",
            summary="Read a stored result in every form a request can show",
            tag="sessions",
            answer=EVIDENCE,
            answer_note="The result. Texts are as a model would see them, secrets masked.",
            parameters=parameters,
            problems=("invalid_parameter",),
        )
    }

    def get(self, request: Request, session: UUID, item: ItemId) -> HttpResponse:
        """The forms."""
        query = self.query()
        raw = query.get("raw", False)
        if raw:
            need_operate(request)
        found = evidence_of(
            actor=self.actor(),
            session_id=session,
            item=item,
            lines=_range(query, "lines"),
            chars=_range(query, "chars"),
            raw=raw,
        )
        return json_response(to_json({name: getattr(found, name) for name in Evidence.__slots__}))


class SessionEvidenceView(EvidenceView):
    """The same result, named inside its session."""

    operations: ClassVar[Operations] = {
        "GET": replace(EvidenceView.operations["GET"], id="get_session_evidence")
    }


def _range(query: dict[str, str], name: str) -> LineRange | None:
    if name not in query:
        return None
    found = parse_range(query[name])
    if found is None:
        raise Problem(
            "invalid_parameter",
            f"The query parameter {name}: send one number or a range such as 1-200.",
            parameter=name,
        )
    return found
