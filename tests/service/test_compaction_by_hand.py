"""Compaction by hand and under pressure; every request rebuilds to its hash all along."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import AuditEntry, Body, Calibration
from ctxengine.service.compactions import compactions_of
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import PolicySpec, ServiceError
from tests.cast import AT, Call, tool
from tests.shrinking import PROSE, Shrinker, body, row_nine

pytestmark = pytest.mark.django_db


def test_a_summary_takes_the_place_of_exactly_the_range_it_covers() -> None:
    runtime = Shrinker()
    runtime.talk(3)
    through = runtime.row.content_sequence
    runtime.ask("And now?")
    runtime.assemble()
    done = runtime.shrink(through=through)
    assert (done.outcome, done.replaced_through, done.depth) == ("compacted", through, 1)
    assert done.tokens_after < done.tokens_before
    request = body(runtime.assemble())
    summary = row_nine(request)
    assert summary.startswith(f"[summary] Events 1 to {through} (3 turns")
    assert 'source="summary:deterministic"' in summary
    assert summary.endswith("[end of summary]")
    assert "And now?" in request["messages"][-1]["content"][-1]["text"]
    assert all(message["role"] != "system" for message in request["messages"])
    runtime.all_proven()


def test_compacting_an_unchanged_log_writes_nothing() -> None:
    runtime = Shrinker()
    runtime.talk(3)
    through = runtime.row.content_sequence
    first = runtime.shrink(through=through)
    head = runtime.row.last_sequence
    for _ in range(3):
        again = runtime.shrink(through=through)
        assert (again.outcome, again.event) == ("unchanged", first.event)
    assert runtime.shrink().outcome == "unchanged"
    assert runtime.row.last_sequence == head


def test_a_preview_says_what_it_would_do_and_cost_and_changes_nothing() -> None:
    runtime = Shrinker()
    runtime.talk(3)
    head, through = runtime.row.last_sequence, runtime.row.content_sequence
    preview = runtime.shrink(through=through, preview=True)
    assert preview.outcome == "previewed"
    assert preview.verdict is not None
    assert preview.verdict.saved_tokens == preview.tokens_before - preview.tokens_after
    assert runtime.row.last_sequence == head


def test_what_does_not_pay_is_skipped_unless_it_is_forced() -> None:
    runtime = Shrinker(policy=PolicySpec(expected_steps=1))
    runtime.talk(1)
    through = runtime.row.content_sequence
    runtime.talk(6)
    skipped = runtime.shrink(through=through, force=False)
    assert skipped.outcome == "skipped"
    assert skipped.verdict is not None
    assert not skipped.verdict.pays
    assert not runtime.events(EventType.COMPACTED)
    assert runtime.shrink(through=through).outcome == "compacted"


def test_an_undone_compaction_gives_back_the_bytes_of_before() -> None:
    runtime = Shrinker()
    runtime.talk(3)
    through = runtime.row.content_sequence
    runtime.ask("And now?", now=AT)
    before = runtime.assemble()
    done = runtime.shrink(through=through)
    shorter = runtime.assemble()
    assert shorter.body != before.body
    undoing = runtime.undo(done.event)
    after = runtime.assemble()
    assert after.body == before.body
    assert after.request_sha256 == before.request_sha256
    assert runtime.undo(done.event) == undoing
    runtime.all_proven()


def test_a_compaction_that_another_rests_on_is_not_undone_first() -> None:
    runtime = Shrinker()
    runtime.talk(3)
    first = runtime.shrink(through=runtime.row.content_sequence)
    runtime.talk(3)
    second = runtime.shrink(through=runtime.row.content_sequence)
    with pytest.raises(ServiceError) as covered:
        runtime.undo(first.event)
    assert covered.value.code == "compaction_covered"
    merge = runtime.shrink(merge=True)
    with pytest.raises(ServiceError) as merged:
        runtime.undo(second.event)
    assert merged.value.code == "compaction_merged"
    runtime.undo(merge.event)
    runtime.undo(second.event)
    runtime.undo(first.event)
    runtime.ask("All back?")
    assert "[summary]" not in row_nine(body(runtime.assemble()))
    runtime.all_proven()


def test_ranges_tile_the_log_and_say_who_tells_them() -> None:
    runtime = Shrinker()
    for _ in range(4):
        runtime.talk(2)
        runtime.shrink(through=runtime.row.content_sequence)
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).as_json()
    at = 1
    for tile in found["coverage"]:
        assert tile["first"] == at
        at = tile["through"] + 1
    assert at == runtime.row.content_sequence + 1
    assert {line["state"] for line in found["items"]} == {"standing", "merged"}
    assert max(line["depth"] for line in found["items"]) == 2


def test_pressure_installs_a_summary_of_exactly_what_the_cut_drops() -> None:
    runtime = Shrinker(window=30_000, policy=PolicySpec(history_floor=1_000))
    while not runtime.events(EventType.COMPACTED):
        runtime.talk(2, size=30)
        assert runtime.row.runs < 40
    (made,) = runtime.events(EventType.COMPACTED)
    (cut,) = [e for e in runtime.events(EventType.YIELD_APPLIED) if e.payload["class"] == "history"]
    assert made.payload["replaced_through_sequence"] == cut.payload["floor_sequence"] - 1
    assert made.payload["came_with"] == [cut.sequence]
    assert made.payload["verdict"]["forced_by"] == "budget"
    runtime.ask("And now?")
    built = runtime.assemble()
    assert row_nine(body(built)).startswith("[summary] Events 1 to")
    assert built.budget["request"] <= built.budget["usable"]
    reasons = {(span["row"], span["reason"]) for span in built.manifest["spans"]}
    assert {(10, "summarised"), (9, "summarised")} <= reasons
    # The request that made it names it as each later one does.
    (first,) = [row for row in runtime.requests if str(row.id) == made.payload["forced_by"]]
    for manifest in (first.manifest, built.manifest):
        told = [span["numbers"] for span in manifest["spans"] if span["reason"] == "summarised"]
        assert told[0] == {"depth": 1, "event": made.sequence}
    runtime.all_proven()
    runtime.undo(made.sequence)
    (undone,) = runtime.events(EventType.COMPACTION_UNDONE)
    verdict, room = undone.payload["verdict"], built.budget["body"]
    assert runtime.row.tokens > room >= verdict["recached_tokens"] > 0
    assert 0 < -verdict["saved_tokens"] <= room


def test_under_a_policy_without_compaction_the_bare_cut_says_so() -> None:
    runtime = Shrinker(window=30_000, policy=PolicySpec(history_floor=1_000, compaction="none"))
    while not runtime.events(EventType.YIELD_APPLIED):
        runtime.talk(2, size=30)
    while not any(e.payload["class"] == "history" for e in runtime.events(EventType.YIELD_APPLIED)):
        runtime.talk(2, size=30)
    runtime.ask("And now?")
    assert row_nine(body(runtime.assemble())).startswith("[omitted]")
    assert not runtime.events(EventType.COMPACTED)
    with pytest.raises(ServiceError) as refused:
        runtime.shrink()
    assert refused.value.code == "compaction_off"


def test_a_refusal_is_one_event_and_the_same_answer_again() -> None:
    runtime = Shrinker()
    runtime.turn("Hello.", "Good day.")
    for _ in range(3):
        with pytest.raises(ServiceError) as refused:
            runtime.shrink(through=runtime.row.content_sequence)
        assert (refused.value.code, refused.value.extra["remedy"]) == ("no_progress", "child_run")
    (event,) = runtime.events(EventType.COMPACTION_REFUSED)
    assert event.payload["reason"] == "no_progress"


def test_where_nothing_was_merged_yet_no_refusal_says_so() -> None:
    runtime = Shrinker(window=30_000)
    runtime.talk(6)
    runtime.shrink(through=runtime.row.content_sequence)
    runtime.talk(6)
    # Receipts showed that the model counts more: of the same window less is left, for summaries too.
    Calibration.objects.update_or_create(
        tenant_id=runtime.actor.tenant_id,
        provider=runtime.provider,
        model=runtime.model,
        defaults={"factor_millionths": 2_500_000, "samples": 50, "updated_at": AT},
    )
    through = runtime.row.content_sequence
    runtime.ask("And now?")
    with pytest.raises(ServiceError) as refused:
        runtime.shrink(through=through, preview=True)
    assert refused.value.code == "depth_exceeded"
    assert "leave no room" in refused.value.detail
    assert "merged" not in refused.value.detail


def test_an_erased_summary_leaves_its_digest_and_its_range() -> None:
    runtime = Shrinker()
    runtime.talk(3)
    runtime.shrink(through=runtime.row.content_sequence)
    runtime.ask("And now?")
    built = runtime.assemble()
    event = runtime.events(EventType.COMPACTED)[0]
    assert event.body_id is not None
    Body.objects.filter(tenant_id=runtime.actor.tenant_id, id=event.body_id).update(
        data=b"", salt=b"", erased_at=AT
    )
    replay = replay_request(actor=runtime.actor, request_id=built.request_id)
    assert (replay.verdict, replay.except_) == ("identical_except", ["erased"])


def test_compactions_and_acts_are_in_the_audit_log() -> None:
    runtime = Shrinker()
    runtime.talk(2)
    done = runtime.shrink(through=runtime.row.content_sequence, note="too long")
    runtime.undo(done.event)
    runtime.mark("3", "pinned", scope="turn")
    rows = AuditEntry.objects.filter(tenant_id=runtime.actor.tenant_id).order_by("at")
    assert [row.action for row in rows] == [
        "history.compacted",
        "compaction.undone",
        "history.pinned",
    ]
    assert PROSE not in str([row.before for row in rows] + [row.after for row in rows])


def test_a_pointer_to_a_result_of_a_deferred_tool_names_that_tool() -> None:
    runtime = Shrinker(tools=(tool("read"), tool("notes", deferred=True)))
    runtime.talk(1)
    runtime.ask("Notes?")
    runtime.assemble()
    runtime.say("", Call("c1", "tool_call", json.dumps({"name": "notes", "arguments": {}})))
    runtime.results(("c1", "Three notes of the harbour."))
    runtime.assemble()
    runtime.say("Three.")
    runtime.talk(1)
    runtime.shrink(through=runtime.row.content_sequence)
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).as_json()["items"][-1]
    pointers = [row for row in found["summary"].splitlines() if row.startswith("[elided]")]
    assert any(" from notes -> recall" in row for row in pointers)
    assert not any("tool.call" in row for row in pointers)
