"""What the tabs of a request share: pills, ruler, ladder, cut, arithmetic, markers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.http import Http404, HttpRequest
from django.urls import reverse

from ctxengine.engine.explain import checkpoint_span
from ctxengine.engine.manifest import Budget
from ctxengine.ledger.queries.guards import verdicts_on
from ctxengine.ledger.queries.request import (
    CacheMarker,
    RequestDetail,
    neighbours,
    request_detail,
)
from ctxengine.service.imports.complete import complete_request
from inspector.access import Viewer
from inspector.cachepanel import cache_panel
from inspector.contexts import Crumb, Shell, Tab
from inspector.figures import number
from inspector.pages.request_walk import walk_of, within
from inspector.pages.session_frame import head_or_404, session_address, session_title
from inspector.reasons import OUTCOME_WORDS, class_title, history_in_words, yield_in_words
from inspector.render import Twin
from inspector.request_contexts import RequestFrame, Walk
from inspector.ruler import ruler_of

_MARKER_WORDS = {
    "after_tools": "after tools",
    "after_cards": "after cards",
    "after_system": "after system",
    "carried_history": "carried history",
    "run": "run",
    "intermediate": "intermediate",
}
_TTL_WORDS = {"5m": "5 min", "1h": "1 h"}


def detail_or_404(viewer: Viewer, request_id: UUID) -> RequestDetail:
    """The request of this tenant, rebuilt first where an import only outlined it.

    Raises:
        Http404: there is none of that id here.
    """
    complete_request(tenant_id=viewer.tenant_id, request_id=request_id)
    found = request_detail(viewer.tenant_id, request_id)
    if found is None:
        raise Http404("No such request.")
    return found


def frame_of(
    viewer: Viewer, request_id: UUID, route: str, asked: HttpRequest | None = None
) -> RequestFrame:
    """Everything around the pane of one tab. Six queries, one more with guards, two more in a filtered list (`?in=`)."""
    request = detail_or_404(viewer, request_id)
    near = neighbours(viewer.tenant_id, request)
    walk = walk_of(viewer, request, asked.GET.get("in", "")) if asked is not None else None
    accounted, unattributed = _reconciled(request)
    return RequestFrame(
        request=request,
        session=head_or_404(viewer, request.session_id),
        near=near,
        walk=walk,
        ruler=ruler_of(request.manifest, request.budget, request.cache.predicted, request.usage),
        tabs=_tabs(viewer.slug, request, near.previous.label if near.previous else "", route, walk),
        ladder=tuple(
            (
                class_title(step.budget_class),
                OUTCOME_WORDS.get(step.outcome, step.outcome),
                yield_in_words(step),
                step.tokens_before - step.tokens_after,
            )
            for step in request.manifest.yields
        ),
        cut=history_in_words(request.manifest),
        on_checkpoint=checkpoint_span(request.manifest) is not None,
        budget=tuple(_arithmetic(request.budget, request.engine)),
        unattributed=unattributed,
        accounted=accounted,
        markers=tuple(_markers(request)),
        cache=cache_panel(request),
        guards=verdicts_on(viewer.tenant_id, request.session_id, request.run_id, request.id),
    )


def request_address(slug: str, request_id: UUID, route: str = "request") -> str:
    """Where a tab of a request lives."""
    twinless = {"request-json", "request-events", "request-take-away"}
    args: list[object] = [slug, request_id]
    if route not in twinless:
        args.append(Twin.HTML)
    return reverse(f"inspector:{route}", args=args)


def shell_of(viewer: Viewer, frame: RequestFrame, route: str, tab: str) -> Shell:
    """Surroundings of a request's page, with the addresses of its keys."""
    request, near = frame.request, frame.near
    keys = {"raw": reverse("inspector:request-raw", args=[viewer.slug, request.id])}
    if near.previous:
        keys["previous"] = request_address(viewer.slug, near.previous.id, route)
        keys["diff"] = reverse(
            "inspector:diff", args=[viewer.slug, near.previous.id, request.id, Twin.HTML]
        )
    if near.next:
        keys["next"] = request_address(viewer.slug, near.next.id, route)
    walk = frame.walk
    if walk is not None:
        for name, found in (("newer", walk.newer), ("older", walk.older)):
            if found:
                keys[name] = within(request_address(viewer.slug, found[0], route), walk)
    session = session_address(viewer.slug, request.session_id)
    title = session_title(frame.session)
    crumbs = (
        Crumb("Sessions", reverse("inspector:sessions", args=[viewer.slug, Twin.HTML])),
        Crumb(title, session),
        Crumb(
            f"run {request.run_number}",
            f"{session}?before={request.run_number + 1}#run-{request.run_number}",
        ),
        Crumb(f"step {request.step}"),
    )
    return Shell(viewer, f"Request {request.label} · {tab} · {title}", "requests", crumbs, keys)


def _tabs(
    slug: str, request: RequestDetail, previous: str, current: str, walk: Walk | None
) -> tuple[Tab, ...]:
    change = f"Change since {previous}" if previous else "Change"
    named = (
        ("Rows", "request"),
        ("Items", "request-items"),
        ("Provider JSON", "request-json"),
        (change, "request-change"),
        ("Events", "request-events"),
        ("Take away", "request-take-away"),
    )
    return tuple(
        Tab(label, within(request_address(slug, request.id, route), walk), route == current)
        for label, route in named
    )


def _reconciled(request: RequestDetail) -> tuple[int | None, int | None]:
    """Tokens that the rows explain of what was billed, and the rest."""
    billed = request.usage.prompt
    if billed is None or request.reconstructed:
        return None, None
    accounted = round(request.total_tokens * request.budget.factor)
    return accounted, billed - accounted


def _arithmetic(budget: Budget, engine: str) -> Iterator[tuple[str, str, int | None, bool]]:
    for name, how, tokens in _figures(budget):
        yield name, how, tokens, False
    over = budget.tool_results - budget.tool_results_cap
    cap = f"of at most {number(budget.tool_results_cap)}, a quarter of the body"
    if over > 0:
        why = (
            "this engine shortens nothing settled"
            if engine == "boundary"
            else "nothing more of them yields"
        )
        cap += f"; {number(over)} over it: {why}"
    yield "tool results", cap, budget.tool_results, over > 0
    yield "request", "prefix and everything in the body", budget.request, False
    yield "free", "usable − request", budget.free, False


def _figures(budget: Budget) -> Iterator[tuple[str, str, int | None]]:
    smaller = "window" if budget.policy_cap is None else "the smaller of window and policy cap"
    yield "window", "what the model takes", budget.window
    yield "policy cap", "what the policy allows", budget.policy_cap
    yield "total", smaller, budget.total
    yield "reserve", "kept for the answer", budget.reserve
    yield "margin", "kept for the error of estimates", budget.margin
    yield "usable", f"(total − reserve − margin) ÷ {budget.factor:.3f}", budget.usable
    yield "prefix", "rows 1 to 8", budget.prefix
    yield "body", "usable − prefix", budget.body
    yield "never yields", "input, open run, fresh rows, corrections", budget.never_yield
    yield "knowledge, recall", "what of row 13 may yield", budget.fresh
    yield "room for history", "body − never yields − row 13", budget.history_room
    yield "history", "closed turns kept", budget.history


def _markers(request: RequestDetail) -> Iterator[tuple[str, str, str]]:
    for marker in request.cache.markers:
        yield (
            _MARKER_WORDS.get(marker.name, marker.name),
            _closed_by(marker),
            _TTL_WORDS.get(marker.ttl, marker.ttl),
        )


def _closed_by(marker: CacheMarker) -> str:
    if marker.after_fragment is not None:
        return f"message part {number(marker.after_fragment + 1)}"
    return "the tools" if marker.name == "after_tools" else "the prefix"
