"""P11: models in use, what each can really use, and the probe that measures it."""

from __future__ import annotations

import re

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.capacity.profile import CapacityProfile, Stale, measured, why_stale
from ctxengine.ledger.queries.capacity import (
    ModelLine,
    model_detail,
    model_lines,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.probe.profiles import is_local, profile_of
from inspector.access import Viewer, member
from inspector.capacity_contexts import ModelPage, ModelsPage, ModelView
from inspector.contexts import Crumb, Shell
from inspector.ladder_plot import ladder_plot
from inspector.render import Twin, csv_stream, fragment, json_stream, show

CSV_HEADER = (
    "provider", "model", "sessions", "declared_window", "verified_window", "horizon", "confidence", "measured_at",
    "cache", "factor", "samples",
)  # fmt: skip
STALE_WORDS = {
    Stale.NEVER_PROBED: "never probed",
    Stale.CHANGED: "another model answers to this name",
    Stale.OTHER_LADDER: "measured by an earlier ladder",
    Stale.TIGHTENED: "a real turn went wrong near the horizon",
    Stale.OLD: "too old",
}
"""Why a new probe is due."""
_ADDRESSED = re.compile(r"[a-z-]{2,32}/[^\x00-\x1f]{1,200}?")


@require_safe
@member(asks={})
def models(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """The list."""
    views = tuple(_view(viewer, line) for line in model_lines(viewer.tenant_id))
    if twin is Twin.CSV:
        return csv_stream("models", CSV_HEADER, (_csv(view) for view in views))
    if twin is Twin.JSON:
        return json_stream(view.line for view in views)
    return show(
        request, "models.html", ModelsPage(Shell(viewer, "Models and capacity", "models"), views)
    )


@require_safe
@member()
def model(request: HttpRequest, viewer: Viewer, key: str, twin: Twin) -> HttpResponseBase:
    """One model."""
    provider, _, name = key.partition("/")
    page = _page(viewer, provider, name)
    if twin is Twin.JSON:
        return json_stream([page.detail])
    return show(request, "model.html", page, twin)


@require_safe
@member()
def ladder(request: HttpRequest, viewer: Viewer, key: str) -> HttpResponse:
    """The part of the page that grows while a probe runs."""
    provider, _, name = key.partition("/")
    page = _page(viewer, provider, name)
    answer = fragment(request, "f/ladder.html", page)
    if page.probe is None or not page.probe.running:
        # The figures above the ladder are from before the probe: its end reloads the page once.
        answer["HX-Refresh"] = "true"
    return answer


def _page(viewer: Viewer, provider: str, name: str) -> ModelPage:
    detail = model_detail(viewer.tenant_id, provider, name)
    if detail is None:
        raise Http404("No session used such a model, and it was never measured.")
    view = _view(viewer, detail.line)
    above = reverse("inspector:models", args=[viewer.slug, Twin.HTML])
    title = f"{provider}/{name}"
    return ModelPage(
        shell=Shell(viewer, title, "models", (Crumb("Models", above), Crumb(title))),
        view=view,
        detail=detail,
        plot=ladder_plot(view.profile) if view.profile.provenance.observations else None,
        probe=detail.probe,
        key=title,
    )


def _view(viewer: Viewer, line: ModelLine) -> ModelView:
    profile = (
        CapacityProfile.model_validate(line.profile)
        if line.profile
        else profile_of(viewer.tenant_id, line.provider, line.model)
    )
    local = is_local(line.provider)
    stale = why_stale(profile, now=utc_now(), local=local)
    return ModelView(
        line=line,
        profile=profile,
        measured=measured(profile),
        stale=STALE_WORDS[stale] if stale is not None and measured(profile) else "",
        changed=stale is Stale.CHANGED,
        key=key if _ADDRESSED.fullmatch(key := f"{line.provider}/{line.model}") else "",
    )


def _csv(view: ModelView) -> tuple[object, ...]:
    line, profile = view.line, view.profile
    return (
        line.provider, line.model, line.sessions, profile.declared_window,
        line.verified_window or profile.verified_window, profile.horizon.tokens, profile.horizon.confidence,
        line.measured_at, profile.cache.value, line.factor, line.samples,
    )  # fmt: skip


class ModelKeyConverter:
    """PROVIDER/MODEL in an address; model names may hold slashes and dots themselves."""

    regex = _ADDRESSED.pattern

    def to_python(self, value: str) -> str:
        """The key."""
        return value

    def to_url(self, value: str) -> str:
        """The key as it stands in the address."""
        return value
