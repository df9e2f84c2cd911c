"""The operator's hand on history: compact now, undo, pin, fold, exclude, release; each with its preview (design 8)."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from ctxengine.engine.compaction.acts import HandForm
from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.compact import compact
from ctxengine.service.compacted import Compacted
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import Actor, Compact, Present, ServiceError, UndoCompaction
from ctxengine.service.summaries.forecast import summary_forecast
from ctxengine.service.turns.seen_by import PLANNED_ENGINES
from ctxengine.service.undo_compaction import undo_compaction
from inspector.access import Viewer, member
from inspector.act_contexts import ActPage, Figure
from inspector.figures import dollars, micro_dollars, number, signed
from inspector.filters import read_whole
from inspector.forecast import cost_of_undoing, packets_gone_with, price_of
from inspector.pages.acts import answer, cost_figures
from inspector.pages.compact_boundary import boundary_page, checkpoints_address
from inspector.pages.session_compactions import line_or_404
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin

FORMS = {
    HandForm.PINNED: ("Pin", "whole, whatever the cut and the floors say"),
    HandForm.FOLDED: ("Fold", "as pointers"),
    HandForm.EXCLUDED: ("Exclude", "a notice in its place"),
    HandForm.AUTOMATIC: ("Release", "as the policy decides"),
}
SCOPES = {
    "unit": "the message, or the step with all its results",
    "turn": "the whole turn",
    "item": "this one item",
}


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def compact_now(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """GET previews `?through=`, `?merge=` and `?unforced=`; POST compacts."""
    head = head_or_404(viewer, session_id)
    spec = _compact_spec(request)
    return answer(
        request,
        viewer,
        template="compact.html",
        name="Compacting",
        page=lambda: _compact_page(viewer, head, spec),
        act=lambda reason: _compact(viewer, head, spec, reason),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def undo(request: HttpRequest, viewer: Viewer, session_id: UUID, event: int) -> HttpResponse:
    """GET says what comes back; POST undoes."""
    head = head_or_404(viewer, session_id)
    return answer(
        request,
        viewer,
        template="act.html",
        name="Undoing a compaction",
        page=lambda: _undo_page(viewer, head, event),
        act=lambda reason: _undo(viewer, head, event, reason),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def mark(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """GET previews `?target=`, `?form=` and `?scope=`; POST marks."""
    head = head_or_404(viewer, session_id)
    spec = _mark_spec(request)
    return answer(
        request,
        viewer,
        template="mark.html",
        name="Marking history",
        page=lambda: _mark_page(viewer, head, spec),
        act=lambda reason: _mark(viewer, head, spec, reason),
    )


# --- compact now ---


def _compact_spec(request: HttpRequest) -> Compact:
    given = request.POST if request.method == "POST" else request.GET
    named = given.get("through", "").strip()
    through = read_whole(named) if named else None
    if named and not through:
        raise ServiceError("invalid_content", 422, "Name the last event to replace by its number.")
    return Compact(
        through=through,
        merge=bool(given.get("merge")),
        force=not given.get("unforced"),
        summariser="model" if given.get("model") else "deterministic",
    )


def _compact(viewer: Viewer, head: SessionHead, spec: Compact, reason: str) -> str:
    done = compact(
        actor=viewer.actor, session_id=head.id, spec=spec.model_copy(update={"note": reason})
    )
    if head.engine == "boundary":
        return f"{checkpoints_address(viewer, head)}?done={done.outcome}"
    shown = f"&at={done.event}" if done.event else ""
    return f"{_back(viewer, head)}?done={done.outcome}{shown}"


def _compact_page(viewer: Viewer, head: SessionHead, spec: Compact) -> ActPage:
    done, blocked = _compact_preview(viewer.actor, head, spec)
    if head.engine == "boundary":
        return boundary_page(viewer, head, spec, done, blocked)
    hidden = [("through", str(spec.through))] if spec.through else []
    hidden += [("merge", "1")] if spec.merge else []
    hidden += [] if spec.force else [("unforced", "1")]
    by_model = spec.summariser == "model"
    hidden += [("model", "1")] if by_model else []
    figures = _compact_figures(head, done) if done else ()
    if by_model and done:
        figures = (*figures, *_writer_figures(viewer.actor, head, done))
    return ActPage(
        shell=shell_of(viewer, head, "Compact now"),
        frame=frame_of(viewer, head, "session-compactions"),
        heading="Merge the summaries" if spec.merge else "Compact now",
        explains=(
            f"{_explained(head)}; untrusted content is never read for it and stays behind pointers."
            " Nothing is lost, and it can be undone."
        ),
        figures=figures,
        blocked=blocked,
        hidden=tuple(hidden),
        button="Merge them" if spec.merge else "Compact",
        back=_back(viewer, head),
        allowed=viewer.is_operator,
        choices={
            "through": spec.through,
            "merge": spec.merge,
            "unforced": not spec.force,
            "model": by_model,
            "packets": head.engine in PLANNED_ENGINES,
        },
    )


def _explained(head: SessionHead) -> str:
    if head.engine in PLANNED_ENGINES:
        return "The packet of the closed turns that a run starting now would want in one is made ahead of it"
    return "A summary takes the place of the oldest history"


def _compact_preview(
    actor: Actor, head: SessionHead, spec: Compact
) -> tuple[Compacted | None, str]:
    try:
        done = compact(
            actor=actor, session_id=head.id, spec=spec.model_copy(update={"preview": True})
        )
    except ServiceError as refused:
        remedy = refused.extra.get("remedy")
        told = not remedy or str(remedy) in refused.detail
        return None, refused.detail if told else f"{refused.detail} Remedy: {remedy}."
    if done.outcome == "unchanged" and head.engine in PLANNED_ENGINES:
        by = " and a model wrote it" if spec.summariser == "model" else ""
        return None, f"There is nothing to make: the packet that the next run will want stands{by}."
    if done.outcome == "unchanged" and spec.through:
        return (
            None,
            f"There is nothing to compact: up to event {spec.through:,} no closed turn is left without a summary.",
        )
    if done.outcome == "unchanged":
        return None, "There is nothing to compact: history is at its low-water mark already."
    if done.outcome == "skipped":
        return done, "It does not pay, and only what pays was asked for."
    return done, ""


def _compact_figures(head: SessionHead, done: Compacted) -> tuple[Figure, ...]:
    figures = [
        Figure(
            "History", f"{number(done.tokens_before)} → {number(done.tokens_after or 0)}", "tokens"
        ),
    ]
    if done.replaced_through:
        figures.append(
            Figure(
                "Replaced", f"through event {done.replaced_through:,}", f"depth {done.depth} of 2"
            )
        )
    return (*figures, *_verdict(head, done.verdict), *_reasoning(done.reasoning_dropped))


def _writer_figures(actor: Actor, head: SessionHead, done: Compacted) -> tuple[Figure, ...]:
    """Who would write, and for how much."""
    known = summary_forecast(
        actor=actor,
        session_id=head.id,
        tokens_before=done.tokens_before if done.tokens_read is None else done.tokens_read,
        tokens_after=done.tokens_after or 0,
    )
    return (
        Figure("Written by", known.model, "in a job; the figures are of a summary without a model"),
        Figure("The call costs", dollars(known.usd), "about; what the model thinks comes on top"),
    )


def _verdict(head: SessionHead, verdict: NetCost | None) -> tuple[Figure, ...]:
    if verdict is None:
        return ()
    price = price_of(provider=head.provider, model=head.model, tokens=verdict.recached_tokens)
    return (
        Figure(
            "Each later request",
            f"{signed(-verdict.saved_tokens)} tokens",
            f"over {verdict.expected_steps:,} expected requests",
        ),
        *cost_figures(
            verdict.recached_tokens, price, "what stands behind the first changed byte, at most"
        ),
        Figure("Net cost", *_judged(verdict)),
    )


def _judged(verdict: NetCost) -> tuple[str, str]:
    """The verdict and what was weighed; an act that moves no token is neither good nor bad."""
    if not verdict.saved_tokens and not verdict.recached_tokens:
        return "none", "no request grows or shrinks, and nothing is cached anew"
    return "✓ pays" if verdict.pays else "▲ does not pay", _weighed(verdict)


def _weighed(verdict: NetCost) -> str:
    """The two sides of the scales in words."""
    forced = f"; forced by {verdict.forced_by}" if verdict.forced_by else ""
    if not verdict.cost_model:
        return f"weighed in tokens{forced}"
    saved, cost = verdict.saved_microdollars, verdict.recached_microdollars
    return f"saves {micro_dollars(saved)}, re-caching costs {micro_dollars(cost)}{forced}"


def _reasoning(blocks: int) -> tuple[Figure, ...]:
    if not blocks:
        return ()
    noun = "block" if blocks == 1 else "blocks"
    return (
        Figure(
            "Reasoning of the open run",
            f"▲ {blocks:,} {noun} dropped",
            "this model's reasoning is bound to the bytes before it",
        ),
    )


# --- undo ---


def _undo(viewer: Viewer, head: SessionHead, event: int, reason: str) -> str:
    undo_compaction(
        actor=viewer.actor, session_id=head.id, event=event, spec=UndoCompaction(note=reason)
    )
    return f"{_back(viewer, head)}?done=undone&at={event}"


def _undo_page(viewer: Viewer, head: SessionHead, event: int) -> ActPage:
    line = line_or_404(viewer, head, event)
    payload = line.event.payload
    first, through = payload["first_sequence"], payload["replaced_through_sequence"]
    cost = cost_of_undoing(actor=viewer.actor, session_id=head.id, made=line.event)
    back, behind = -cost.saved_tokens, cost.recached_tokens
    price = price_of(provider=head.provider, model=head.model, tokens=behind)
    along = packets_gone_with(actor=viewer.actor, session_id=head.id, made=line.event)
    blocked = "It is undone already." if line.state == "undone" else ""
    blocked = blocked or (line.bar.says if line.bar else "")
    blocked = blocked or ("" if head.state == "open" else "The session has ended.")
    return ActPage(
        shell=shell_of(viewer, head, f"Undo compaction {event}"),
        frame=frame_of(viewer, head, "session-compactions"),
        heading=f"Undo compaction {event}",
        explains=_undone_words(along),
        figures=(
            Figure(
                "Comes back" if along is None else "Of",
                f"events {first:,} to {through:,}",
                f"{payload['turns']:,} turns",
            ),
            *_gone_along(event, along),
            Figure("Each later request", f"{signed(back)} tokens", "at most, while it fits"),
            *cost_figures(behind, price, "history from there on, at most"),
        ),
        blocked=blocked,
        hidden=(),
        button=f"Undo compaction {event}",
        back=f"{_back(viewer, head)}?at={event}",
        allowed=viewer.is_operator,
    )


def _undone_words(along: tuple[int, ...] | None) -> str:
    if along is None:
        return (
            "What it replaced is history again, byte for byte, from the next step on. Where it does not fit, the next request"
            " yields anew by the same rules."
        )
    if not along:
        return "No request shows anything of it, so none changes. It will not stand, and no longer packet will grow from it."
    return (
        "From the next step on a shorter packet, cards or a line that they are left out tells its turns, as the plan decides;"
        " recall still reaches each of them. No other packet is made over them until somebody makes one by hand."
    )


def _gone_along(event: int, along: tuple[int, ...] | None) -> tuple[Figure, ...]:
    others = [f"{other:,}" for other in sorted(along or ()) if other != event]
    if not others:
        return ()
    noun = "packet" if len(others) == 1 else "packets"
    return (Figure("Goes along", f"{noun} {', '.join(others)}", "told over the same turns"),)


# --- pin, fold, exclude ---


def _mark_spec(request: HttpRequest) -> Present:
    given = request.POST if request.method == "POST" else request.GET
    try:
        return Present(
            target=given.get("target", ""),
            form=given.get("form", HandForm.PINNED.value),  # type: ignore[arg-type]  # checked by the model
            scope=given.get("scope", "unit"),  # type: ignore[arg-type]
        )
    except ValidationError as error:
        raise ServiceError(
            "invalid_target",
            422,
            f"Name an event or item, one of the forms {', '.join(HandForm)} and one of the scopes {', '.join(SCOPES)}.",
        ) from error


def _mark(viewer: Viewer, head: SessionHead, spec: Present, reason: str) -> str:
    set_presentation(
        actor=viewer.actor, session_id=head.id, spec=spec.model_copy(update={"note": reason})
    )
    return f"{_back(viewer, head)}?done={spec.form}#marks"


def _mark_page(viewer: Viewer, head: SessionHead, spec: Present) -> ActPage:
    verb, meaning = FORMS[HandForm(spec.form)]
    figures, blocked = _mark_preview(viewer, head, spec)
    return ActPage(
        shell=shell_of(viewer, head, f"{verb} {spec.target}"),
        frame=frame_of(viewer, head, "session-compactions"),
        heading=f"{verb} {spec.target}",
        explains=f"From the next step on it stands {meaning}; the ledger keeps every byte, and the act can be taken back.",
        figures=figures,
        blocked=blocked,
        hidden=(("target", spec.target), ("form", spec.form), ("scope", spec.scope)),
        button=verb,
        back=f"{_back(viewer, head)}#marks",
        allowed=viewer.is_operator,
        choices={
            "target": spec.target,
            "forms": [
                (form.value, f"{name}: {words}", form.value == spec.form)
                for form, (name, words) in FORMS.items()
            ],
            "scopes": [(name, words, name == spec.scope) for name, words in SCOPES.items()],
        },
    )


def _mark_preview(
    viewer: Viewer, head: SessionHead, spec: Present
) -> tuple[tuple[Figure, ...], str]:
    try:
        done = set_presentation(
            actor=viewer.actor, session_id=head.id, spec=spec.model_copy(update={"preview": True})
        )
    except ServiceError as refused:
        if refused.status == 404:
            raise Http404(refused.detail) from refused
        return (), refused.detail
    what = (
        f"item {done.item}"
        if done.item
        else ", ".join(f"{sequence:,}" for sequence in done.sequences[:8])
        + (f" and {len(done.sequences) - 8:,} more" if len(done.sequences) > 8 else "")
    )
    units = "unit" if len(done.sequences) == 1 else "units"
    meant = Figure("What is meant", what, "" if done.item else f"{len(done.sequences):,} {units}")
    return (meant, *_verdict(head, done.verdict), *_reasoning(done.reasoning_dropped)), ""


def _back(viewer: Viewer, head: SessionHead) -> str:
    return reverse("inspector:session-compactions", args=[viewer.slug, head.id, Twin.HTML])
