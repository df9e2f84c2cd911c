"""Probing a model by hand: whom it asks, how often, for how much, and which sessions feel it; then a reason; then the act."""

from __future__ import annotations

from decimal import Decimal

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ctxengine.ledger.queries.capacity import model_detail
from ctxengine.service.probe.forecast import ProbeForecast, probe_forecast
from ctxengine.service.probe.job import start_probe
from ctxengine.service.probe.run_probe import ProbeWanted
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.act_contexts import Figure
from inspector.capacity_contexts import ProbePage
from inspector.contexts import Crumb, Shell
from inspector.figures import dollars, number
from inspector.filters import free, read_whole
from inspector.pages.acts import MOST_REASON_CHARS, reason_of
from inspector.render import Twin, see_other, show
from inspector.visible import one_line

LEAST_MOST = (500, 2_000_000)
"""Bounds of the highest prompt that a form may ask for (tokens)."""
_SHOWN_AGAIN = frozenset({409, 422})
ASKS = {"most": free, "exact": free}


@require_http_methods(["GET", "HEAD", "POST"])
@member(asks=ASKS)
def probe(request: HttpRequest, viewer: Viewer, key: str) -> HttpResponse:
    """GET previews `?most=` and `?exact=`; POST starts the probe."""
    if request.method != "POST":
        return show(request, "probe.html", _page(request, viewer, key))
    viewer.must_operate("Probing")
    provider, _, model = key.partition("/")
    _page(request, viewer, key)
    try:
        wanted = ProbeWanted(
            provider=provider,
            model=model,
            largest=_largest(request),
            hosted=bool(request.POST.get("hosted")),
            exact=_exact(request),
        )
        reason = reason_of(request)
        start_probe(actor=viewer.actor, wanted=wanted, cause="the page of the model", note=reason)
    except ServiceError as refused:
        if refused.status not in _SHOWN_AGAIN:
            raise
        page = _page(request, viewer, key, refused.detail)
        return show(request, "probe.html", page, status=refused.status)
    return see_other(_back(viewer, key))


def _page(request: HttpRequest, viewer: Viewer, key: str, problem: str = "") -> ProbePage:
    provider, _, model = key.partition("/")
    if model_detail(viewer.tenant_id, provider, model) is None:
        raise Http404("No session used such a model, and it was never measured.")
    largest, told = None, problem
    try:
        largest = _largest(request)
    except ServiceError as refused:
        told = problem or refused.detail
    found = probe_forecast(
        tenant_id=viewer.tenant_id,
        provider=provider,
        model=model,
        largest=largest,
        exact=_exact(request),
    )
    above = reverse("inspector:models", args=[viewer.slug, Twin.HTML])
    return ProbePage(
        shell=Shell(
            viewer,
            f"Probe {one_line(key)}",
            "models",
            (Crumb("Models", above), Crumb(one_line(key), _back(viewer, key)), Crumb("Probe")),
        ),
        key=key,
        forecast=found,
        figures=_figures(key, found),
        sizes=", ".join(number(size) for size in found.bounds.rungs),
        most=_given(request, "most")[:20],
        exact=_exact(request),
        sibling=found.asked if found.asked != model else "",
        problem=told,
        reason=request.POST.get("reason", "")[:MOST_REASON_CHARS],
        hosted=bool(request.POST.get("hosted")),
        back=_back(viewer, key),
        allowed=viewer.is_operator,
    )


def _figures(key: str, found: ProbeForecast) -> tuple[Figure, ...]:
    least, most = found.bounds.least, found.bounds.most
    seconds = "its own machine, and time" if found.local else "nothing of it cached"
    return (
        Figure(
            "Asks",
            one_line(f"{key.partition('/')[0]}/{found.asked}"),
            "this machine's own" if found.local else "a hosted model: each call is paid for",
        ),
        Figure(
            "Calls",
            f"{number(len(least))} to about {number(found.bounds.most_calls)}",
            "by where it stops following; a call that fails is sent again up to three times",
        ),
        Figure("Prompt tokens", f"{number(sum(least))} to about {number(sum(most))}", seconds),
        Figure("Output tokens", f"at most about {number(found.bounds.most_output_tokens)}", ""),
        Figure("Price", *_price(found)),
        Figure(
            "Sessions touched",
            number(found.planned),
            f"of {number(found.sessions)} open ones of the model: their history is planned on its horizon from the next run on",
        ),
    )


def _price(found: ProbeForecast) -> tuple[str, str]:
    if found.local:
        return "nothing", "no provider charges for it"
    if found.least_usd is None or found.most_usd is None:
        return "unknown", "no price is known for this model"
    return f"{_usd(found.least_usd)} to about {_usd(found.most_usd)}", "at today's list prices"


def _usd(amount: Decimal) -> str:
    return dollars(f"{amount:f}")


def _given(request: HttpRequest, name: str) -> str:
    values = request.POST if request.method == "POST" else request.GET
    return values.get(name, "").strip()


def _exact(request: HttpRequest) -> bool:
    return bool(_given(request, "exact"))


def _largest(request: HttpRequest) -> int | None:
    """The highest prompt to try, or None where the form names none.

    Raises:
        ServiceError: `invalid_field` (422): it is no such number.
    """
    text = _given(request, "most").replace(",", "")
    size = read_whole(text, most=LEAST_MOST[1]) if text else None
    if text and (size is None or size < LEAST_MOST[0]):
        least, most = LEAST_MOST
        raise ServiceError(
            "invalid_field",
            422,
            f"The highest prompt is a number of tokens from {least:,} to {most:,}, or left empty.",
        )
    return size


def _back(viewer: Viewer, key: str) -> str:
    return reverse("inspector:model", args=[viewer.slug, key, Twin.HTML])
