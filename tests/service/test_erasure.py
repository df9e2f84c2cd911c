"""What a person's erasure leaves: plans that held nothing of theirs stay, and what was kept can be verified (design 4)."""

from __future__ import annotations

import pytest

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Body, PlanRow, SessionRow
from ctxengine.service.erase import erase_person
from ctxengine.service.specs import PrincipalSpec, SnapshotSpec
from ctxengine.service.verify import verify_session
from tests.shrinking import Shrinker

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
