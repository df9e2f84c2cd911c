"""The style guide holds every component; those that only pages with a ledger behind them can fill are named with the reason."""

from __future__ import annotations

from pathlib import Path

from tests.inspector.conftest import Cast

COMPONENTS = Path(__file__).resolve().parents[2] / "templates" / "components"
NEEDS_A_LEDGER = {
    "comparison": "two recorded requests",
    "copy_buttons": "a recorded request",
    "epoch_pick": "a session with epochs",
    "event_row": "a log",
    "events_older": "a log",
    "events_table": "a log",
    "figure_table": "a range of metrics",
    "follow": "a log that goes on",
    "guard_verdicts": "a recorded answer",
    "news": "an open page that asks",
    "peek": "a list",
    "peek_button": "a line of a list",
    "peek_close": "an open drawer",
    "plan_comparison": "two plans",
    "proof_after": "a recorded request",
    "repairs": "an import",
    "request_side": "a recorded request",
    "session_head": "a session",
    "sessions_table": "sessions",
    "standings": "an item and requests",
    "strip": "recorded requests",
    "summary_writer": "a summary and its job",
    "trend": "a range of metrics",
    "views_box": "a list",
}
"""The browser tests look at these on their own pages."""


def test_every_component_is_on_the_style_guide_or_says_what_it_needs(cast: Cast) -> None:
    response = cast.operator.get(cast.url("styleguide/"))
    used = {
        (part.name or "").removeprefix("components/").removesuffix(".html")
        for part in response.templates
        if (part.name or "").startswith("components/")
    }
    there = {path.stem for path in COMPONENTS.glob("*.html")}
    assert there - used == set(NEEDS_A_LEDGER), "put it on the style guide"
