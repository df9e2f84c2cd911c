"""P8: the closed turns of a session, each with its card, its form in the newest request and its value to a directive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.ledger.models import ItemRow
from ctxengine.ledger.queries.request import BuiltManifest, manifests_since
from ctxengine.service.access import session_of
from ctxengine.service.turns.cards import CardView, cards_page
from ctxengine.service.turns.packets import packets_of
from ctxengine.service.turns.seen_by import PLANNED_ENGINES, PlanInForce, plan_in_force_of
from ctxengine.service.turns.values import values_for
from inspector.access import Viewer, member
from inspector.brackets import brackets_of, place_in
from inspector.filters import free, whole_number
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.reasons import FORM_WORDS, why
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.standing import span_of
from inspector.turn_contexts import Bracket, TurnsPage, TurnView

SHOWN = 50
MOST_CHARS = 4_000
_BAR = 90
Three = tuple[float, float, float]
"""Recency, relevance and anaphora."""
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
    directive = request.GET.get("for", "").strip()[:MOST_CHARS]
    asked = directive or newest_directive(viewer, head.id)
    plan = plan_in_force_of(actor=viewer.actor, session_id=head.id)
    shown = plan if not directive else None
    if shown is not None:
        values: Mapping[int, Three] = recorded_values(shown)
    else:
        session = session_of(viewer.actor, head.id)
        values = values_for(session, asked, newest=found.turns) if asked else {}
    packets = packets_of(actor=viewer.actor, session_id=head.id) if plan is not None else ()
    brackets = brackets_of(packets, plan.record.packet if plan is not None else None)
    first = found.cards[0].number if found.cards else 0
    turns = tuple(
        _view(card, newest, values.get(card.number), brackets, first) for card in found.cards
    )
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
        plan=shown,
        brackets=brackets,
        plans=head.engine in PLANNED_ENGINES,
    )
    return show(request, "session_turns.html", page)


def recorded_values(plan: PlanInForce) -> dict[int, Three]:
    """Recency, relevance and anaphora as a plan recorded them, for the turns that it ranked."""
    return {
        int(number): (recency / 1000, relevance / 1000, anaphora / 1000)
        for number, (recency, relevance, anaphora) in plan.record.values.items()
    }


def newest_directive(viewer: Viewer, session_id: UUID) -> str:
    """The beginning of the newest user message; empty where there is none."""
    row = (
        ItemRow.objects.filter(
            tenant_id=viewer.tenant_id, session_id=session_id, kind="user_message"
        )
        .order_by("-sequence", "-ordinal")
        .first()
    )
    return row.preview if row else ""


def _view(
    card: CardView,
    newest: BuiltManifest | None,
    values: Three | None,
    brackets: Sequence[Bracket],
    first: int,
) -> TurnView:
    span = None
    if newest is not None:
        span = span_of(newest.manifest, ItemId(EventSeq(card.first), 0), "user_message")
    recency, relevance, anaphora = values if values is not None else (None, None, None)
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
        brackets=tuple(place_in(bracket, card.number) for bracket in brackets),
        opened=tuple(
            bracket
            for bracket in brackets
            if card.number == max(first, bracket.packet.first) <= bracket.packet.last
        ),
    )


def _csv(turn: TurnView) -> tuple[object, ...]:
    card = turn.card.card
    return (
        turn.card.number, turn.card.first, turn.card.last, card.asked if card else "", card.narration if card else "",
        turn.card.outcome, turn.card.tokens_full, turn.card.tokens_card, turn.form, turn.recency, turn.relevance,
        turn.anaphora,
    )  # fmt: skip
