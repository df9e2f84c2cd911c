"""The style guide: every component of the console in every state, on made-up values, for eyes and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.engine.manifest import Form
from ctxengine.engine.trust.levels import Trust
from inspector.access import Viewer, member
from inspector.contexts import Shell, Tab, Tile
from inspector.reasons import FORM_WORDS
from inspector.render import show
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


@require_safe
@member(asks={})
def styleguide(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """One page, no query, the same at every visit."""
    page = StyleguidePage(
        shell=Shell(viewer, "Style guide", ""),
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
        moment=datetime(2026, 11, 30, 8, 5, 9, tzinfo=UTC),
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
