"""`imports`: foreign transcripts become sessions, with a repair report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from django.http import HttpResponse
from rest_framework.request import Request

from api import idempotency, pagination
from api.answers import json_response, to_json
from api.auth import OPERATE, READ, Scopes, actor_of
from api.bodies import body_bytes, check_length, media_type
from api.openapi import FREE, SHA256, TEXT, TIME, UUID_TEXT, WHOLE, listed, record
from api.pagination import parameters_of
from api.problems import Problem
from api.reads.imports import import_facts
from api.schema import Component, Operation, Operations, Parameters
from api.views import ApiView, Done, ReadView, Write, answered
from ctxengine.service.import_transcript import import_file
from ctxengine.service.specs import Actor

IMPORT = Component(
    "Import",
    record(
        {
            "sha256": SHA256,
            "name": TEXT,
            "format": TEXT,
            "sessions": listed(UUID_TEXT),
            "items_in": WHOLE,
            "items_kept": WHOLE,
            "items_set_aside": {**WHOLE, "description": "Told in the report instead."},
            "report": listed({**FREE, "description": "One line of the repair report."}),
            "created_at": TIME,
        }
    ),
)
IMPORTED = Component(
    "Imported",
    record(
        {
            "outcome": {"type": "string", "enum": ["imported", "unchanged"]},
            "import": IMPORT.ref,
        }
    ),
    (IMPORT,),
)
_NAME = pagination.word("Name of the file, for people; a multipart part brings its own.")
_DEFAULT_NAME = "transcript"


class SentFile(NamedTuple):
    """A file as it was sent."""

    name: str
    data: bytes


class ImportWrite(Write[SentFile]):
    """`POST imports`."""

    repeatable = True

    def perform(self, actor: Actor, spec: SentFile, ids: Mapping[str, Any]) -> Done:
        """Import it; a file that was imported before changes nothing."""
        outcome = import_file(actor=actor, name=spec.name, data=spec.data)
        if outcome.status == "refused":
            raise Problem("import_refused", outcome.reason, format=outcome.format or None)
        resource = {"sha256": outcome.sha256, "outcome": str(outcome.status)}
        status = 201 if outcome.status == "imported" else 200
        return Done(resource, self.rebuild(actor, resource), status)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The import with its report."""
        facts = import_facts(actor.tenant_id, resource["sha256"])
        return to_json({"outcome": resource["outcome"], "import": facts})


class ImportsView(ApiView):
    """Imports of a tenant."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = ImportWrite()
    parameters: ClassVar[Parameters] = {"name": _NAME}
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="import_transcript",
            summary="Import a transcript",
            tag="imports",
            answer=IMPORTED,
            answer_note="Imported.",
            status=201,
            more_statuses={200: "This content was imported before; nothing changed."},
            body_contents={
                "application/octet-stream": {"type": "string", "format": "binary"},
                "application/json": {},
                "multipart/form-data": record({"file": {"type": "string", "format": "binary"}}),
            },
            parameters=parameters,
            problems=("import_refused", "invalid_parameter"),
        )
    }

    def post(self, request: Request) -> HttpResponse:
        """Import one file, raw or as the multipart part `file`."""
        key = idempotency.key_of(request)
        name = parameters_of(request, self.parameters).get("name", "")
        sent = sent_file(request, name)
        actor = actor_of(request, key)
        content = (sent.name.encode(), sent.data)
        return answered(request, actor, self.write, sent, {}, *content)


class ImportView(ReadView):
    """One import."""

    scopes: ClassVar[Scopes] = {"GET": READ}
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_import",
            summary="Look at an import and its repair report",
            tag="imports",
            answer=IMPORT,
            answer_note="The import.",
        )
    }

    def get(self, request: Request, sha256: str) -> HttpResponse:
        """The import."""
        self.query()
        return json_response(to_json(import_facts(self.actor().tenant_id, sha256)))


def sent_file(request: Request, name: str) -> SentFile:
    """The file in a request's body.

    Raises:
        Problem: it is too large, broken, empty, or not in a part named `file`.
    """
    check_length(request)
    try:
        kind, _ = media_type(request)
    except ValueError:
        kind = ""
    if kind != "multipart/form-data":
        data = body_bytes(request)
        if not data:
            raise Problem("missing_field", "The body is empty; send the file as the body.")
        return SentFile(name or _DEFAULT_NAME, data)
    files = request._request.FILES
    uploads = files.getlist("file")
    if len(uploads) != 1 or len(files) != 1 or request._request.POST:
        raise Problem("missing_field", "Send exactly one multipart part, a file named `file`.")
    given = uploads[0].name or ""
    shown = "".join(char for char in given if char.isprintable())[:300]
    return SentFile(name or shown or _DEFAULT_NAME, uploads[0].read())
