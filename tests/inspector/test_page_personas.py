"""P10: personas: the list, the editor, its preview, lost races."""

from __future__ import annotations

import json
from typing import Any

from django.urls import reverse

from ctxengine.ledger.models import AuditEntry, PersonaRevision
from tests.factories import LiveSession
from tests.inspector.conftest import Cast
from tests.inspector.sessions import PRINCIPAL, following_session, save_persona


def address(cast: Cast, principal: str = PRINCIPAL, twin: str = "html") -> str:
    return reverse("inspector:persona", args=[cast.slug, principal, twin])


def save(cast: Cast, *entries: str, revision: int = 0, **fields: Any) -> Any:
    form = {"revision": revision, "entry": list(entries), "reason": "New words.", **fields}
    return cast.operator.post(address(cast), form)


def stored(revision: int) -> list[str]:
    row = PersonaRevision.objects.get(principal=PRINCIPAL, revision=revision)
    entries: list[str] = json.loads(row.entries)
    return entries


def test_the_list_names_principals_with_and_without_a_document(cast: Cast) -> None:
    page = cast.page("personas/")
    assert PRINCIPAL in page
    assert "nothing was saved yet" in page
    save_persona(cast.tenant, "Prefers small commits.")
    (line,) = cast.data("personas.json")
    assert (line["principal"], line["revision"], line["open_sessions"]) == (PRINCIPAL, 1, 1)
    rows = b"".join(cast.viewer.get(cast.url("personas.csv"))).decode()
    assert f"{PRINCIPAL},1,1," in rows


def test_a_revision_is_saved_with_its_reason_and_audited(cast: Cast) -> None:
    response = save(cast, "Prefers small commits.", "", "Says why first.", "", "")
    assert response.status_code == 303, response.content.decode()[:2000]
    assert stored(1) == ["Prefers small commits.", "Says why first."]
    page = cast.operator.get(response["Location"]).content.decode()
    assert "Revision 1 is saved" in page
    assert "New words." in page
    assert AuditEntry.objects.get(action="persona.saved").reason == "New words."


def test_the_preview_counts_renders_and_names_the_sessions_that_rotate(cast: Cast) -> None:
    save_persona(cast.tenant, "Prefers small commits.")
    session = following_session(cast.tenant)
    quiet = cast.operator.get(address(cast)).content.decode()
    assert "no open session follows this document with another text" in quiet
    fragment = cast.operator.post(
        reverse("inspector:persona-preview", args=[cast.slug, PRINCIPAL]),
        {"revision": 1, "entry": ["Prefers large commits.", ""]},
        headers={"HX-Request": "true"},
    ).content.decode()
    assert "<html" not in fragment
    assert "- Prefers large commits." in fragment
    assert f"/sessions/{session.id}/epochs/" in fragment
    assert "epoch 1 → 2" in fragment
    assert "re-cached" in fragment
    assert not PersonaRevision.objects.filter(revision=2).exists()
    without_script = cast.operator.post(
        address(cast), {"revision": 1, "entry": ["Prefers large commits."], "preview": "1"}
    )
    assert without_script.status_code == 200
    assert "± edited" in without_script.content.decode()


def test_a_lost_race_shows_the_other_edit_and_keeps_the_draft(cast: Cast) -> None:
    save_persona(cast.tenant, "One.")
    save_persona(cast.tenant, "One.", "Two, by somebody else.", note="I was first")
    response = save(cast, "One.", "Mine.", revision=1)
    page = response.content.decode()
    assert response.status_code == 409
    for text in ("Two, by somebody else.", "Mine.", "I was first", "Revision 1 → 2", "New words."):
        assert text in page, text
    assert 'name="revision" value="2"' in page
    assert save(cast, "One.", "Mine.", revision=2).status_code == 303
    assert stored(3) == ["One.", "Mine."]


def test_what_does_not_fit_is_refused_and_the_form_is_kept(cast: Cast) -> None:
    many = [f"Entry {number}." for number in range(31)]
    response = save(cast, *many)
    assert response.status_code == 422
    page = response.content.decode()
    assert "31 entries; 30 are allowed" in page
    assert "Entry 30." in page
    long = save(cast, "word " * 3_000)
    assert long.status_code == 422
    assert "2,000 are allowed" in long.content.decode()
    assert save(cast, "One.", reason=" ").status_code == 422
    assert not PersonaRevision.objects.exists()


def test_hidden_characters_survive_an_untouched_field_and_are_drawn(cast: Cast) -> None:
    hidden = "abc\u202edef\u200b\nsecond line"
    save_persona(cast.tenant, hidden, "Plain.")
    page = cast.operator.get(address(cast)).content.decode()
    assert "\u202e" not in page
    assert "holds hidden characters" in page
    shown = "abc⟦RLO⟧def⟦ZWSP⟧\r\nsecond line"
    assert save(cast, shown, "Plainer.", revision=1).status_code == 303
    assert stored(2) == [hidden, "Plainer."]


def test_revisions_are_compared_and_exported(cast: Cast) -> None:
    save_persona(cast.tenant, "One.")
    save_persona(cast.tenant, "One.", "Two.")
    page = cast.operator.get(address(cast), {"before": 1, "after": 2}).content.decode()
    assert "Revision 1 → 2" in page
    lines = json.loads(b"".join(cast.viewer.get(address(cast, twin="json"))))
    assert [line["revision"] for line in lines] == [2, 1]
    assert b"One." in b"".join(cast.viewer.get(address(cast, twin="csv")))
    assert cast.operator.get(address(cast), {"before": 1, "after": 9}).status_code == 404


def test_a_viewer_reads_and_cannot_save(cast: Cast) -> None:
    save_persona(cast.tenant, "One.")
    page = cast.viewer.get(address(cast)).content.decode()
    assert "One." in page
    assert "<textarea" not in page
    form = {"revision": 1, "entry": ["Mine."], "reason": "No."}
    assert cast.viewer.post(address(cast), form).status_code == 403
    assert not PersonaRevision.objects.filter(revision=2).exists()
    assert cast.viewer.get(address(cast, "nobody@acme")).status_code == 404


def test_any_principal_has_an_address(cast: Cast) -> None:
    for principal in ("a/b", "x.json", "line\nbreak", "<b>&\u202e", "a b?c#d"):
        form = {"revision": 0, "entry": ["One."], "reason": "First."}
        assert cast.operator.post(address(cast, principal), form).status_code == 303, principal
        assert cast.operator.get(address(cast, principal)).status_code == 200, principal
    assert "<b>&" not in cast.page("personas/")


def test_many_sessions_are_counted_beyond_those_worked_out(
    cast: Cast, django_assert_max_num_queries: object
) -> None:
    save_persona(cast.tenant, "One.")
    for _ in range(13):
        following_session(cast.tenant)
    save_persona(cast.tenant, "Two.")
    with django_assert_max_num_queries(60):  # type: ignore[operator]
        page = cast.operator.get(address(cast)).content.decode()
    assert "2 more open sessions" in page


def test_agents_and_policies_in_force_are_listed(cast: Cast, pressed: LiveSession) -> None:
    page = cast.page("agents/", name="coder", version="12")
    for text in (
        "coder@12",
        "You mend failing tests",
        "default@1",
        "history floor",
        "1,000",
        "2 figures unlike the default",
    ):
        assert text in page, text
    (line,) = cast.data("agents.json")
    assert (line["name"], line["sessions"]) == ("coder", 2)
    rows = b"".join(cast.viewer.get(cast.url("policies.csv"))).decode()
    assert f"history floor,{'1,000'!r}".replace("'", '"') in rows
    assert len(cast.data("policies.json")) == 2
    assert cast.operator.get(cast.url("agents/?name=nobody&version=1")).status_code == 404
