"""P13: the replay lab: asking for a replay, its matrix as it fills, and one cell step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from pydantic import ValidationError

from ctxengine.ledger.models import Job, JobState, ReplayCellRow, ReplayRow
from ctxengine.ledger.queries.paging import BadCursor, Page, parse_cursor
from ctxengine.ledger.queries.replays import cells_done, jobs_of, list_replays
from ctxengine.service.replay.engines import lab_engine
from ctxengine.service.replay.read_replay import cell_of, cells_of, replay_of
from ctxengine.service.replay.start_replay import start_replay
from ctxengine.service.specs import ServiceError
from inspector.access import Viewer, member
from inspector.contexts import Crumb, Shell
from inspector.filters import (
    AskError,
    checked,
    free,
    identifier,
    one_of,
    page_size,
    size_of,
    whole_number,
)
from inspector.lab_conditions import LIVES, conditions, rivals_of
from inspector.lab_contexts import (
    CellPage,
    LabForm,
    LabPage,
    MatrixCell,
    ReplayLine,
    ReplayPage,
)
from inspector.lab_curves import curves_of
from inspector.lab_form import WHAT_IFS, form_for, wanted_by
from inspector.pages.numbers import whole
from inspector.render import Twin, csv_stream, fragment, json_stream, see_other, show

ASKS = {
    "session": identifier,
    "find": free,
    "ttl": one_of(*LIVES),
    "size": page_size,
    "after": free,
}
STEPS_SHOWN = 100
_UNFINISHED = frozenset({JobState.QUEUED.value, JobState.RUNNING.value})
_FIGURES = (
    "engine", "provider", "model", "cost", "cost_ratio", "cached_ratio", "mean_tokens", "peak_tokens", "compactions",
    "fidelity", "whole", "reachable", "gone", "steps", "refused", "input_tokens", "read", "written",
)  # fmt: skip
_STEP = (
    "number", "turn", "gap", "tokens", "read", "written", "fresh", "cost", "why", "compactions", "refused",
    "request_sha256",
)  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def lab(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """All replays; a POST asks for another."""
    if request.method == "POST":
        return _start(request, viewer)
    problem, after = "", None
    try:
        checked(request, ASKS)
        after = parse_cursor(request.GET["after"]) if request.GET.get("after") else None
    except (AskError, BadCursor) as error:
        problem = str(error)
    session = "" if problem else request.GET.get("session", "")
    found = list_replays(
        viewer.tenant_id,
        after=after,
        size=size_of(request),
        session_id=UUID(session) if session else None,
    )
    lines = _lines(viewer, found.rows)
    if twin is Twin.JSON and not problem:
        return json_stream(lines)
    find = "" if problem else request.GET.get("find", "").strip()
    ttl = "" if problem else request.GET.get("ttl", "")
    form = form_for(viewer, find=find, session=session, given=None, ttl=ttl)
    page = _page(viewer, Page(tuple(lines), found.after), form, problem, narrowed=bool(session))
    return show(request, "lab.html", page, status=400 if problem else 200)


@require_safe
@member()
def replay(request: HttpRequest, viewer: Viewer, replay_id: UUID, twin: Twin) -> HttpResponseBase:
    """One replay: the matrix."""
    page = _replay_page(viewer, replay_id)
    settings = page.row.settings
    done = [{**cell.figures, "settings": settings} for cell in page.cells if cell.row is not None]
    if twin is Twin.CSV:
        told = json.dumps(settings, sort_keys=True)
        lines = ([*(row.get(n) for n in _FIGURES), told] for row in done)
        return csv_stream("replay", (*_FIGURES, "settings"), lines)
    if twin is Twin.JSON:
        return json_stream(done)
    return show(request, "lab_replay.html", page)


@require_safe
@member()
def matrix(request: HttpRequest, viewer: Viewer, replay_id: UUID) -> HttpResponse:
    """The part of the page that fills while the job works."""
    return fragment(request, "f/lab_matrix.html", _replay_page(viewer, replay_id))


@require_safe
@member(asks={"from": whole_number})
def cell(
    request: HttpRequest, viewer: Viewer, replay_id: UUID, number: int, twin: Twin
) -> HttpResponseBase:
    """One cell: curves, and its steps as a table."""
    row = replay_of(actor=viewer.actor, replay_id=replay_id)
    found = cell_of(row, number)
    if twin is Twin.CSV:
        return csv_stream("steps", _STEP, ([s.get(n) for n in _STEP] for s in found.steps))
    if twin is Twin.JSON:
        return json_stream(found.steps)
    builds = lab_engine(found.engine).driver is not None
    first = min(max(1, whole(request, "from") or 1), max(1, len(found.steps)))

    def href(step: int) -> str:
        if not builds:
            return ""
        return reverse("inspector:lab-step", args=[viewer.slug, row.id, number, step])

    budget = found.figures.get("budget")
    page = CellPage(
        shell=_shell(viewer, row, f"{found.engine} on {found.model}"),
        row=row,
        cell=found,
        curves=curves_of(found.steps, budget=budget, href=href),
        steps=tuple(found.steps[first - 1 : first - 1 + STEPS_SHOWN]),
        first=first,
        total=len(found.steps),
        older=max(1, first - STEPS_SHOWN) if first > 1 else None,
        newer=first + STEPS_SHOWN if first + STEPS_SHOWN <= len(found.steps) else None,
        builds=builds,
    )
    return show(request, "lab_cell.html", page)


def _start(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    viewer.must_operate("Replaying")
    try:
        wanted = wanted_by(request.POST)
        row = start_replay(actor=viewer.actor, wanted=wanted, cause="the lab")
    except ValidationError as error:
        first = error.errors()[0]
        named = str(first["loc"][0]).replace("_", " ") if first["loc"] else "the form"
        return _refused(request, viewer, f"{named}: {first['msg']}", 400)
    except ServiceError as error:
        return _refused(request, viewer, error.detail, error.status)
    return see_other(reverse("inspector:lab-replay", args=[viewer.slug, row.id, Twin.HTML]))


def _refused(request: HttpRequest, viewer: Viewer, problem: str, status: int) -> HttpResponse:
    found = list_replays(viewer.tenant_id)
    lines = Page(tuple(_lines(viewer, found.rows)), found.after)
    session = request.POST.get("session", "")
    form = form_for(viewer, find="", session=session, given=request.POST)
    return show(request, "lab.html", _page(viewer, lines, form, problem), status=status)


def _page(
    viewer: Viewer,
    lines: Page[ReplayLine],
    form: LabForm,
    problem: str,
    *,
    narrowed: bool = False,
) -> LabPage:
    return LabPage(
        shell=Shell(viewer, "Replay lab", "lab"),
        page=lines,
        form=form if viewer.is_operator else None,
        problem=problem,
        narrowed=narrowed,
    )


def _lines(viewer: Viewer, rows: Sequence[ReplayRow]) -> list[ReplayLine]:
    done = cells_done(viewer.tenant_id, (row.id for row in rows))
    jobs = jobs_of(viewer.tenant_id, (row.job_id for row in rows))
    return [
        ReplayLine(
            row=row,
            done=done.get(row.id, 0),
            wanted=len(row.engines) * len(row.targets),
            state=jobs[row.job_id].state if row.job_id in jobs else "",
        )
        for row in rows
    ]


def _replay_page(viewer: Viewer, replay_id: UUID) -> ReplayPage:
    row = replay_of(actor=viewer.actor, replay_id=replay_id)
    found = {cell.number: cell for cell in cells_of(row)}
    job: Job | None = jobs_of(viewer.tenant_id, [row.job_id]).get(row.job_id or row.id)
    pairs = [(engine, model) for model in row.targets for engine in row.engines]
    best = _cheapest(found.values())
    cells = tuple(
        MatrixCell(
            number=number,
            engine=engine,
            model=model,
            row=found.get(number),
            figures=found[number].figures if number in found else {},
            cheapest=number in best,
        )
        for number, (engine, model) in enumerate(pairs, start=1)
    )
    running = job is not None and job.state in _UNFINISHED
    return ReplayPage(
        shell=_shell(viewer, row),
        row=row,
        cells=cells,
        job=job,
        running=running,
        settings=conditions(row.settings),
        rivals=() if running else rivals_of(row, list(found.values())),
        lives=tuple(
            (ttl, words)
            for ttl, words in LIVES.items()
            if viewer.is_operator and ttl != row.settings.get("ttl")
        ),
        again=tuple(
            (name, str(row.settings[name]))
            for name in WHAT_IFS
            if name != "ttl" and row.settings.get(name) is not None
        ),
    )


def _cheapest(cells: Any) -> set[int]:
    """Numbers of the cells that no cell of the same model beats: none keeps as many facts whole for less."""
    by_model: dict[str, list[ReplayCellRow]] = {}
    for cell in cells:
        if cell.figures.get("steps") and not cell.skipped:
            by_model.setdefault(f"{cell.provider}/{cell.model}", []).append(cell)
    return {
        cell.number
        for group in by_model.values()
        for cell in group
        if not any(_beats(other.figures, cell.figures) for other in group if other is not cell)
    }


def _beats(other: Mapping[str, Any], figures: Mapping[str, Any]) -> bool:
    mine, theirs = _spent(figures), _spent(other)
    kept = other["fidelity"] >= figures["fidelity"]
    return kept and theirs <= mine and (theirs < mine or other["fidelity"] > figures["fidelity"])


def _spent(figures: Mapping[str, Any]) -> float:
    """Input at full price: what can be compared where a price is unknown, too."""
    return float(figures["cost_ratio"]) * int(figures["input_tokens"])


def _shell(viewer: Viewer, row: ReplayRow, last: str = "") -> Shell:
    above = reverse("inspector:lab", args=[viewer.slug, Twin.HTML])
    title = row.title or str(row.session_id)[:8]
    crumbs = [Crumb("Replay lab", above)]
    if last:
        here = reverse("inspector:lab-replay", args=[viewer.slug, row.id, Twin.HTML])
        crumbs += [Crumb(title, here), Crumb(last)]
    else:
        crumbs.append(Crumb(title))
    return Shell(viewer, f"{last or title} · Replay lab", "lab", tuple(crumbs))
