"""What pages of acts share: a refused act shows its form again, with the reason kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from django.http import HttpRequest, HttpResponse

from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer
from inspector.act_contexts import ActPage, Figure
from inspector.figures import dollars, number
from inspector.render import see_other, show

MOST_REASON_CHARS = 2_000
_SHOWN_AGAIN = frozenset({409, 422})

Done = TypeVar("Done")


def reason_of(request: HttpRequest) -> str:
    """The reason given in a form, as it can be kept: what no column holds is shown in its place.

    Raises:
        ServiceError: `reason_required` (422), also for one that is too long to keep.
    """
    reason = model_view(request.POST.get("reason", "")).replace("\r\n", "\n").strip()
    if not reason:
        raise ServiceError(
            "reason_required",
            422,
            "Say why: the reason is kept with the event and in the audit log.",
        )
    if len(reason) > MOST_REASON_CHARS:
        raise ServiceError(
            "reason_required",
            422,
            f"The reason has {len(reason):,} characters; {MOST_REASON_CHARS:,} are kept. Shorten it.",
        )
    return reason


def answer(
    request: HttpRequest,
    viewer: Viewer,
    *,
    template: str,
    name: str,
    page: Callable[[], ActPage],
    act: Callable[[str], str],
) -> HttpResponse:
    """GET shows the preview; POST acts and goes on, or shows the preview again with what was wrong.

    Args:
        name: the act in words, for the refusal of a person who may not.
        page: makes the preview.
        act: does it with the reason given; gives the address to go on to.
    """
    if request.method != "POST":
        return show(request, template, page())
    viewer.must_operate(name)
    try:
        return see_other(act(reason_of(request)))
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        again = replace(
            page(),
            problem=refused.detail,
            reason=request.POST.get("reason", "")[:MOST_REASON_CHARS],
        )
        return show(request, template, again, status=refused.status)


def cost_figures(tokens: int, price: str | None, note: str) -> tuple[Figure, ...]:
    """Tokens cached anew and their price."""
    priced = "for writing them to the cache, once" if price else "no price is known for this model"
    return (
        Figure("Re-cached, once", f"{number(tokens)} tokens", note),
        Figure("Price", dollars(price), priced if tokens else "nothing is cached anew"),
    )
