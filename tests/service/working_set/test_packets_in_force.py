"""Which packet is in force, what is told of the others, and what somebody asks for by hand (design 7.9, 7.14 and 8)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.ledger.models import AuditEntry
from ctxengine.service.compactions import compactions_of
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.retry import retry_job
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.forecast import summary_forecast
from ctxengine.service.turns.packets import packets_of
from inspector.figures import dollars
from tests.summing import TOLD, asked, provider_of, told
from tests.telling import (
    KIND,
    LATER,
    NEXT,
    change,
    nine,
    overtaken,
    page_of,
    states,
    timeless,
    wished,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("undone", ["late", "standing"])
def test_one_in_reserve_leaves_no_trace_and_goes_with_the_one_before_it(
    undone: str, settings: Any
) -> None:
    with provider_of(settings, told()):
        runtime = overtaken()
        shown, standing = runtime.assemble().body.decode(), runtime.packet().sequence
        cancel_job(actor=runtime.actor, job_id=runtime.jobs[-1].id)
        runtime.work()
        late = runtime.packets[-1].sequence
        if undone == "late":
            preview = page_of(runtime, f"{late}/undo/")
            assert "No request shows anything of it" in preview and "±0 tokens" in preview
        runtime.undo(late if undone == "late" else standing)
        after = states(runtime)
        if undone == "late":
            assert (after[late], after[standing]) == ("undone", "standing")
            assert timeless(runtime.assemble().body.decode()) == timeless(shown)
            runtime.over()
            assert TOLD not in runtime.go_on(NEXT)
            assert (runtime.plan["packet_turn"], runtime.plan["refused"]) == (32, "")
        else:
            assert (after[late], after[standing]) == ("held_out", "undone")
            page = page_of(runtime)
            assert "kept out" in page and "● stands" in page
            assert f"compactions/{late}/undo/" not in page
            assert TOLD not in runtime.assemble().body.decode()
            assert runtime.plan["refused"] == "taken_back"
    runtime.all_proven()


def test_a_room_that_shrinks_a_little_keeps_the_prose_that_was_paid_for(settings: Any) -> None:
    with provider_of(settings, told(TOLD + " Each of them has its lamps." * 12)):
        runtime = wished()
        runtime.work()
        written = runtime.packets[-1]
        runtime.over()
        says = "And a little more is said of it than there was before. " * 24
        shown = runtime.go_on(NEXT - 1, says=says)
        packet, room = runtime.packet(), runtime.plan["room"]["packet"]
        assert written.payload["tokens_after"] > room >= packet.payload["tokens_after"]
        assert (packet.payload["kind"], packet.payload["turns"]) == ("model", 24)
        assert packet.payload["compactor"].endswith("packet@1 + ledger-summary@2")
        assert TOLD in nine(shown) and "number23" in nine(shown)
        assert states(runtime)[written.sequence] == "superseded"
        runtime.over()
        assert nine(runtime.go_on()) == nine(shown)
    runtime.all_proven()


def test_nobody_reads_the_whole_history_and_what_is_in_force_is_told_so(settings: Any) -> None:
    with provider_of(settings, told(), told(LATER)) as provider:
        runtime = wished()
        runtime.work()
        first = runtime.packets[-1].sequence
        change(runtime, "excluded")
        runtime.over()
        # No packet is left to go on from, before the next plan makes one.
        assert len(runtime.jobs) == 1
        runtime.go_on()
        assert runtime.work() == [(KIND, "done")]
        assert "harbour number9." not in asked(provider)[-1].partition('"notes"')[0]
        written = runtime.packets[-1].sequence
        runtime.over()
        shown = runtime.go_on(NEXT - 2)
        assert runtime.plan["packet"] == written and LATER in nine(shown)
        found = states(runtime)
        assert (found[written], found[first]) == ("standing", "held_out")
        (tile, *_) = compactions_of(actor=runtime.actor, session_id=runtime.session).tiles
        assert (tile.told_by, tile.event) == ("summary", written)
        ranges = packets_of(actor=runtime.actor, session_id=runtime.session)
        assert {p.event: (p.reserve, p.held_out) for p in ranges}[written] == (False, False)
        with pytest.raises(ServiceError) as refused:
            runtime.undo(first)
        assert refused.value.extra["first"] == written
    runtime.all_proven()


def test_a_job_whose_packet_is_gone_asks_nobody_and_is_asked_for_again(settings: Any) -> None:
    with provider_of(settings, told()) as provider:
        runtime = wished()
        change(runtime, "excluded")
        assert runtime.work() == [(KIND, "failed")]
        assert runtime.jobs[0].error["code"] == "source_changed"
        assert asked(provider) == []
        runtime.assemble()
        runtime.over()
        assert runtime.work() == [(KIND, "done")]
        (prompt,) = asked(provider)
    assert "[turns 1 to" not in prompt and '\\"by\\":\\"notes\\"' in prompt.replace(": ", ":")


@pytest.mark.parametrize("undone", [False, True])
def test_what_somebody_asks_for_is_no_job_that_was_under_way(undone: bool, settings: Any) -> None:
    with provider_of(settings, answer=lambda _: told()) as provider:
        runtime = overtaken()
        ahead = runtime.jobs[0]
        if undone:
            runtime.undo(runtime.packet().sequence)
            runtime.assemble()
        runtime.over()
        preview = runtime.shrink(summariser="model", preview=True)
        assert preview.tokens_read is not None
        assert preview.tokens_read < preview.tokens_before / 2
        cost = summary_forecast(
            actor=runtime.actor,
            session_id=runtime.session,
            tokens_before=preview.tokens_read,
            tokens_after=preview.tokens_after or 0,
        )
        assert dollars(cost.usd) in page_of(runtime, "new/", model="1")
        done = runtime.shrink(summariser="model", note="it tells too little")
        assert done.outcome == "queued" and done.job is not None
        assert done.job.id not in {ahead.id, runtime.jobs[1].id}
        cancel_job(actor=runtime.actor, job_id=ahead.id)
        cancel_job(actor=runtime.actor, job_id=runtime.jobs[1].id)
        assert runtime.work() == [(KIND, "done")]
        made = runtime.packets[-1]
        assert (made.run_id, made.payload["forced_by"]) == (None, runtime.actor.label)
        row = AuditEntry.objects.filter(tenant_id=runtime.actor.tenant_id).latest("at")
        assert (row.action, row.reason) == ("history.compacted", "it tells too little")
        # One ahead of the plan would write over the same turns for nobody.
        calls = len(asked(provider))
        retry_job(actor=runtime.actor, job_id=ahead.id)
        assert runtime.work() == [(KIND, "done")] and len(asked(provider)) == calls
        shown = runtime.go_on()
        assert runtime.plan["packet"] == made.sequence and TOLD in nine(shown)
    runtime.all_proven()
