"""What the operations pages share: their tabs."""

from __future__ import annotations

from django.urls import reverse

from inspector.access import Viewer
from inspector.contexts import Tab
from inspector.render import Twin

PAGES = (
    ("Jobs", "jobs"),
    ("Alerts", "alerts"),
    ("Retention", "retention"),
    ("Audit", "audit"),
    ("API keys", "api-keys"),
    ("Members", "members"),
)


def operations_tabs(viewer: Viewer, route: str) -> tuple[Tab, ...]:
    """The pages of operations, the current one lit."""
    return tuple(
        Tab(label, reverse(f"inspector:{name}", args=[viewer.slug, Twin.HTML]), name == route)
        for label, name in PAGES
    )
