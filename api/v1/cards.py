"""`sessions/{session}/cards`: what each closed turn asked, did and answered."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.openapi import component_of, page_of
from api.schema import Operation, Operations, Parameters
from api.views import ReadView
from ctxengine.service.turns.cards import CardView, cards_page

CARD = component_of("TurnCardLine", CardView)


class CardsView(ReadView):
    """The cards of a session, oldest first."""

    parameters: ClassVar[Parameters] = {
        "after": pagination.sequence("Only turns with a higher number."),
        "limit": pagination.limit(),
        "cursor": pagination.cursor(int),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_cards",
            summary="Read the cards of a session's closed turns, oldest first",
            tag="sessions",
            answer=page_of("TurnCardPage", CARD),
            answer_note="One page. `recorded` names the event that holds a card; null for one made on demand.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """One page of cards."""
        query = self.query()
        page = cards_page(
            actor=self.actor(),
            session_id=session,
            after=max(query.get("cursor", [0])[0], query.get("after", 0)),
            size=query.get("limit", pagination.DEFAULT_LIMIT),
        )
        items = [to_json(_card(view)) for view in page.cards]
        shown = pagination.Page(items, None if page.after is None else [page.after])
        return json_response(shown.as_json())


def _card(view: CardView) -> dict[str, object]:
    facts = {name: getattr(view, name) for name in CardView.__slots__ if name != "card"}
    return {**facts, "card": None if view.card is None else view.card.model_dump(mode="json")}
