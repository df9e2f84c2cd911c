"""A packet that grew keeps what it adds alone, goes on from all before it, and counts as a compaction once a plan shows it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ctxengine.engine.compaction.packet import CompactionResult
from ctxengine.engine.events import EventType
from ctxengine.engine.history.working_set_packets import first_readable
from ctxengine.ledger.models import Body
from ctxengine.service.compactions import compactions_of
from ctxengine.service.metrics.report import MetricsSpec, metrics
from ctxengine.service.specs import PolicySpec
from tests.summing import provider_of, told
from tests.telling import FIRST, LATER, NEXT, Telling, overtaken, page_of, states

pytestmark = pytest.mark.django_db


def grown(times: int) -> Telling:
    """A session whose packet has grown so many times, from the ledger alone."""
    runtime = Telling(policy=PolicySpec(history_floor=200))
    runtime.go_on(FIRST, found="Here are the lamps of it.")
    runtime.over()
    for _ in range(times):
        runtime.go_on(NEXT - 1, found="Here are the lamps of it.")
        runtime.over()
    return runtime


def body_of(runtime: Telling, event: Any) -> CompactionResult:
    return CompactionResult.model_validate_json(runtime.log.body(str(event.body_id)) or "")


def test_each_body_holds_what_its_packet_adds_and_together_they_hold_all() -> None:
    runtime = grown(4)
    packets = runtime.packets
    assert len(packets) == 5
    assert [e.payload.get("grown_from") for e in packets] == [
        None,
        *(int(e.sequence) for e in packets[:-1]),
    ]
    parts = [body_of(runtime, event) for event in packets]
    for before, part in pairwise(parts):
        assert min(part.source_event_ids) > before.replaced_through_sequence
        assert 0 < len(part.elided) <= NEXT
        assert 0 < len(part.sections.asked) <= NEXT
    records = [runtime.log.events(after=e.sequence - 1, limit=1)[0] for e in packets]
    whole = first_readable(runtime.log, records[-1:])
    assert whole is not None
    told = packets[-1].payload
    assert (len(whole.result.elided), len(whole.result.source_event_ids)) == (
        told["elided"],
        told["sources"],
    )
    assert whole.result.first_sequence <= whole.result.source_event_ids[0]
    assert sorted(whole.result.source_event_ids) == sorted(
        {event for part in parts for event in part.source_event_ids}
    )
    runtime.all_proven()


def test_the_list_tells_of_each_what_it_adds_and_counts_all() -> None:
    runtime = grown(3)
    found = compactions_of(actor=runtime.actor, session_id=runtime.session)
    newest, before, *_ = found.as_json()["items"]
    assert newest["grown_from"] == before["event"]
    assert len(newest["elided"]) < newest["pointers"]
    assert len(newest["source_event_ids"]) < newest["sources"]
    assert found.as_json()["items"][-1]["grown_from"] is None
    whole = found.whole(found.lines[0])
    assert whole is not None and len(whole.elided) == newest["pointers"]
    shown = page_of(runtime)
    assert f"/items/{whole.elided[0].item_id}" in shown


def test_a_packet_whose_material_is_gone_in_part_is_not_gone_on_from() -> None:
    runtime = grown(2)
    lost = runtime.packets[1]
    Body.objects.filter(id=lost.body_id).update(data=b"", salt=b"", erased_at=lost.recorded_at)
    runtime.go_on(NEXT - 1)
    newest = runtime.packets[-1]
    assert newest.payload.get("grown_from") == runtime.packets[0].sequence
    assert newest.payload["sources"] == len(
        {i for e in (runtime.packets[0], newest) for i in body_of(runtime, e).source_event_ids}
    )


def counted(runtime: Telling) -> dict[str, Any]:
    total = metrics(actor=runtime.actor, spec=MetricsSpec()).totals
    return {"compactions": total.compactions, "tokens": total.compacted_tokens}


def test_a_packet_counts_once_a_plan_shows_it_and_one_in_reserve_does_not(settings: Any) -> None:
    with provider_of(settings, told(), told(LATER), told(LATER)):
        runtime = overtaken()
        before = counted(runtime)
        runtime.work()
        assert "reserve" in states(runtime).values()
        assert counted(runtime) == before
        shown = {plan.payload["packet"] for plan in runtime.events(EventType.WORKING_SET_PLANNED)}
        planned = [event for event in runtime.packets if event.sequence in shown]
        assert before["compactions"] == len(planned) < len(runtime.packets)
        assert before["tokens"] == sum(
            event.payload["tokens_before"] - event.payload["tokens_after"] for event in planned
        )


def test_one_made_by_hand_counts_from_the_run_that_shows_it() -> None:
    runtime = Telling(policy=PolicySpec(history_floor=200))
    runtime.pass_by(FIRST)
    assert runtime.shrink().outcome == "compacted"
    assert counted(runtime)["compactions"] == 0
    runtime.go_on()
    assert runtime.plan["packet"] == runtime.packets[0].sequence
    assert counted(runtime)["compactions"] == 1
