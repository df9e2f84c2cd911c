"""P3: the working state and lifting a constraint."""

from __future__ import annotations

from ctxengine.ledger.models import AuditEntry
from tests.factories import LiveSession
from tests.inspector.conftest import Cast


def test_entries_stand_with_provenance_rule_and_cap(cast: Cast, kept: LiveSession) -> None:
    page = cast.page(f"sessions/{kept.id}/state/")
    for text in (
        "Count every depot once.",
        "Never round a figure.",
        "Read the northern sheet",
        "There are four depots.",
        "Constraints 1 / 20",
        "carried through runs: only grows; the user alone lifts one",
        "rests on",
        "by the model",
    ):
        assert text in page, text


def test_entries_come_as_json_and_csv(cast: Cast, kept: LiveSession) -> None:
    entries = cast.data(f"sessions/{kept.id}/state.json")
    constraint = next(entry for entry in entries if entry["field"] == "constraints")
    assert constraint["text"] == "Never round a figure."
    response = cast.viewer.get(cast.url(f"sessions/{kept.id}/state.csv"))
    assert b"Never round a figure." in b"".join(response)


def test_a_session_without_state_says_who_writes_it(cast: Cast) -> None:
    page = cast.page(f"sessions/{cast.session.id}/state/")
    assert "nothing was ever written" in page
    assert "context.update_working_state" in page


def test_a_constraint_is_lifted_on_the_users_word(cast: Cast, kept: LiveSession) -> None:
    entries = cast.data(f"sessions/{kept.id}/state.json")
    (constraint,) = [entry["id"] for entry in entries if entry["field"] == "constraints"]
    address = cast.url(f"sessions/{kept.id}/state/lift/")
    asked = cast.operator.get(address, {"id": constraint}).content.decode()
    assert "Never round a figure." in asked
    form = {"id": constraint, "reason": "Mara said so."}
    assert cast.viewer.post(address, form).status_code == 403
    assert cast.operator.post(address, {"id": constraint}).status_code == 422
    done = cast.operator.post(address, form)
    assert done.status_code == 303
    left = cast.data(f"sessions/{kept.id}/state.json")
    assert not [entry for entry in left if entry["field"] == "constraints"]
    entry = AuditEntry.objects.get(tenant_id=cast.tenant.id, action="constraints.changed")
    assert entry.reason == "Mara said so."
    assert cast.operator.get(address, {"id": constraint}).status_code == 404


def test_a_viewer_sees_no_way_to_lift(cast: Cast, kept: LiveSession) -> None:
    page = cast.viewer.get(cast.url(f"sessions/{kept.id}/state/")).content.decode()
    assert "Never round a figure." in page
    assert "Lift…" not in page


def test_the_page_asks_a_bounded_number_of_questions(
    cast: Cast, kept: LiveSession, django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        cast.page(f"sessions/{kept.id}/state/")
