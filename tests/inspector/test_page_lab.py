"""P13: a replay asked for on its page, its matrix, its curves, and a simulated step that is marked as one."""

from __future__ import annotations

import pytest

from ctxengine.ledger.models import ReplayRow
from tests.inspector.conftest import Cast
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

ENGINES = ["suffix", "sliding_window"]


def asked(cast: Cast, **changes: object) -> ReplayRow:
    form = {
        "session": str(cast.session.id),
        "engine": ENGINES,
        "models": "claude-sonnet-4-6",
        "budget": "",
        "ttl": "",
        "turn_gap": "",
    }
    answer = cast.operator.post(cast.url("lab/"), {**form, **changes})
    assert answer.status_code == 303, answer.content.decode()[:2000]
    return ReplayRow.objects.get(tenant_id=cast.tenant.id)


def test_the_form_is_filled_with_the_session_it_was_opened_from(cast: Cast) -> None:
    page = cast.page("lab/", session=str(cast.session.id))
    assert f'value="{cast.session.id}"' in page
    assert "sliding_window" in page and "suffix" in page


def test_sessions_are_found_by_words_and_by_the_beginning_of_an_id(cast: Cast) -> None:
    title = cast.page("lab/", session=str(cast.session.id))
    assert 'name="session" value=' in title and 'enctype="multipart/form-data"' in title
    for find in (str(cast.session.id)[:8], ""):
        assert f'value="{cast.session.id}"' in cast.page("lab/", find=find)
    for find in ("no session is called so", "%", "' OR 1=1"):
        assert "No session with a request is called so" in cast.page("lab/", find=find)


def test_a_refused_form_keeps_what_was_ticked_and_typed(cast: Cast) -> None:
    answer = cast.operator.post(
        cast.url("lab/"),
        {
            "session": str(cast.session.id),
            "engine": ["append_all"],
            "model": ["openai/gpt-5.4"],
            "models": "<kimi>",
            "low_water": "0.5",
        },
    )
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="append_all" checked' in page and 'value="suffix" checked' not in page
    assert 'value="openai/gpt-5.4" checked' in page and 'value="0.5"' in page
    assert "<kimi>" not in page and "&lt;kimi&gt;" in page


def test_a_session_and_each_of_its_requests_lead_to_the_lab(cast: Cast) -> None:
    request = cast.session.requests[0]
    way = f"lab/?session={cast.session.id}"
    assert way in cast.page(f"sessions/{cast.session.id}/")
    assert way in cast.page(f"requests/{request}/")


def test_the_matrix_fills_and_a_step_opens_as_a_request_marked_simulated(cast: Cast) -> None:
    row = asked(cast)
    waiting = cast.page(f"lab/{row.id}/")
    assert "waiting" in waiting and "hx-get" in waiting
    assert work_off(cast.tenant.id, kind="replay.run")[0][1] == "done"
    page = cast.page(f"lab/{row.id}/")
    assert "hx-trigger" not in page and "none is cheaper at its fidelity" in page
    cell = cast.page(f"lab/{row.id}/cells/1/")
    assert cell.count('class="trend"') == 2 and f"lab/{row.id}/cells/1/steps/1/" in cell
    assert "No answer used a fact" in cell
    step = cast.page(f"lab/{row.id}/cells/1/steps/1/")
    assert "Simulated: this request was built by the replay lab and never sent" in step
    assert "has the same hash" in step and "Region A" in step


def test_a_peer_policy_has_curves_and_no_request_to_open(cast: Cast) -> None:
    row = asked(cast)
    work_off(cast.tenant.id, kind="replay.run")
    assert "builds no request" in cast.page(f"lab/{row.id}/cells/2/")
    assert cast.operator.get(cast.url(f"lab/{row.id}/cells/2/steps/1/")).status_code == 409


def test_the_raw_body_of_a_simulated_step_is_that_of_the_recorded_request(cast: Cast) -> None:
    row = asked(cast)
    work_off(cast.tenant.id, kind="replay.run")
    raw = cast.operator.get(cast.url(f"lab/{row.id}/cells/1/steps/1/raw")).content
    first = cast.data("requests.json", session=str(cast.session.id))[-1]
    assert raw == cast.operator.get(cast.url(f"requests/{first['id']}/raw")).content


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": []},
        {"engine": ["tarot"]},
        {"models": "kimi"},
        {"budget": "few"},
        {"session": "x"},
        {"turn_gap": "-1"},
    ],
)
def test_a_form_that_cannot_be_used_is_shown_again_with_the_reason(
    cast: Cast, changes: dict[str, object]
) -> None:
    form = {"session": str(cast.session.id), "engine": ENGINES, "models": "claude-sonnet-4-6"}
    answer = cast.operator.post(cast.url("lab/"), {**form, **changes})
    assert answer.status_code in {400, 422}
    assert 'role="alert"' in answer.content.decode()
    assert not ReplayRow.objects.exists()


def test_a_viewer_reads_and_does_not_start(cast: Cast) -> None:
    row = asked(cast)
    assert cast.viewer.get(cast.url(f"lab/{row.id}/")).status_code == 200
    assert '<form class="filters inner"' not in cast.viewer.get(cast.url("lab/")).content.decode()
    assert cast.viewer.post(cast.url("lab/"), {}).status_code == 403


def test_the_twins_give_the_same_figures(cast: Cast) -> None:
    row = asked(cast)
    work_off(cast.tenant.id, kind="replay.run")
    figures = cast.data(f"lab/{row.id}.json")
    assert [line["engine"] for line in figures] == ENGINES
    csv = cast.operator.get(cast.url(f"lab/{row.id}/cells/1.csv")).getvalue().decode()
    assert len(csv.splitlines()) == 1 + figures[0]["steps"] + figures[0]["refused"]
