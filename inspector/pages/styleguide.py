"""The style guide: every component of the console in every state, on made-up values, for eyes and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.engine.manifest import Form
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.queries.news import Newer
from ctxengine.ledger.queries.paging import Total
from ctxengine.ledger.queries.sums import Bill
from inspector import styleguide_samples as samples
from inspector.access import Viewer, member
from inspector.contexts import Crumb, JobsTile, Shell, Tab, Tile
from inspector.epochdiff import ToolChange
from inspector.lab_curves import Curve
from inspector.reasons import FORM_WORDS
from inspector.render import show
from inspector.request_contexts import CachePanel, RowLine
from inspector.ruler import Segment
from inspector.textdiff import DiffLine, compare

_HOSTILE = "</pre><script>alert(1)</script> \u202egnp.exe \x00 </untrusted:00>"
_OLD = "Answer in metric units.\nThe deadline is Friday.\nKeep it short."
_NEW = "Answer in metric units.\nThe deadline is  Monday.\nKeep it short.\nName your sources."


class Figure(NamedTuple):
    """A number as it may come."""

    words: str
    value: int | None


@dataclass(frozen=True, slots=True)
class StyleguidePage:
    """Samples of everything."""

    shell: Shell
    tiles: tuple[Tile, ...]
    tabs: tuple[Tab, ...]
    trusts: tuple[str, ...]
    forms: tuple[tuple[str, str], ...]
    segments: tuple[Segment, ...]
    figures: tuple[Figure, ...]
    diff: tuple[DiffLine, ...]
    hostile: str
    moment: datetime
    caches: tuple[CachePanel, ...]
    bills: tuple[Bill, ...]
    jobs_tiles: tuple[JobsTile, ...]
    lines: tuple[RowLine, ...]
    changes: tuple[ToolChange, ...]
    roster: tuple[samples.SampleEntry, ...]
    curve: Curve
    verdicts: tuple[dict[str, Any] | None, ...]
    newer: tuple[Newer, ...]
    facet: tuple[tuple[str, int], ...]
    narrowed: tuple[tuple[str, str], ...]
    chosen: dict[str, str]
    glances: tuple[samples.SampleGlance, ...]
    total: Total


@require_safe
@member(asks={})
def styleguide(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """One page, no query, the same at every visit."""
    page = StyleguidePage(
        shell=Shell(
            viewer, "Style guide", "", (Crumb("A session", "#tiles"), Crumb("request 14.6"))
        ),
        tiles=tuple(
            Tile(
                f"A tile, {state}",
                "12,345",
                "of 20,000",
                state,
                f"said as {state}",
                "and in detail",
            )
            for state in ("ok", "warn", "bad", "plain")
        ),
        tabs=(Tab("Here", "#tabs", True), Tab("There", "#tabs", False)),
        trusts=tuple(level.value for level in Trust),
        forms=tuple((form.value, FORM_WORDS[form]) for form in Form if form is not Form.EMPTY),
        segments=_segments(),
        figures=(
            Figure("large", 1_234_567),
            Figure("nought", 0),
            Figure("unknown", None),
            Figure("negative", -4_096),
        ),
        diff=compare(_OLD, _NEW),
        hostile=_HOSTILE,
        moment=samples.MOMENT,
        caches=samples.cache_panels(),
        bills=samples.bills(),
        jobs_tiles=samples.jobs_tiles(),
        lines=samples.row_lines(),
        changes=samples.tool_changes(),
        roster=samples.roster(),
        curve=samples.curve(),
        verdicts=samples.VERDICTS,
        newer=samples.NEWER,
        facet=samples.FACET,
        narrowed=(("model", "x"), ("from", "2026-11-30")),
        chosen={"role": "tool"},
        glances=samples.glances(),
        total=samples.TOTAL,
    )
    return show(request, "styleguide.html", page)


def _segments() -> tuple[Segment, ...]:
    fills = (
        "f-platform", "f-config", "f-user", "f-model", "f-memory", "f-external", "f-input", "f-free", "f-margin",
        "f-reserve",
    )  # fmt: skip
    wide = 100 / len(fills)
    return tuple(
        Segment(
            label=name[2:],
            tokens=1_000,
            fill=name,
            x=f"{place * wide:.2f}%",
            width=f"{wide:.2f}%",
            show_label=True,
        )
        for place, name in enumerate(fills)
    )
