"""P7: the epochs of a session: why each began, who asked for it, what it re-cached; two of them compared."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.plan.epochs import RULE_OF_REASON, EpochReason
from ctxengine.ledger.queries.epochs import epoch_acts, plan_parts
from ctxengine.ledger.queries.plans import epochs
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.rotation import Rotation
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.act_contexts import EpochDiffPage, EpochsPage, EpochView, Figure
from inspector.contexts import Crumb
from inspector.epochdiff import PlanComparison, compare_plans
from inspector.filters import free, page_size, size_of, whole_number
from inspector.forecast import rotation_at_next_run
from inspector.pages.acts import cost_figures
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.windows import window

CSV_HEADER = (
    "epoch", "reasons", "note", "actor", "prefix_tokens", "recached_tokens", "price_usd",
    "prefix_sha256", "wire_prefix_sha256", "sequence", "created_at",
)  # fmt: skip
ASKS = {"made": whole_number, "size": page_size, "after": free}


@require_safe
@member(asks=ASKS)
def session_epochs(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """All epochs, newest first, and what the next run's start would rotate."""
    head = head_or_404(viewer, session_id)
    views = epoch_views(viewer, head)
    if twin is Twin.CSV:
        return csv_stream("epochs", CSV_HEADER, (_csv(view) for view in views))
    if twin is Twin.JSON:
        return json_stream(views)
    turned, problem = _upcoming(viewer, head)
    prices = [view.act.price_usd for view in views if view.act and view.act.recached_tokens]
    known = [Decimal(price) for price in prices if price is not None]
    page = EpochsPage(
        shell=shell_of(viewer, head, "Epochs"),
        frame=frame_of(viewer, head, "session-epochs"),
        page=window(
            views,
            request.GET.get("after", ""),
            lambda view: view.line.epoch,
            size_of(request),
        ),
        total=len(views),
        recached_tokens=sum(view.act.recached_tokens for view in views if view.act),
        price_usd=f"{sum(known):f}" if known else None,
        unpriced=len(prices) - len(known),
        upcoming=_figures(turned) if turned else (),
        upcoming_reasons=meanings(turned.reasons) if turned else (),
        upcoming_problem=problem,
        made=whole(request, "made"),
        may_act=viewer.is_operator and head.state == "open",
    )
    return show(request, "session_epochs.html", page)


@require_safe
@member(asks={"after": whole_number, "before": whole_number})
def epoch_diff(request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin) -> HttpResponse:
    """Two epochs, `?before=` and `?after=`; left out: the newest and the one before it."""
    head = head_or_404(viewer, session_id)
    after = whole(request, "after") or head.epoch
    before = whole(request, "before") or max(1, after - 1)
    shell = shell_of(viewer, head, f"Epoch {before} → {after}")
    address = reverse("inspector:session-epochs", args=[viewer.slug, head.id, Twin.HTML])
    crumbs = (*shell.crumbs[:-1], Crumb("Epochs", address), shell.crumbs[-1])
    page = EpochDiffPage(
        shell=type(shell)(viewer, shell.title, shell.active, crumbs),
        frame=frame_of(viewer, head, "session-epochs"),
        comparison=_compared(viewer, head, before, after),
        epochs=tuple(line.epoch for line in epochs(viewer.tenant_id, head.id)),
    )
    return show(request, "epoch_diff.html", page, twin)


def epoch_views(viewer: Viewer, head: SessionHead) -> tuple[EpochView, ...]:
    """Epochs with the acts that began them. Three queries."""
    lines = epochs(viewer.tenant_id, head.id)
    acts = epoch_acts(viewer.tenant_id, head.id, lines)
    return tuple(EpochView(line, acts.get(line.epoch), meanings(line.reasons)) for line in lines)


def meanings(reasons: Sequence[str]) -> tuple[str, ...]:
    """What reasons mean; a code that no table knows stands for itself."""
    known = {reason.value: RULE_OF_REASON[reason].meaning for reason in EpochReason}
    return tuple(known.get(reason, reason) for reason in reasons)


def _compared(viewer: Viewer, head: SessionHead, before: int, after: int) -> PlanComparison | None:
    if before == after == 1:
        return None
    sides = [plan_parts(viewer.tenant_id, head.id, epoch) for epoch in (before, after)]
    if sides[0] is None or sides[1] is None:
        raise Http404("No such epoch.")
    return compare_plans(sides[0], sides[1])


def _upcoming(viewer: Viewer, head: SessionHead) -> tuple[Rotation | None, str]:
    try:
        return rotation_at_next_run(actor=viewer.actor, session_id=head.id), ""
    except ServiceError as refused:
        return None, refused.detail


def _figures(turned: Rotation) -> tuple[Figure, ...]:
    price = turned.price.usd if turned.price else None
    return cost_figures(turned.recached_tokens, price, f"of epoch {turned.plan.epoch}'s prefix")


def _csv(view: EpochView) -> tuple[object, ...]:
    line, act = view.line, view.act
    return (
        line.epoch, " ".join(line.reasons), act.note if act else "", act.actor if act else "",
        line.prefix_tokens, act.recached_tokens if act else None, act.price_usd if act else None,
        line.prefix_sha256, line.wire_prefix_sha256, line.sequence, line.created_at,
    )  # fmt: skip
