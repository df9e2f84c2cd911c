"""Rotating by hand: the preview says what is re-cached and what changes; then a reason; then the act."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ctxengine.engine.plan.epochs import RULE_OF_REASON, EpochReason
from ctxengine.ledger.queries.epochs import parts_of
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.rotate_epoch import BY_HAND, rotate_epoch
from ctxengine.service.rotation import Rotation
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.act_contexts import ActPage, Figure
from inspector.contexts import SessionFrame
from inspector.epochdiff import compare_plans
from inspector.figures import number, signed
from inspector.forecast import open_run_number, rotation_by_hand
from inspector.pages.acts import answer, cost_figures
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin

_REASONS = tuple(sorted((reason for reason in BY_HAND), key=lambda reason: reason.value))


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def rotate(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """GET previews `?why=` and `?tool=`; POST begins the epoch."""
    head = head_or_404(viewer, session_id)
    return answer(
        request,
        viewer,
        template="rotate.html",
        name="Rotating an epoch",
        page=lambda: _page(request, viewer, head_or_404(viewer, session_id)),
        act=lambda reason: _rotate(request, viewer, head, reason),
    )


def _rotate(request: HttpRequest, viewer: Viewer, head: SessionHead, reason: str) -> str:
    seen = request.POST.get("epoch", "")
    made = rotate_epoch(
        actor=viewer.actor,
        session_id=head.id,
        reason=_why(request).value,
        note=reason,
        tools=_tools(request),
        # The preview was made for this epoch; a number nobody sent is one that no session is at.
        expected_epoch=int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0,
    )
    address = reverse("inspector:session-epochs", args=[viewer.slug, head.id, Twin.HTML])
    return f"{address}?made={made.epoch}#epoch-{made.epoch}"


def _page(request: HttpRequest, viewer: Viewer, head: SessionHead) -> ActPage:
    why, tools = _why(request), _tools(request)
    turned, blocked = _forecast(viewer, head, why, tools)
    frame: SessionFrame = frame_of(viewer, head, "session-epochs")
    roster = [tool.name for tool in turned.old.tools if not tool.control] if turned else []
    return ActPage(
        shell=shell_of(viewer, head, "Rotate the epoch"),
        frame=frame,
        heading=f"Rotate to epoch {head.epoch + 1}",
        explains=(
            "The prefix is resolved anew and pinned from the next step on. What it pins is otherwise unchanged; saved personas,"
            " other models and policies come with the next run's start."
        ),
        figures=_figures(viewer, head, turned) if turned else (),
        blocked=blocked,
        hidden=(
            ("why", why.value),
            ("epoch", str(head.epoch)),
            *(("tool", name) for name in tools),
        ),
        button=f"Rotate to epoch {head.epoch + 1}",
        back=reverse("inspector:session-epochs", args=[viewer.slug, head.id, Twin.HTML]),
        allowed=viewer.is_operator,
        comparison=compare_plans(parts_of(turned.old), parts_of(turned.plan)) if turned else None,
        choices={
            "why": why.value,
            "reasons": [(reason.value, RULE_OF_REASON[reason].meaning) for reason in _REASONS],
            "tools": [(name, name in tools) for name in (roster or tools)],
        },
    )


def _why(request: HttpRequest) -> EpochReason:
    given = request.POST.get("why") or request.GET.get("why") or EpochReason.OPERATOR.value
    known = {reason.value: reason for reason in _REASONS}
    if given not in known:
        raise ServiceError(
            "unknown_reason", 422, f"By hand an epoch rotates for: {', '.join(known)}."
        )
    return known[given]


def _tools(request: HttpRequest) -> list[str]:
    if _why(request) is not EpochReason.TOOL_REMOVED_FOR_SECURITY:
        return []
    values = request.POST if request.method == "POST" else request.GET
    return sorted(set(values.getlist("tool")))


def _forecast(
    viewer: Viewer, head: SessionHead, why: EpochReason, tools: list[str]
) -> tuple[Rotation | None, str]:
    removing = why is EpochReason.TOOL_REMOVED_FOR_SECURITY
    try:
        turned = rotation_by_hand(actor=viewer.actor, session_id=head.id, reason=why, tools=tools)
    except ServiceError as refused:
        return None, refused.detail
    return turned, "Choose the tools that leave the prompt." if removing and not tools else ""


def _figures(viewer: Viewer, head: SessionHead, turned: Rotation) -> tuple[Figure, ...]:
    price = turned.price.usd if turned.price else None
    note = (
        "the whole prefix; the body behind it follows at the next request"
        if turned.recached_tokens
        else "the bytes stay as they are"
    )
    run = open_run_number(viewer.actor, head.id)
    return (
        *cost_figures(turned.recached_tokens, price, note),
        Figure(
            "Prefix",
            f"{number(turned.old.prefix_tokens)} → {number(turned.plan.prefix_tokens)}",
            f"{signed(turned.plan.prefix_tokens - turned.old.prefix_tokens)} tokens in each request",
        ),
        Figure(
            "Sessions touched",
            "1",
            f"this one; run {run} is open and its next step uses it"
            if run
            else "this one; no run is open",
        ),
    )
