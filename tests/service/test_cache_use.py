"""A session's requests predict their cache reads, and expose nothing but the prediction."""

from __future__ import annotations

import pytest

from ctxengine.ledger.models import RequestRow
from ctxengine.service.assemble import assemble
from ctxengine.service.open_session import open_session
from ctxengine.service.specs import (
    AgentRef,
    Assemble,
    Content,
    ModelRef,
    OpenSession,
    StartRun,
    TakeResponse,
)
from ctxengine.service.start_run import start_run
from ctxengine.service.take_response import take_response
from tests.cast import new_actor

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
