"""Compacting a `boundary` session by hand: what is called, what it reads and costs, and what nobody knows yet (design 9)."""

from __future__ import annotations

from django.urls import reverse

from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.boundary.forecast import BoundaryForecast, boundary_forecast
from ctxengine.service.compacted import Compacted
from ctxengine.service.specs import Compact
from inspector.access import Viewer
from inspector.act_contexts import ActPage, Figure
from inspector.figures import dollars, number
from inspector.pages.session_frame import frame_of, shell_of
from inspector.render import Twin

_NATIVE = (
    "The provider is called and makes a window of its own from the settled turns: opaque, bound to this model, its tools and"
    " instructions. It takes their place from the next step on. "
)
_NOTE = (
    "A model is called and writes a portable note of the settled turns: objective, corrections, decisions, evidence and"
    " remaining work. It takes their place from the next step on; untrusted content is never read for it. "
)
_KEPT = (
    "A job does it, and nothing changes unless it succeeds. The originals stay in the ledger, and the checkpoint can be"
    " undone."
)


def checkpoints_address(viewer: Viewer, head: SessionHead) -> str:
    """Where a session's checkpoints are listed."""
    return reverse("inspector:session-checkpoints", args=[viewer.slug, head.id, Twin.HTML])


def boundary_page(
    viewer: Viewer, head: SessionHead, spec: Compact, done: Compacted | None, blocked: str
) -> ActPage:
    """The act before it is done.

    Args:
        done: its preview; None where there is nothing to confirm.
        blocked: why not.
    """
    known, blocked = _known(viewer, head, spec, blocked)
    native = known is None or known.native
    return ActPage(
        shell=shell_of(viewer, head, "Compact now"),
        frame=frame_of(viewer, head, "session-checkpoints"),
        heading="Compact now",
        explains=(_NATIVE if native else _NOTE) + _KEPT,
        figures=_figures(known, done) if known and done else (),
        blocked=blocked,
        hidden=(("through", str(spec.through)),) if spec.through else (),
        button="Call the provider and compact" if native else "Have the note written",
        back=checkpoints_address(viewer, head),
        allowed=viewer.is_operator,
        choices={"through": spec.through, "boundary": True},
    )


def _known(
    viewer: Viewer, head: SessionHead, spec: Compact, blocked: str
) -> tuple[BoundaryForecast | None, str]:
    try:
        known = boundary_forecast(actor=viewer.actor, session_id=head.id, through=spec.through)
    except CompactionError as error:
        return None, blocked or error.message
    if known is not None and known.refused is not None:
        return known, blocked or f"{known.model}: {known.refused.message}"
    return known, blocked


def _figures(known: BoundaryForecast, done: Compacted) -> tuple[Figure, ...]:
    what = "a native window" if known.native else "a portable note"
    return (
        Figure(
            "Covered",
            f"≈ {number(done.tokens_before)} tokens",
            f"through event {done.replaced_through:,}, our count",
        ),
        Figure(
            "Becomes",
            "not known before the provider answers",
            f"{what} of at most {number(known.most)} tokens, else nothing is installed",
        ),
        Figure(
            "Shown again behind it",
            f"≈ {number(known.again)} tokens",
            "objective, reminders, active operations, pins",
        ),
        Figure(
            "Called",
            known.model,
            "the session's own model" if known.native else "writes the note, in a job",
        ),
        Figure(
            "It reads",
            f"≈ {number(known.reads)} tokens",
            "tools and instructions included" if known.native else "at most; results are not read",
        ),
        Figure(
            "The call costs",
            _cost(known.usd),
            f"with an answer of {number(known.most)} tokens; re-caching what follows comes on top",
        ),
    )


def _cost(usd: str | None) -> str:
    return "no price is known" if usd is None else f"at most ≈ {dollars(usd)}"
