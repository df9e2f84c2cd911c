"""`sessions/{session}/presentations`: the cards of a session, and what its user thinks of them and chooses on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.auth import Scopes
from api.edits import EITHER
from api.openapi import (
    FLAG,
    SHA256,
    TEXT,
    TIME,
    UUID_TEXT,
    WHOLE,
    listed,
    nullable,
    page_of,
    record,
)
from api.pagination import DEFAULT_LIMIT, Page
from api.schema import Component, Operation, Operations, Parameters
from api.shapes.containers import Member, Record, build
from api.shapes.scalars import Text
from api.views import Done, JsonWrite, ReadView, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.card_specs import GiveFeedback, SelectOnCard
from ctxengine.service.presentations.react import give_feedback, select_on_card
from ctxengine.service.presentations.read import presentation_of, presentations_page
from ctxengine.service.specs import Actor

PRESENTATION = Component(
    "Presentation",
    record(
        {
            "id": {**TEXT, "description": "Number of the event it stands in."},
            "turn": {**WHOLE, "description": "Event of the message that opened its turn."},
            "run": nullable(UUID_TEXT),
            "source": {**TEXT, "description": "Item it was made from."},
            "origin": {"type": "string", "enum": ["call", "fence"]},
            "tool": TEXT,
            "semantic_type": TEXT,
            "schema_version": WHOLE,
            "title": nullable(TEXT),
            "digest": nullable({**TEXT, "description": "What it is known by; secrets masked."}),
            "payload": nullable({**TEXT, "description": "JSON text of it, secrets masked."}),
            "payload_base64": nullable(
                {
                    "type": "string",
                    "format": "byte",
                    "description": "The canonical JSON as it is kept.",
                }
            ),
            "payload_sha256": SHA256,
            "identity_sha256": SHA256,
            "derived_from": listed({**TEXT, "description": "Results that stood before it."}),
            "trust": TEXT,
            "erased": FLAG,
            "reactions": listed(
                record(
                    {
                        "event": WHOLE,
                        "kind": {"type": "string", "enum": ["feedback", "selection"]},
                        "verdict": TEXT,
                        "text": nullable(TEXT),
                        "at": TIME,
                    }
                )
            ),
        }
    ),
)
GIVE_FEEDBACK = Record(
    Member("verdict", Text(), required=True, note="What the user thinks of it."),
    Member("note", Text()),
    spec=GiveFeedback,
)
SELECT_ON_CARD = Record(
    Member("choice", Text(), required=True, note="What the user chose, as the card names it."),
    spec=SelectOnCard,
)


class PresentationsView(ReadView):
    """The cards of a session, oldest first."""

    parameters: ClassVar[Parameters] = {
        "after": pagination.sequence("Only cards after this event."),
        "limit": pagination.limit(),
        "cursor": pagination.cursor(int),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_presentations",
            summary="Read a session's cards, oldest first",
            tag="sessions",
            answer=page_of("PresentationPage", PRESENTATION),
            answer_note="One page of cards.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """One page of cards."""
        query = self.query()
        size = query.get("limit", DEFAULT_LIMIT)
        after = max(query.get("cursor", [0])[0], query.get("after", 0))
        found = presentations_page(
            actor=self.actor(), session_id=session, after=after, limit=size + 1
        )
        shown = found[:size]
        next_key = [int(shown[-1]["id"])] if len(found) > len(shown) else None
        return json_response(Page([to_json(card) for card in shown], next_key).as_json())


class PresentationEventView(ReadView):
    """One card."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_presentation",
            summary="Read a card",
            tag="sessions",
            answer=PRESENTATION,
            answer_note="The card.",
        )
    }

    def get(self, request: Request, session: UUID, event: int) -> HttpResponse:
        """The card."""
        self.query()
        found = presentation_of(actor=self.actor(), session_id=session, event=event)
        return json_response(to_json(found))


class FeedbackWrite(JsonWrite[GiveFeedback]):
    """`POST sessions/{session}/presentations/{event}/feedback`."""

    def parse(self, body: Node) -> GiveFeedback:
        """The verdict and a note."""
        return build(GiveFeedback, GIVE_FEEDBACK.read(body, ""))

    def perform(self, actor: Actor, spec: GiveFeedback, ids: Mapping[str, Any]) -> Done:
        """Note it."""
        card = give_feedback(actor=actor, session_id=ids["session"], event=ids["event"], spec=spec)
        return _noted(card, ids)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The card as it stands."""
        return _again(actor, resource)


class SelectionWrite(JsonWrite[SelectOnCard]):
    """`POST sessions/{session}/presentations/{event}/selection`."""

    def parse(self, body: Node) -> SelectOnCard:
        """What was chosen."""
        return build(SelectOnCard, SELECT_ON_CARD.read(body, ""))

    def perform(self, actor: Actor, spec: SelectOnCard, ids: Mapping[str, Any]) -> Done:
        """Note it."""
        card = select_on_card(actor=actor, session_id=ids["session"], event=ids["event"], spec=spec)
        return _noted(card, ids)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The card as it stands."""
        return _again(actor, resource)


class FeedbackView(WriteView):
    """What a user thinks of a card."""

    scopes: ClassVar[Scopes] = {"POST": EITHER}
    write = FeedbackWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="give_feedback",
            summary="Note what the user thinks of a card",
            tag="sessions",
            answer=PRESENTATION,
            answer_note="The card with everything said of it.",
            body=GIVE_FEEDBACK,
            problems=("stale_head",),
        )
    }


class SelectionView(WriteView):
    """What a user chose on a card."""

    scopes: ClassVar[Scopes] = {"POST": EITHER}
    write = SelectionWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="select_on_card",
            summary="Note what the user chose on a card",
            tag="sessions",
            answer=PRESENTATION,
            answer_note="The card with everything said of it.",
            body=SELECT_ON_CARD,
            problems=("stale_head",),
        )
    }


def _noted(card: dict[str, Any], ids: Mapping[str, Any]) -> Done:
    return Done({"session": str(ids["session"]), "event": ids["event"]}, to_json(card))


def _again(actor: Actor, resource: Mapping[str, Any]) -> bytes:
    session, event = UUID(resource["session"]), resource["event"]
    return to_json(presentation_of(actor=actor, session_id=session, event=event))
