"""P7: epochs, their comparison, and rotating with a preview and a reason."""

from __future__ import annotations

from django.test import Client

from ctxengine.engine.ids import EventSeq
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import AuditEntry, PlanRow
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure
from tests.factories import LiveSession
from tests.inspector.conftest import Cast
from tests.inspector.sessions import save_persona


def rotate_form(cast: Cast, **fields: str) -> dict[str, str]:
    epoch = PlanRow.objects.filter(session_id=cast.session.id).count()
    return {"epoch": str(epoch), "why": "operator", "reason": "A trial.", **fields}


def rotate(cast: Cast, client: Client, **fields: str) -> int:
    address = cast.url(f"sessions/{cast.session.id}/epochs/rotate/")
    return client.post(address, rotate_form(cast, **fields)).status_code


def test_each_epoch_says_why_who_and_what_it_cost(cast: Cast, kept: LiveSession) -> None:
    page = cast.page(f"sessions/{kept.id}/epochs/")
    for text in (
        "An operator rebuilt the plan by hand.",
        "“A new beginning.”",
        "system",
        "The session opened.",
        "Rotate…",
    ):
        assert text in page
    lines = cast.data(f"sessions/{kept.id}/epochs.json")
    assert [line["line"]["epoch"] for line in lines] == [2, 1]
    assert lines[0]["act"]["actor"] == "system"
    assert lines[1]["act"] is None


def test_epochs_come_as_csv(cast: Cast, kept: LiveSession) -> None:
    response = cast.viewer.get(cast.url(f"sessions/{kept.id}/epochs.csv"))
    lines = b"".join(response).decode().splitlines()
    assert lines[0].startswith("epoch,reasons,note,actor,prefix_tokens,recached_tokens,price_usd")
    assert lines[1].startswith("2,operator,A new beginning.,system,")


def test_a_rotation_is_previewed_before_it_is_made(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/epochs/rotate/")
    for text in ("Rotate to epoch 2", "Re-cached, once", "Sessions touched", "Both pin the same"):
        assert text in page
    assert PlanRow.objects.filter(session_id=cast.session.id).count() == 1


def test_rotating_needs_a_reason_and_leads_to_the_new_epoch(cast: Cast) -> None:
    assert rotate(cast, cast.operator, reason=" ") == 422
    address = cast.url(f"sessions/{cast.session.id}/epochs/rotate/")
    response = cast.operator.post(address, rotate_form(cast))
    assert response.status_code == 303
    assert response["Location"].endswith("/epochs/?made=2#epoch-2")
    entry = AuditEntry.objects.get(tenant_id=cast.tenant.id, action="epoch.rotated")
    assert entry.reason == "A trial."
    assert entry.actor.startswith("user:person-")
    assert "Epoch 2 began" in cast.page(f"sessions/{cast.session.id}/epochs/", made=2)


def test_a_form_sent_twice_rotates_once(cast: Cast) -> None:
    form = rotate_form(cast)
    address = cast.url(f"sessions/{cast.session.id}/epochs/rotate/")
    assert cast.operator.post(address, form).status_code == 303
    again = cast.operator.post(address, form)
    assert again.status_code == 409
    assert "A trial." in again.content.decode()
    assert PlanRow.objects.filter(session_id=cast.session.id).count() == 2


def test_a_tool_is_removed_with_a_preview_of_what_leaves(cast: Cast) -> None:
    query = {"why": "tool_removed_for_security", "tool": "web.fetch"}
    page = cast.page(f"sessions/{cast.session.id}/epochs/rotate/", **query)
    assert "→ moved" in page
    assert "removed for security" in page
    assert rotate(cast, cast.operator, **query) == 303
    diff = cast.page(f"sessions/{cast.session.id}/epochs/diff/")
    assert "defined → hidden" in diff
    assert "Epoch 1 → 2" in diff


def test_removing_without_naming_a_tool_is_not_offered(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/epochs/rotate/", why="tool_removed_for_security")
    assert "Choose the tools" in page
    assert 'name="reason"' not in page
    assert rotate(cast, cast.operator, why="tool_removed_for_security") == 422


def test_a_reason_nobody_gives_by_hand_is_refused(cast: Cast) -> None:
    assert rotate(cast, cast.operator, why="model_changed") == 422


def test_a_viewer_sees_the_preview_and_no_button(cast: Cast) -> None:
    address = cast.url(f"sessions/{cast.session.id}/epochs/rotate/")
    page = cast.viewer.get(address).content.decode()
    assert "Acting needs the role operator" in page
    assert 'name="reason"' not in page
    assert (
        "Rotate…"
        not in cast.viewer.get(cast.url(f"sessions/{cast.session.id}/epochs/")).content.decode()
    )
    assert rotate(cast, cast.viewer) == 403
    assert PlanRow.objects.filter(session_id=cast.session.id).count() == 1


def test_two_epochs_are_compared_row_by_row(cast: Cast, kept: LiveSession) -> None:
    save_persona(cast.tenant, "Prefers small commits.", "Writes dates as 2026-01-31.")
    kept.ask("Again?").answer("Yes.")
    page = cast.page(f"sessions/{kept.id}/epochs/diff/", before=1, after=3)
    assert "Writes dates as 2026-01-31." in page
    assert "revision 1" in page
    assert "revision 2" in page
    found = cast.data(f"sessions/{kept.id}/epochs/diff.json?before=1&after=3")["comparison"]
    assert [change["row"]["number"] for change in found["texts"]] == [4]
    same = cast.page(f"sessions/{kept.id}/epochs/diff/", before=1, after=2)
    assert "Both pin the same bytes" in same


def test_a_single_epoch_has_nothing_to_compare(cast: Cast) -> None:
    assert "single epoch" in cast.page(f"sessions/{cast.session.id}/epochs/diff/")
    address = cast.url(f"sessions/{cast.session.id}/epochs/diff/?after=7")
    assert cast.operator.get(address).status_code == 404


def test_what_the_next_run_would_rotate_is_told_beforehand(cast: Cast, kept: LiveSession) -> None:
    assert "At the next run" not in cast.page(f"sessions/{kept.id}/epochs/")
    save_persona(cast.tenant, "Prefers large commits.")
    page = cast.page(f"sessions/{kept.id}/epochs/")
    assert "At the next run" in page
    assert "A new persona revision was saved." in page


def test_what_keeps_the_next_run_from_starting_is_told(cast: Cast) -> None:
    too_long = ("word " * 4_000,)
    configure_session(
        actor=cast.session.actor, session_id=cast.session.id, spec=Configure(persona=too_long)
    )
    assert "The next run cannot start" in cast.page(f"sessions/{cast.session.id}/epochs/")


def test_an_ended_session_is_only_read(cast: Cast, kept: LiveSession) -> None:
    from ctxengine.service.end_session import end_session

    end_session(actor=kept.actor, session_id=kept.id)
    for path in ("epochs/", "compactions/", "state/", "plan/"):
        page = cast.page(f"sessions/{kept.id}/{path}")
        for button in ("Rotate…", "Undo…", "Compact now…", "Lift…", "Revoke…", "Restore…"):
            assert button not in page, path
    assert "The session has ended." in cast.page(f"sessions/{kept.id}/epochs/rotate/")


def test_many_epochs_ask_no_more(
    cast: Cast, kept: LiveSession, django_assert_max_num_queries: object
) -> None:
    assert PostgresLog(cast.tenant.id, kept.id).head().sequence > EventSeq(1)
    with django_assert_max_num_queries(18):  # type: ignore[operator]
        cast.page(f"sessions/{kept.id}/epochs/")
