"""Memory snapshots: fenced by their trace, gone with a person, and everything still proven."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Body, ClosedTurn, ItemRow, SessionRow, SnapshotTrace
from ctxengine.service.configure_session import configure_session
from ctxengine.service.erase import erase_person
from ctxengine.service.plan_specs import Configure
from ctxengine.service.prove import replay_request
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.specs import (
    Actor,
    MemoryLine,
    PrincipalSpec,
    ServiceError,
    SkillSpec,
    SnapshotSpec,
)
from ctxengine.service.verify import verify_session
from tests.cast import Call, Runtime, new_actor

pytestmark = pytest.mark.django_db

SNAPSHOT_LINE = "Mara lives in Oslo"


def remembered(actor: Actor | None = None, **extra: Any) -> Runtime:
    return Runtime(
        actor=actor or new_actor(),
        principal=PrincipalSpec(id="mara"),
        extra={
            "snapshot": SnapshotSpec(trace_id="trace-1", watermark=7, items=(SNAPSHOT_LINE,)),
            **extra,
        },
    )


def turn(runtime: Runtime, text: str = "Go") -> str:
    runtime.ask(text)
    body = runtime.assemble().body.decode()
    runtime.say("Done.")
    return body


def verdicts(runtime: Runtime) -> set[str]:
    return {replay_request(actor=runtime.actor, request_id=r.id).verdict for r in runtime.requests}


def test_use_of_a_snapshot_is_recorded_before_egress_once_per_run_and_epoch() -> None:
    runtime = remembered()
    runtime.ask("Go")
    runtime.look("c1", "x")
    runtime.assemble()
    rotate_epoch(actor=runtime.actor, session_id=runtime.session, reason="operator", note="x")
    runtime.assemble()
    runtime.say("Done.")
    turn(runtime)
    used = runtime.events(EventType.SNAPSHOT_USED)
    assert [(e.payload["epoch"], e.payload["trace"], e.payload["watermark"]) for e in used] == [
        (1, "trace-1", 7),
        (2, "trace-1", 7),
        (2, "trace-1", 7),
    ]
    started = runtime.events(EventType.REQUEST_STARTED)
    assert used[0].sequence == started[0].sequence - 1


def test_a_session_without_a_snapshot_records_no_use() -> None:
    runtime = Runtime()
    turn(runtime)
    assert runtime.events(EventType.SNAPSHOT_USED) == []


def test_a_snapshot_whose_trace_is_gone_rotates_at_the_next_run_and_not_before() -> None:
    runtime = remembered()
    runtime.ask("Go")
    runtime.assemble()
    SnapshotTrace.objects.filter(session_id=runtime.session).delete()
    runtime.look("c1", "x")
    assert SNAPSHOT_LINE in runtime.assemble().body.decode()
    runtime.say("Done.")
    assert SNAPSHOT_LINE not in turn(runtime)
    (event,) = runtime.events(EventType.EPOCH_ROTATED)
    assert event.payload["reasons"] == ["snapshot_missing"]
    turn(runtime)
    assert len(runtime.events(EventType.EPOCH_ROTATED)) == 1


def test_a_fresh_snapshot_takes_the_place_of_a_missing_one() -> None:
    runtime = remembered()
    SnapshotTrace.objects.filter(session_id=runtime.session).delete()
    configure_session(
        actor=runtime.actor,
        session_id=runtime.session,
        spec=Configure(snapshot=SnapshotSpec(trace_id="trace-2", items=("Likes tea.",))),
    )
    assert "Likes tea." in turn(runtime)
    turn(runtime)
    assert len(runtime.events(EventType.EPOCH_ROTATED)) == 1


def test_erasing_a_person_takes_snapshot_and_content_and_leaves_the_proofs() -> None:
    runtime = remembered(skills=(SkillSpec(name="s", body="Step."),))
    runtime.ask("My geheim question")
    runtime.assemble(recall=(MemoryLine(text="recalled geheim"),))
    runtime.say("", Call("c1", "read"), Call("c2", "skill_load", '{"name":"s"}'))
    runtime.results(("c1", "geheim result"))
    runtime.assemble()
    runtime.say("The geheim answer.")
    turn(runtime, "Another geheim")
    runtime.ask("An open geheim")
    runtime.assemble()
    erased = erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert (erased.sessions, erased.runs_ended) == (1, 1)
    assert erased.bodies > 5
    for body in Body.objects.filter(session_id=runtime.session):
        assert b"geheim" not in bytes(body.data)
        assert b"Oslo" not in bytes(body.data)
    previews = ItemRow.objects.filter(session_id=runtime.session).values_list("preview", flat=True)
    assert not any("geheim" in preview for preview in previews)
    assert not ClosedTurn.objects.filter(session_id=runtime.session).exists()
    assert verdicts(runtime) == {"identical_except"}
    row = SessionRow.objects.get(id=runtime.session)
    assert verify_session(row).problem is None
    assert [e.payload["snapshot"] for e in runtime.events(EventType.PERSON_ERASED)] == [True]


def test_after_an_erasure_the_session_goes_on_without_the_snapshot() -> None:
    runtime = remembered()
    runtime.ask("Go")
    runtime.assemble()
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    with pytest.raises(ServiceError) as caught:
        runtime.assemble()
    assert caught.value.code == "run_ended"
    assert SNAPSHOT_LINE not in turn(runtime)
    rotated = runtime.events(EventType.EPOCH_ROTATED)
    assert [e.payload["reasons"] for e in rotated] == [["snapshot_missing"]]
    assert verdicts(runtime) == {"identical", "identical_except"}
    runtime.ask("And on?")
    first = runtime.assemble()
    assert b"[erased]" in first.body
    assert runtime.assemble().body == first.body


def test_an_erasure_reaches_every_session_of_the_person_and_no_other() -> None:
    actor = new_actor()
    first, second = remembered(actor), remembered(actor)
    other = Runtime(actor=actor, principal=PrincipalSpec(id="juno"))
    stranger = remembered()
    for runtime in (first, second, other, stranger):
        turn(runtime)
    assert erase_person(actor=actor, principal="mara", note="x").sessions == 2
    assert erase_person(actor=actor, principal="mara", note="x").bodies <= 2
    assert verdicts(other) == verdicts(stranger) == {"identical"}


def test_erasing_twice_erases_what_has_come_since() -> None:
    runtime = remembered()
    turn(runtime)
    erase_person(actor=runtime.actor, principal="mara", note="x")
    turn(runtime, "new geheim")
    erase_person(actor=runtime.actor, principal="mara", note="x")
    bodies = Body.objects.filter(session_id=runtime.session)
    assert not any(b"new geheim" in bytes(body.data) for body in bodies)
    assert verdicts(runtime) == {"identical_except"}


def test_a_recall_that_an_erasure_withdrew_never_reaches_a_request_of_a_new_session() -> None:
    actor = new_actor()
    turn(remembered(actor))
    erase_person(actor=actor, principal="mara", note="x")
    late = remembered(actor)
    assert SNAPSHOT_LINE not in turn(late)
    (event,) = late.events(EventType.EPOCH_ROTATED)
    assert event.payload["reasons"] == ["snapshot_missing"]


def test_an_erasure_needs_a_reason() -> None:
    with pytest.raises(ServiceError, match="note"):
        erase_person(actor=new_actor(), principal="mara", note="")
