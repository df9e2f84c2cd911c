"""P1: the overview says what is stored, and only that."""

from __future__ import annotations

from ctxengine.ledger.models import RequestRow, SessionRow
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


def test_an_odd_window_falls_back(cast: Cast) -> None:
    assert '<a href="?w=7d" aria-current="page">' in cast.page("", w="century")


def test_the_number_of_queries_does_not_follow_the_fleet(
    cast: Cast, django_assert_max_num_queries: object
) -> None:
    for number in range(4):
        LiveSession(cast.tenant, title=f"more {number}").ask("Hello?").answer("Yes.")
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        cast.page()
