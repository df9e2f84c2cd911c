"""P8: the closed turns of a session, each with its card, its form in the newest request and its value to a directive."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.ledger.models import ItemRow
from ctxengine.ledger.queries.request import BuiltManifest, manifests_since
from ctxengine.service.access import session_of
from ctxengine.service.turns.cards import CardView, cards_page
from ctxengine.service.turns.values import values_for
from inspector.access import Viewer, member
from inspector.filters import free, whole_number
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.reasons import FORM_WORDS, why
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.standing import span_of
from inspector.turn_contexts import TurnsPage, TurnView

SHOWN = 50
_MOST_CHARS = 4_000
_BAR = 90
ASKS = {"for": free, "after": whole_number}
CSV_HEADER = (
    "turn", "first_event", "last_event", "asked", "answered", "outcome", "tokens_full", "tokens_card", "form",
    "recency", "relevance", "anaphora",
)  # fmt: skip


@require_safe
@member(asks=ASKS)
def session_turns(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """Fifty turns, oldest first; `?for=` asks what they are worth to another directive."""
    head = head_or_404(viewer, session_id)
    after = whole(request, "after") or 0
    found = cards_page(actor=viewer.actor, session_id=head.id, after=after, size=SHOWN)
    newest = next(iter(manifests_since(viewer.tenant_id, head.id, 0, most=1)), None)
    directive = request.GET.get("for", "").strip()[:_MOST_CHARS]
    asked = directive or _newest_directive(viewer, head.id)
    values = (
        values_for(session_of(viewer.actor, head.id), asked, newest=found.turns) if asked else {}
    )
    turns = tuple(_view(card, newest, values.get(card.number)) for card in found.cards)
    if twin is Twin.CSV:
        return csv_stream("turns", CSV_HEADER, map(_csv, turns))
    if twin is Twin.JSON:
        return json_stream(turns)
    page = TurnsPage(
        shell=shell_of(viewer, head, "Turns"),
        frame=frame_of(viewer, head, "session-turns"),
        turns=turns,
        total=found.turns,
        after=found.after,
        asked=asked,
        given=directive,
        newest=newest,
    )
    return show(request, "session_turns.html", page)


def _newest_directive(viewer: Viewer, session_id: UUID) -> str:
    """The beginning of the newest user message; empty where there is none."""
    row = (
        ItemRow.objects.filter(
            tenant_id=viewer.tenant_id, session_id=session_id, kind="user_message"
        )
        .order_by("-sequence", "-ordinal")
        .first()
    )
    return row.preview if row else ""


def _view(card: CardView, newest: BuiltManifest | None, values: object) -> TurnView:
    span = None
    if newest is not None:
        span = span_of(newest.manifest, ItemId(EventSeq(card.first), 0), "user_message")
    recency, relevance, anaphora = values if isinstance(values, tuple) else (None, None, None)
    known = [value for value in (recency, relevance, anaphora) if value is not None]
    return TurnView(
        card=card,
        form=span.form.value if span else "",
        form_words=FORM_WORDS[span.form] if span else "",
        reason=why(span, newest.manifest.cut) if span and newest else "",
        recency=recency,
        relevance=relevance,
        anaphora=anaphora,
        value=max(known) if known else None,
        bar=round(_BAR * min(1.0, max(known))) if known else 0,
    )


def _csv(turn: TurnView) -> tuple[object, ...]:
    card = turn.card.card
    return (
        turn.card.number, turn.card.first, turn.card.last, card.asked if card else "", card.narration if card else "",
        turn.card.outcome, turn.card.tokens_full, turn.card.tokens_card, turn.form, turn.recency, turn.relevance,
        turn.anaphora,
    )  # fmt: skip
