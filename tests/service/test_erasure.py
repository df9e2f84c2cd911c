"""What a person's erasure leaves: plans that held nothing of theirs stay, and what was kept can be verified (design 4)."""

from __future__ import annotations

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import AuditEntry, Body, Job, PlanRow, SessionRow
from ctxengine.service.erase import erase_person
from ctxengine.service.erase_job import erase_later
from ctxengine.service.specs import PrincipalSpec, SnapshotSpec
from ctxengine.service.verify import verify_session
from tests.shrinking import Shrinker
from tests.work_off import work_off

pytestmark = pytest.mark.django_db
MARA = PrincipalSpec(id="mara")


def test_a_plan_without_a_snapshot_keeps_its_epoch_and_its_bytes() -> None:
    runtime = Shrinker(principal=MARA)
    before = runtime.turn("My name is Mara.", "Hello.")
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert not runtime.events(EventType.EPOCH_ROTATED)
    after = runtime.turn("Hello again.", "Hello.")
    assert after.wire_prefix_sha256 == before.wire_prefix_sha256
    assert runtime.row.epoch == 1
    runtime.all_proven_but_erased()


def with_snapshot() -> Shrinker:
    snapshot = SnapshotSpec(trace_id="t1", watermark=1, items=("Mara likes tea.",))
    runtime = Shrinker(principal=MARA, extra={"snapshot": snapshot})
    runtime.turn("Hello.", "Hello.")
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    return runtime


def test_a_plan_that_held_the_snapshot_is_followed_by_one_without() -> None:
    runtime = with_snapshot()
    (rotated,) = runtime.events(EventType.EPOCH_ROTATED)
    assert rotated.payload["reasons"] == ["snapshot_missing"]
    assert verify_session(runtime.row).problem is None


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_a_damaged_copy_of_a_kept_plan_is_found(damage: str) -> None:
    runtime = with_snapshot()
    row = PlanRow.objects.get(session_id=runtime.session, epoch=1)
    kept = Body.objects.filter(session_id=runtime.session, id__in=[row.redacted_body_id])
    if damage == "gone":
        kept.delete()
    else:
        data = bytes(kept.get().data)
        kept.update(data=data.replace(b"look things up", b"break things up"))
    found = verify_session(SessionRow.objects.get(id=runtime.session))
    assert found.bad_sequence == row.sequence
    assert "erasure" in (found.problem or "")


def cut_short(runtimes: list[Shrinker], erasure: str) -> None:
    """Erase from the first session and break off before the second."""

    def before_each(done: int, of: int) -> None:
        if done == 1:
            raise ConnectionError("the database went away")

    with pytest.raises(ConnectionError):
        erase_person(
            actor=runtimes[0].actor,
            principal="mara",
            note="asked for it",
            erasure=erasure,
            before_each=before_each,
        )


def in_two_sessions() -> list[Shrinker]:
    first = Shrinker(principal=MARA)
    runtimes = [first, Shrinker(actor=first.actor, principal=MARA)]
    for runtime in runtimes:
        runtime.talk(1)
        runtime.ask("And then?")
    return runtimes


def test_an_erasure_that_goes_on_tells_of_all_that_it_did_and_began_once() -> None:
    whole = in_two_sessions()
    at_once = erase_person(actor=whole[0].actor, principal="mara", note="asked", erasure="one")
    broken = in_two_sessions()
    cut_short(broken, "one")
    for _ in range(2):
        again = erase_person(actor=broken[0].actor, principal="mara", note="asked", erasure="one")
        assert again == at_once
    assert (again.sessions, again.runs_ended) == (2, 2)
    entries = AuditEntry.objects.filter(tenant_id=broken[0].actor.tenant_id, target="mara")
    acts = entries.filter(action__startswith="person.").order_by("action")
    assert list(acts.values_list("action", flat=True)) == ["person.erased", "person.erasure_begun"]
    assert acts[0].after["bodies"] == at_once.bodies


def test_another_erasure_counts_what_it_did_itself() -> None:
    runtimes = in_two_sessions()
    cut_short(runtimes, "one")
    assert erase_person(actor=runtimes[0].actor, principal="mara", note="x").sessions == 1


def test_a_job_that_erases_goes_on_under_its_own_name() -> None:
    runtimes = in_two_sessions()
    actor = runtimes[0].actor
    job = erase_later(actor=actor, principal="mara", note="asked for it")
    cut_short(runtimes, str(job.id))
    assert work_off(actor.tenant_id) == [("people.erase", "done")]
    assert Job.objects.get(id=job.id).result["sessions"] == 2
