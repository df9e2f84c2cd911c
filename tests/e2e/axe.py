"""What axe finds on a page, by the rules that every page meets."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

RULES: dict[str, Any] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
}
COLOUR_RULES: dict[str, Any] = {
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
}
"""Those of them that a scheme of colours can break: in the other scheme all else is the same element at the same place."""


def violations(page: Page, rules: dict[str, Any]) -> list[tuple[str, str]]:
    """The rules that a page breaks, each with its first element. The script is put in once for each load."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(Axe().axe_script)
    found = page.evaluate(
        "async (rules) => (await axe.run(document, rules)).violations",
        # No rule in force reads style sheets, and no page has media: nothing need be fetched before the rules run.
        {**rules, "resultTypes": ["violations"], "preload": False},
    )
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]
