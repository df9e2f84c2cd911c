"""What stands in the place of a button: the role that is missing, or that the whole site only reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ctxengine.ledger.models import Role, SessionRow
from tests.factories import make_person
from tests.inspector.conftest import Cast, client_of


def test_a_read_only_site_says_so_to_whoever_has_the_role(cast: Cast, settings: Any) -> None:
    admin = client_of(make_person(cast.tenant, Role.ADMIN))
    model = SessionRow.objects.get(id=cast.session.id)
    key, here = f"models/of/{model.provider}/{model.model}/", f"sessions/{cast.session.id}/"
    probe = f"models/probe/{model.provider}/{model.model}/"
    assert "Probe…" in cast.page(key)
    assert "Probe…" not in cast.viewer.get(cast.url(key)).content.decode()
    assert "yours is viewer" in cast.viewer.get(cast.url(probe)).content.decode()
    settings.CTX_READ_ONLY = True
    assert "Probe…" not in admin.get(cast.url(key)).content.decode()
    for path in (
        probe, f"{here}compactions/new/", f"{here}epochs/rotate/", f"{here}settings/",
        "alerts/", "retention/", "members/", "api-keys/", "imports/", "lab/",
    ):  # fmt: skip
        response = admin.get(cast.url(path))
        page = response.content.decode()
        assert response.status_code == 200, path
        assert "is not possible: this site is read-only for now." in page, path
        assert "yours is admin" not in page, path


def test_one_place_says_which_role_is_missing() -> None:
    """So that no page forgets that the site may be read-only."""
    templates = Path(__file__).resolve().parents[2] / "templates"
    for page in templates.rglob("*.html"):
        assert "needs the role" not in page.read_text(), page.name
