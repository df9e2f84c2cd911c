"""`requests`: what was sent, why it looked as it did, and the proof that it did."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.openapi import (
    FLAG,
    FREE,
    NUMBER,
    SHA256,
    TEXT,
    TIME,
    UUID_TEXT,
    WHOLE,
    component_of,
    listed,
    nullable,
    page_of,
    record,
)
from api.reads.requests import request_facts, request_page
from api.schema import Component, Operation, Operations, Parameters
from api.v1.assemble import BUDGET, CACHE, MANIFEST
from api.views import ReadView
from ctxengine.service.body_of_request import request_body
from ctxengine.service.diff import RequestDiff, diff_requests
from ctxengine.service.prove import replay_request

_LINE = {
    "id": UUID_TEXT,
    "session": UUID_TEXT,
    "run": UUID_TEXT,
    "number": {**WHOLE, "description": "Place in the session, from 1."},
    "run_number": WHOLE,
    "step": {**WHOLE, "description": "Place in the run, from 1."},
    "content_sequence": WHOLE,
    "act_sequence": WHOLE,
    "epoch": WHOLE,
    "engine": TEXT,
    "provider": TEXT,
    "model": TEXT,
    "request_sha256": SHA256,
    "prefix_sha256": SHA256,
    "wire_prefix_sha256": SHA256,
    "total_tokens": WHOLE,
    "body_bytes": WHOLE,
    "status": {"type": "string", "enum": ["built", "answered", "failed"]},
    "usage": {
        **FREE,
        "description": "As reported, in disjoint buckets; empty when not reported; null where nothing was said of a cache.",
    },
    "reconstructed": {**FLAG, "description": "Made from an import; never sent by us."},
    "created_at": TIME,
    "answered_at": nullable(TIME),
}
REQUEST_LINE = Component("RequestLine", record(_LINE))
REQUEST = Component(
    "Request",
    record(
        {
            **_LINE,
            "inputs": {**FREE, "description": "Everything that the build took."},
            "manifest": MANIFEST.ref,
            "budget": BUDGET.ref,
            "cache": CACHE.ref,
            "verdict": {
                **FREE,
                "description": "The reported cache figures against the predicted ones, with the cause of a shortfall; "
                "empty until answered.",
            },
            "error": FREE,
            "build_ms": NUMBER,
        }
    ),
    (MANIFEST, BUDGET, CACHE),
)
REPLAY = Component(
    "Replay",
    record(
        {
            "identical": FLAG,
            "verdict": {
                "type": "string",
                "enum": ["identical", "identical_except", "retired_builder", "different"],
            },
            "except": {**listed(TEXT), "description": "Kinds of blocks proved by digest alone."},
            "recorded_sha256": SHA256,
            "rebuilt_sha256": TEXT,
            "first_difference": nullable(TEXT),
            "request_id": UUID_TEXT,
        }
    ),
)
DIFF = component_of("RequestDiff", RequestDiff)


class RequestsView(ReadView):
    """The requests of a session."""

    parameters: ClassVar[Parameters] = {
        "run": pagination.identifier("Only requests of this run."),
        "status": pagination.word("Only this status.", "built", "answered", "failed"),
        "limit": pagination.limit(),
        "cursor": pagination.cursor(int),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_requests",
            summary="List a session's requests, oldest first",
            tag="requests",
            answer=page_of("RequestPage", REQUEST_LINE),
            answer_note="One page.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """One page of requests."""
        page = request_page(self.actor().tenant_id, session, self.query())
        return json_response(page.as_json())


class RequestView(ReadView):
    """One request."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_request",
            summary="Look at a request: manifest, budget, cache, inputs, usage",
            tag="requests",
            answer=REQUEST,
            answer_note="The request without its bytes.",
        )
    }

    def get(self, request: Request, wanted: UUID) -> HttpResponse:
        """The request's facts."""
        self.query()
        return json_response(to_json(request_facts(self.actor().tenant_id, wanted)))


class RequestBodyView(ReadView):
    """The bytes of a request."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_request_body",
            summary="Rebuild the provider's request body",
            tag="requests",
            answer=FREE,
            answer_note="The body as it was handed out.",
            problems=("content_gone",),
        )
    }

    def get(self, request: Request, wanted: UUID) -> HttpResponse:
        """The body, rebuilt from the ledger."""
        self.query()
        return json_response(request_body(actor=self.actor(), request_id=wanted))


class ReplayView(ReadView):
    """The proof of a request."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="replay_request",
            summary="Rebuild a request and compare its hash",
            tag="requests",
            answer=REPLAY,
            answer_note="The verdict, with both hashes.",
        )
    }

    def get(self, request: Request, wanted: UUID) -> HttpResponse:
        """The verdict."""
        self.query()
        replay = replay_request(actor=self.actor(), request_id=wanted)
        return json_response(
            to_json(
                {
                    "identical": replay.identical,
                    "verdict": replay.verdict,
                    "except": replay.except_,
                    "recorded_sha256": replay.recorded_sha256,
                    "rebuilt_sha256": replay.rebuilt_sha256,
                    "first_difference": replay.first_difference,
                    "request_id": replay.request_id,
                }
            )
        )


class DiffView(ReadView):
    """What changed between two requests."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="diff_requests",
            summary="Find the first changed byte of two requests, its row and its event",
            tag="requests",
            answer=DIFF,
            answer_note="The difference.",
        )
    }

    def get(self, request: Request, wanted: UUID, other: UUID) -> HttpResponse:
        """The difference from the first to the second."""
        self.query()
        found = diff_requests(actor=self.actor(), a=wanted, b=other)
        return json_response(to_json(found.as_json()))
