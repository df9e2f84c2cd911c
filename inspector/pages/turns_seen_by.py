"""P8: the session as another model would see it: planned anew on that model's profile, and nothing written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.capacity import model_lines
from ctxengine.service.turns.cards import CardView, cards_page
from ctxengine.service.turns.seen_by import (
    Forms,
    PlanInForce,
    SeenBy,
    TurnForm,
    plan_in_force_of,
    seen_by,
)
from inspector.access import Viewer, member
from inspector.filters import free, whole_number
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.pages.session_turns import MOST_CHARS, SHOWN, newest_directive
from inspector.render import Twin, show
from inspector.turn_contexts import FormCount, SeenByPage, SeenTurn

ASKS = {"model": free, "for": free, "after": whole_number}
FORM_WORDS: Mapping[TurnForm, str] = {
    TurnForm.PROMOTED: "whole, brought back",
    TurnForm.SENT: "whole, as it was sent",
    TurnForm.FULL: "whole, results as digests",
    TurnForm.CARD: "card",
    TurnForm.PACKET: "in the packet",
    TurnForm.BEHIND_RESET: "behind a reset",
}


@require_safe
@member(asks=ASKS)
def turns_seen_by(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """`?model=` names a known model; without it, the session's own."""
    head = head_or_404(viewer, session_id)
    own = f"{head.provider}/{head.model}"
    known = [f"{line.provider}/{line.model}" for line in model_lines(viewer.tenant_id)]
    models = tuple(dict.fromkeys([own, *known]))
    model = request.GET.get("model", "") or own
    given = request.GET.get("for", "").strip()[:MOST_CHARS]
    directive = given or newest_directive(viewer, head.id)
    problem = (
        "" if model in models else "No session used a model of that name, and none was measured."
    )
    seen = None
    if not problem:
        provider, _, name = model.partition("/")
        seen = seen_by(
            actor=viewer.actor,
            session_id=head.id,
            provider=provider,
            model=name,
            directive=directive,
        )
    plan = plan_in_force_of(actor=viewer.actor, session_id=head.id)
    found = cards_page(
        actor=viewer.actor, session_id=head.id, after=whole(request, "after") or 0, size=SHOWN
    )
    # A turn that no event closed yet stands in no plan.
    cards = [] if seen is None else [c for c in found.cards if c.number <= seen.record.turns]
    page = SeenByPage(
        shell=shell_of(viewer, head, "As seen by another model"),
        frame=frame_of(viewer, head, "session-turns"),
        models=models,
        model=model,
        problem=problem,
        directive=directive,
        given=given,
        seen=seen,
        plan=plan,
        counts=_counts(seen, plan) if seen is not None else (),
        turns=_turns(cards, seen, plan) if seen is not None else (),
        after=found.after,
    )
    return show(request, "session_seen_by.html", page, twin, status=404 if problem else 200)


def _counts(seen: SeenBy, plan: PlanInForce | None) -> tuple[FormCount, ...]:
    then = Forms(seen.record).counts()
    now = Forms(plan.record).counts() if plan is not None else None
    counts = [
        FormCount(form.value, words, then[form], now[form] if now is not None else None)
        for form, words in FORM_WORDS.items()
    ]
    return tuple(count for count in counts if count.turns or count.now)


def _turns(
    cards: Sequence[CardView], seen: SeenBy, plan: PlanInForce | None
) -> tuple[SeenTurn, ...]:
    then, now = Forms(seen.record), Forms(plan.record) if plan is not None else None
    known = plan.record.turns if plan is not None else 0
    return tuple(
        _turn(
            card,
            seen,
            then.of(card.number),
            now.of(card.number) if now is not None and card.number <= known else None,
        )
        for card in cards
    )


def _turn(card: CardView, seen: SeenBy, form: TurnForm, now: TurnForm | None) -> SeenTurn:
    values = seen.record.values.get(str(card.number))
    recency, relevance, anaphora = (None, None, None) if values is None else values
    return SeenTurn(
        card=card,
        now=FORM_WORDS[now] if now is not None else "",
        form=form.value,
        form_words=FORM_WORDS[form],
        differs=now is not None and now is not form,
        recency=None if recency is None else recency / 1000,
        relevance=None if relevance is None else relevance / 1000,
        anaphora=None if anaphora is None else anaphora / 1000,
    )
