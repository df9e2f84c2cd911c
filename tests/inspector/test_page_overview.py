"""P1: the overview says what is stored, and only that."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ctxengine.ledger.models import Event, RequestRow, SessionRow
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import Actor, EndRun, PolicySpec, ServiceError
from tests.cast import Runtime
from tests.factories import LiveSession
from tests.inspector.conftest import Cast


def test_a_healthy_fleet_has_no_broken_promise(cast: Cast) -> None:
    page = cast.page()
    assert "✓ none" in page
    assert "Second prefix hash in an epoch" in page


def test_figures_and_their_json_twin_agree(cast: Cast) -> None:
    found = cast.data("overview.json")
    assert found["counts"]["sessions"] == 1
    assert found["counts"]["requests"] == len(cast.session.requests)
    assert found["bill"]["reported"] == len(cast.session.requests)
    assert "shell" not in found


def test_a_second_prefix_in_an_epoch_is_named_with_its_session(cast: Cast) -> None:
    RequestRow.objects.filter(id=cast.session.requests[-1]).update(prefix_sha256="0" * 64)
    page = cast.page()
    assert "✕ 2 open" in page
    assert "epoch 1: 2 neutral and 1 wire hashes" in page


def test_a_head_that_is_not_the_last_event_is_a_broken_promise(cast: Cast) -> None:
    SessionRow.objects.filter(id=cast.session.id).update(last_hash="f" * 64)
    assert "names another hash" in cast.page()


def test_pressure_makes_a_session_the_worst(cast: Cast, pressed: LiveSession) -> None:
    found = cast.data("overview.json")
    assert found["worst"][0]["title"] == "Nightly sync"
    assert any("pressure" in cause for cause in found["worst"][0]["causes"])


def test_a_step_that_did_not_fit_is_exceeded_and_nowhere_pressure(cast: Cast) -> None:
    actor = Actor(cast.tenant.id, "system")
    policy = PolicySpec(reserve=1_000, history_floor=500)
    runtime = Runtime(actor=actor, window=14_000, max_output=1_000, policy=policy)
    runtime.turn("Question?", "An answer. " * 200)
    runtime.ask("x " * 20_000)
    for _ in range(2):
        with pytest.raises(ServiceError):
            runtime.assemble()
    assert Event.objects.filter(session_id=runtime.session, type="context.budget.pressure").exists()
    (worst,) = (
        row for row in cast.data("overview.json")["worst"] if row["id"] == str(runtime.session)
    )
    assert runtime.row.pressure_count == 0
    assert not [cause for cause in worst["causes"] if "pressure" in cause]
    assert any("exceeded" in cause for cause in worst["causes"])
    assert cast.data("sessions.json", has="pressure") == []
    assert len(cast.data("sessions.json", has="exceeded")) == 1
    end_run(actor=actor, run_id=runtime.run, spec=EndRun(outcome="failed"))
    runtime.turn("Shorter?", "Yes.")
    acts = {act["glyph"]: act["places"] for act in strip_acts(cast, runtime.session)}
    assert len(acts["P"]) == runtime.row.pressure_count == 1
    assert [place["label"] for place in acts["X"]] == ["3.1"]


def strip_acts(cast: Cast, session: UUID) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cast.data(f"sessions/{session}.json")["view"]["acts"]
    return found


def test_an_odd_window_is_refused_and_says_which_there_are(cast: Cast) -> None:
    response = cast.operator.get(cast.url(), {"w": "century"})
    assert response.status_code == 400
    assert b"24h, 7d, 30d, 90d" in response.content


def test_a_prompt_over_its_budget_is_a_broken_promise(cast: Cast) -> None:
    row = RequestRow.objects.get(id=cast.session.requests[0])
    RequestRow.objects.filter(id=row.id).update(total_tokens=row.budget["usable"] + 1)
    assert breaches(cast, "Prompt over its budget") == 1


def test_a_rotation_that_nobody_asked_for_is_a_broken_promise(
    cast: Cast, kept: LiveSession
) -> None:
    assert breaches(cast, "Epoch that nobody asked for") == 0
    rebuilt(kept)
    assert breaches(cast, "Epoch that nobody asked for") == 1


def rebuilt(session: LiveSession) -> None:
    """A rotation whose only reason is that a newer builder renders other bytes."""
    last = Event.objects.filter(session_id=session.id).order_by("-sequence")[0]
    Event.objects.create(
        tenant_id=session.tenant.id, session_id=session.id, sequence=last.sequence + 1,
        type="context.epoch.rotated", trust="PLATFORM", prev_hash=last.hash, hash="0" * 64,
        payload={"epoch": 3, "reasons": ["builder_changed"]}, recorded_at=last.recorded_at,
    )  # fmt: skip


def test_a_provider_that_names_another_cause_is_a_broken_promise(cast: Cast) -> None:
    RequestRow.objects.filter(id=cast.session.requests[1]).update(
        verdict={
            "class": "shortfall",
            "cause": "ttl_gap",
            "provider_reason": "model_changed",
            "disagreement": True,
        }
    )
    assert breaches(cast, "Provider names another cause for a cache miss") == 1
    assert "we say ttl gap, the provider says model changed" in cast.page()


def test_counts_far_below_the_bill_are_a_broken_promise(cast: Cast) -> None:
    for row in RequestRow.objects.filter(session_id=cast.session.id):
        row.usage["fresh"] += row.total_tokens
        row.save(update_fields=["usage"])
    assert breaches(cast, "Counts below the bill by more than the safety margin") == 1


def breaches(cast: Cast, title: str) -> int:
    promise = next(p for p in cast.data("overview.json")["promises"] if p["title"] == title)
    return len(promise["breaches"])


def test_the_number_of_queries_does_not_follow_the_fleet(cast: Cast) -> None:
    with CaptureQueriesContext(connection) as few:
        cast.page()
    for number in range(4):
        LiveSession(cast.tenant, title=f"more {number}").ask("Hello?").answer("Yes.")
    with CaptureQueriesContext(connection) as many:
        cast.page()
    assert len(few) == len(many) < 45
