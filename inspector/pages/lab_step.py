"""P13: one simulated step as a request: its rows, its cache and its body. It was never sent."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxengine.engine.layout import ROWS, Region
from ctxengine.engine.manifest import Form
from ctxengine.ledger.models import RequestRow
from ctxengine.ledger.queries.usage import Usage
from ctxengine.service.replay.read_replay import cell_of, replay_of
from ctxengine.service.replay.simulated import Simulated, simulated_step
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.jsonview import JsonPart, parts_of, pretty
from inspector.lab_contexts import SimulatedPage
from inspector.pages.request_rows import row_line
from inspector.reasons import why
from inspector.render import Twin, raw_download, show
from inspector.ruler import region_sum, ruler_of

PARTS_SHOWN = 40
_INLINE_BYTES = 4_000


@require_safe
@member()
def step(
    request: HttpRequest, viewer: Viewer, replay_id: UUID, number: int, step: int
) -> HttpResponse:
    """The rows, and the newest parts of the body."""
    row = replay_of(actor=viewer.actor, replay_id=replay_id)
    cell = cell_of(row, number)
    found = simulated_step(actor=viewer.actor, replay_id=replay_id, cell=number, number=step)
    manifest = found.built.manifest
    lines = [row_line(entry, manifest) for entry in ROWS]
    parts = parts_of(found.body.decode("utf-8", "surrogatepass"))
    shown = parts[-PARTS_SHOWN:]
    numbers = sorted(entry["number"] for entry in cell.steps if not entry["refused"])
    page = SimulatedPage(
        shell=_shell(viewer, replay_id, row.title, cell.engine, number, step),
        row=row,
        cell=cell,
        step=found.figures,
        ruler=ruler_of(manifest, found.built.budget, _predicted(found), Usage()),
        region_a=tuple(line for line in lines if line.row.region is Region.A),
        region_b=tuple(line for line in lines if line.row.region is Region.B),
        sum_a=region_sum(manifest, Region.A),
        sum_b=region_sum(manifest, Region.B),
        out=tuple((s, why(s, manifest.cut)) for s in manifest.spans if s.form is Form.OUT),
        total=found.built.budget.request,
        parts=tuple((part, _text(part)) for part in shown),
        left_out_parts=len(parts) - len(shown),
        body_bytes=len(found.body),
        sent=_sent(viewer, row.session_id, found),
        previous=max((n for n in numbers if n < step), default=None),
        following=min((n for n in numbers if n > step), default=None),
    )
    return show(request, "lab_step.html", page)


@require_safe
@member()
def raw(
    request: HttpRequest, viewer: Viewer, replay_id: UUID, number: int, step: int
) -> HttpResponse:
    """The simulated body, byte for byte."""
    found = simulated_step(actor=viewer.actor, replay_id=replay_id, cell=number, number=step)
    return raw_download(found.body, f"simulated-{number}-{step}.json")


def _text(part: JsonPart) -> str:
    return pretty(part.raw) if part.length <= _INLINE_BYTES else ""


def _predicted(found: Simulated) -> Usage:
    figures = found.figures
    return Usage(read=figures.read, write=figures.written, fresh=figures.fresh)


def _sent(viewer: Viewer, session_id: UUID, found: Simulated) -> str:
    rows = RequestRow.objects.filter(
        tenant_id=viewer.tenant_id,
        session_id=session_id,
        request_sha256=found.built.request_sha256,
    )
    sent = rows.values_list("id", flat=True).first()
    return str(sent) if sent is not None else ""


def _shell(
    viewer: Viewer, replay_id: UUID, title: str, engine: str, number: int, step: int
) -> Shell:
    slug = viewer.slug
    crumbs = (
        Crumb("Replay lab", reverse("inspector:lab", args=[slug, Twin.HTML])),
        Crumb(
            title or "replay", reverse("inspector:lab-replay", args=[slug, replay_id, Twin.HTML])
        ),
        Crumb(engine, reverse("inspector:lab-cell", args=[slug, replay_id, number, Twin.HTML])),
        Crumb(f"step {step}"),
    )
    return Shell(viewer, f"Simulated step {step} · {engine}", "lab", crumbs)
