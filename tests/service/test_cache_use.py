"""A session's requests predict their cache reads, and expose nothing but the prediction."""

from __future__ import annotations

import pytest

from ctxengine.ledger.models import Event, RequestRow
from ctxengine.service.assemble import assemble
from ctxengine.service.compact import compact
from ctxengine.service.open_session import open_session
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import (
    AgentRef,
    Assemble,
    Compact,
    Content,
    ModelRef,
    OpenSession,
    PolicySpec,
    StartRun,
    TakeResponse,
)
from ctxengine.service.start_run import start_run
from ctxengine.service.take_response import take_response
from tests.cast import new_actor
from tests.factories import LiveSession, make_tenant
from tests.inspector.sessions import talk

pytestmark = pytest.mark.django_db


def test_the_second_run_reads_what_the_first_one_wrote() -> None:
    actor = new_actor()
    spec = OpenSession(
        model=ModelRef(provider="anthropic", name="claude-sonnet-4-6"),
        agent=AgentRef(name="a", version="1", instructions="Word by word. " * 400),
        occasion="scheduled",
    )
    session = open_session(actor=actor, spec=spec)
    answers = []
    for question in ("One?", "Two?"):
        run = start_run(
            actor=actor, session_id=session.id, spec=StartRun(message=Content(raw=question))
        )
        answers.append(assemble(actor=actor, run_id=run.id, spec=Assemble()))
        reply = '{"content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn"}'
        take_response(actor=actor, run_id=run.id, spec=TakeResponse(response_raw=reply))
    first, second = (answer.cache for answer in answers)
    assert first["predicted"]["read"] == 0
    assert first["predicted"]["write"] > 1_024
    assert second["predicted"]["read"] == first["predicted"]["write"]
    assert [marker["ttl"] for marker in first["markers"]] == ["1h", "1h"]
    assert "entries" not in first
    for row, answer in zip(RequestRow.objects.order_by("number"), answers, strict=True):
        buckets = answer.cache["predicted"]
        assert buckets["read"] + buckets["write"] + buckets["fresh"] == row.total_tokens


@pytest.mark.parametrize(("removed", "cause"), [(False, "compacted"), (True, "epoch_rotated")])
def test_an_epoch_is_the_cause_only_where_the_prefix_has_other_bytes(
    removed: bool, cause: str
) -> None:
    session = talk(LiveSession(make_tenant(), policy=PolicySpec(low_water=0.3)), 4)
    last = Event.objects.filter(session_id=session.id, type="run.ended").order_by("sequence")[2]
    spec = Compact(through=last.sequence, note="Make room.")
    assert compact(actor=session.actor, session_id=session.id, spec=spec).outcome == "compacted"
    at = {"actor": session.actor, "session_id": session.id, "note": "For a reason."}
    if removed:
        rotate_epoch(**at, reason="tool_removed_for_security", tools=["web.fetch"])
    else:
        rotate_epoch(**at, reason="operator")
    session.ask("And now?").answer("Now we wait.")
    row = RequestRow.objects.get(id=session.requests[-1])
    before = RequestRow.objects.get(id=session.requests[-2])
    assert row.epoch > before.epoch
    assert (row.wire_prefix_sha256 != before.wire_prefix_sha256) is removed
    assert row.cache["predicted"]["cause"] == cause
