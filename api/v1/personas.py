"""`personas`: what a principal says about themselves, in revisions (frozen-prefix spec, The persona row)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import json_response, to_json
from api.auth import READ, Scopes
from api.edits import EITHER, PutView
from api.openapi import component_of, listed, record
from api.pagination import sequence
from api.schema import Component, Operation, Operations, Parameters
from api.shapes.containers import ListOf, Member, Record, build
from api.shapes.scalars import PinnedText, Text, Whole
from api.views import Done, JsonWrite, ReadView
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.edit_persona import edit_persona, list_personas, persona_revision
from ctxengine.service.plan_specs import EditPersona, PersonaView
from ctxengine.service.specs import Actor

PERSONA = component_of("Persona", PersonaView)
EDIT_PERSONA = Record(
    Member(
        "revision",
        Whole(minimum=0),
        required=True,
        note="The revision that was read; 0 where nothing was saved yet. Another one is a 409.",
    ),
    Member("entries", ListOf(PinnedText()), required=True, note="The whole document, in order."),
    Member("note", Text(), note="For the people who ask later."),
    spec=EditPersona,
)


class EditPersonaWrite(JsonWrite[EditPersona]):
    """`PUT personas/{principal}`."""

    def parse(self, body: Node) -> EditPersona:
        """The whole document."""
        return build(EditPersona, EDIT_PERSONA.read(body, ""))

    def perform(self, actor: Actor, spec: EditPersona, ids: Mapping[str, Any]) -> Done:
        """Save the next revision."""
        saved = edit_persona(actor=actor, principal=model_view(ids["principal"]), spec=spec)
        resource = {"principal": saved.principal, "revision": saved.revision}
        return Done(resource, to_json(saved))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The revision that was saved."""
        return to_json(
            persona_revision(
                actor=actor, principal=resource["principal"], revision=resource["revision"]
            )
        )


class PersonasView(ReadView):
    """The personas of a tenant."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_personas",
            summary="List personas, each in its newest revision",
            tag="personas",
            answer=Component("PersonaList", record({"items": listed(PERSONA.ref)}), (PERSONA,)),
            answer_note="Every persona of the tenant, by principal.",
        )
    }

    def get(self, request: Request) -> HttpResponse:
        """Every persona."""
        self.query()
        return json_response(to_json({"items": list_personas(actor=self.actor())}))


class PersonaDocumentView(PutView):
    """One principal's persona."""

    scopes: ClassVar[Scopes] = {"GET": READ, "PUT": EITHER}
    write = EditPersonaWrite()
    parameters: ClassVar[Parameters] = {"revision": sequence("A revision; left out: the newest.")}
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_persona",
            summary="Read a persona",
            tag="personas",
            answer=PERSONA,
            answer_note="The newest revision, or the one asked for; revision 0 where nothing was saved.",
            parameters=parameters,
        ),
        "PUT": Operation(
            id="edit_persona",
            summary="Save a persona over the revision that was read",
            tag="personas",
            answer=PERSONA,
            answer_note="The new revision. Sessions adopt it at their next run's start.",
            body=EDIT_PERSONA,
            problems=("persona_stale", "plan_overflow", "invalid_content"),
        ),
    }

    def get(self, request: Request, principal: str) -> HttpResponse:
        """The document."""
        asked = self.query()
        found = persona_revision(
            actor=self.actor(), principal=model_view(principal), revision=asked.get("revision")
        )
        return json_response(to_json(found))
